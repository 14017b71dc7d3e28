//! tui-transformer: a debugger for Transformers.
//!
//! A run is a program (data) plus the value of each of its nodes; everything else is a view of that. The engine is a
//! library without a terminal, a language or a file format:
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Arc;
//!
//! use tui_transformer::program::Builder;
//! use tui_transformer::program::composite::{Shift, softmax};
//! use tui_transformer::tensor::{DType, Shape, Tensor, Value};
//! use tui_transformer::trace::derive::{Cell, derive, replay_node};
//! use tui_transformer::trace::{Bindings, run};
//!
//! // A program: scores of two queries and two keys, then attention weights. Shapes are checked here.
//! let mut b = Builder::new();
//! let q = b.input("q", DType::Float, Shape::new(&[2, 2]))?;
//! let k = b.input("k", DType::Float, Shape::new(&[2, 2]))?;
//! let scores = b.matmul_bt("scores", q, k)?;
//! let weights = softmax(&mut b, "attention", scores, Shift::Always, false)?;
//! let program = Arc::new(b.finish());
//!
//! // A run keeps every value, and gives it as an array of `ndarray`.
//! let matrix = |data: [f64; 4]| Value::Float(Tensor::new(Shape::new(&[2, 2]), data.to_vec()));
//! let inputs: Bindings<f64> = HashMap::from([
//!     ("q".into(), matrix([1.1, -0.79, 0.5, 2.0])),
//!     ("k".into(), matrix([0.57, -1.21, 1.93, -1.02])),
//! ]);
//! let trace = run(&program, &inputs)?;
//! assert!((trace.value(scores).float().view()[[0, 0]] - 1.5829).abs() < 1e-12);
//!
//! // The derivation of a cell is its computation: operands in the order of arithmetic, which replay to the same bits.
//! let arithmetic = derive(&trace, Cell { node: scores, flat: 0 });
//! assert_eq!(arithmetic.operands().len(), 4);
//! assert_eq!(replay_node(&trace, scores).different, 0);
//!
//! // Another run, compared cell by cell.
//! let mut other = inputs.clone();
//! other.insert("k".into(), matrix([0.57, -1.21, 1.93, -1.03]));
//! let second = run(&program, &other)?;
//! let first_difference = program.nodes().map(|(id, _)| id).find(|id| !trace.value(*id).same_bits(&second.value(*id)));
//! assert_eq!(first_difference, Some(k));
//! assert!(trace.value(weights).get(0) != second.value(weights).get(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/` has three small programs: run a scenario and print a step, find the first difference of two models, train
//! and look at attention. `docs/architecture.md` has the map of the house.
//!
//! ```text
//! main → cli → tui → app → {debug, export} → session → {walkthrough, scenario}
//! scenario → model → program → tensor        trace → {program, kernels, tensor}
//! {walkthrough, explain} → trace             text: used by all, uses nothing
//! ```

/// The arrays that [`tensor::Tensor::view`] gives.
pub use ndarray;

#[doc(hidden)]
pub mod app;
pub mod checkpoint;
#[doc(hidden)]
pub mod cli;
pub mod debug;
pub mod explain;
pub mod export;
pub mod kernels;
pub mod model;
mod parallel;
pub mod program;
#[doc(hidden)]
pub mod report;
pub mod scenario;
pub mod session;
pub mod source;
pub mod tensor;
pub mod text;
pub mod trace;
#[cfg(feature = "tui")]
#[doc(hidden)]
pub mod tui;
pub mod walkthrough;
