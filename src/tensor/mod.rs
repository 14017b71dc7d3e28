//! Tensors: shapes with named axes, contiguous row-major storage, 2-D windows, statistics.

mod arena;
mod elem;
mod elementary;
pub mod float8;
mod grown;
pub mod mapped;
mod number_type;
mod real;
mod shape;
pub mod slice;
mod store;

pub use arena::Pool;
pub use elem::{Elem, Plain};
pub use number_type::NumberType;
pub use real::{Precision, Real};
pub use shape::{Axis, MAX_RANK, Shape};
pub use slice::{Pick, ResolvedSlice, Slice};
pub use store::{Buffer, DType, Tensor, Value};
