//! Configuration → program: parameters by path, blocks as composites.

mod attention;
mod beam;
mod blocks;
pub mod build;
mod calls;
pub mod config;
mod embedding;
mod ffn;
pub mod generate;
mod heads;
mod latent;
pub mod limits;
pub mod loss;
pub mod masks;
mod moe;
mod norm;
pub mod own;
pub mod params;
mod positions;
mod tiled;
pub mod validate;

pub use attention::attend;
pub use blocks::Cache;
pub use build::{Forward, ModelBuilder, Outputs, Sequences, forward};
