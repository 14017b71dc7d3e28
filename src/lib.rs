//! tui-transformer: a debugger for Transformers.
//!
//! A run is a program (data) plus the value of each of its nodes; everything else is a view of that.
//!
//! ```text
//! main → cli → tui → app → {debug, export} → session → {walkthrough, scenario}
//! scenario → model → program → tensor        trace → {program, kernels, tensor}
//! {walkthrough, explain} → trace             text: used by all, uses nothing
//! ```

pub mod app;
pub mod cli;
pub mod debug;
pub mod explain;
pub mod export;
pub mod kernels;
pub mod model;
pub mod program;
pub mod scenario;
pub mod session;
pub mod source;
pub mod tensor;
pub mod text;
pub mod trace;
#[cfg(feature = "tui")]
pub mod tui;
pub mod walkthrough;
