//! What a debugger says about runs: that two ways of computing agree, that nothing looks ahead, what is most probably
//! wrong, where two runs differ, what would be if something were edited; expressions over a run, breakpoints and
//! watches, where a number came from and where NaN did.

pub mod breaks;
pub mod cache;
pub mod causality;
pub mod compare;
pub mod condition;
pub mod counts;
pub mod depth;
pub mod eval_context;
pub mod expected;
pub mod expr;
pub mod grammar;
pub mod heads;
pub mod lints;
pub mod nan;
pub mod numerics;
pub mod quiz;
pub mod side;
pub mod teacher;
pub mod tiles;
pub mod timeline;
pub mod tree;
pub mod whatif;
