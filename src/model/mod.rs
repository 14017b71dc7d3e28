//! Configuration → program: parameters by path, blocks as composites.

mod beam;
mod blocks;
pub mod build;
pub mod config;
pub mod generate;
pub mod limits;
pub mod masks;
pub mod own;
pub mod params;
pub mod validate;

pub use blocks::{Cache, attend};
pub use build::{Forward, ModelBuilder, Outputs, Sequences, forward};
