//! What a debugger says about runs: that two ways of computing agree, that nothing looks ahead, where two runs differ,
//! what would be if something were edited.

pub mod cache;
pub mod causality;
pub mod compare;
pub mod lints;
pub mod expr;
pub mod side;
pub mod teacher;
pub mod whatif;
