//! Evaluating primitives on slices; the accumulation contract.
//!
//! A kernel reads and writes plain row-major slices, knows nothing of programs or traces, and gives the same bits
//! whatever the number of threads, the instruction set and the layout of its operands:
//!
//! - products follow the order written in [`mod@contract`] and spelled out by [`dot`];
//! - reductions are left folds ([`reduce`]);
//! - elementary functions are the ones of [`Real`](crate::tensor::Real), element by element ([`elementwise`]);
//! - moving data changes no bits ([`shuffle`]).
//!
//! The sign and payload of a NaN are outside the contract: they differ between processors.

// A function takes the instruction set of the function it is inlined into: here that is the point.
#![allow(clippy::inline_always)]

pub mod contract;
pub mod elementwise;
mod gemm;
mod mat;
pub mod matmul;
mod normal;
mod par;
mod processor;
pub mod reduce;
pub mod shuffle;
#[cfg(test)]
mod tests;
mod tile;

pub use contract::{Contract, ProbeError, contract, dot, probe};
pub use elementwise::{erf_slice, exp_slice, map, map_inplace, tanh_slice, zip, zip_broadcast};
pub use mat::{BLOCK, Mat};
pub use matmul::{matmul, matmul_batched};
pub use normal::normals;
pub use reduce::{Reduction, argmax, fold};
pub use shuffle::{concat, gather_rows, permute, scatter_add_rows, slice};
