//! What a debugger says about runs: that two ways of computing agree, that nothing looks ahead, where two runs differ,
//! what would be if something were edited.
//! What a debugger says about runs: that two ways of computing agree, that nothing looks ahead, where two runs differ;
//! expressions over a run, breakpoints and watches, where a number came from and where NaN did.

pub mod breaks;
pub mod cache;
pub mod causality;
pub mod compare;
pub mod lints;
pub mod condition;
pub mod expr;
pub mod here;
pub mod nan;
pub mod side;
pub mod teacher;
pub mod whatif;
pub mod timeline;
pub mod tree;
