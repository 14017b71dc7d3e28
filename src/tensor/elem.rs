//! Types of elements.

use std::fmt::Debug;

/// An element type of a tensor; zeros are a value of it.
pub trait Elem: Copy + Default + Debug + Send + Sync + PartialEq + 'static {}
impl Elem for f32 {}
impl Elem for f64 {}
impl Elem for i64 {}
impl Elem for bool {}

/// An element whose every bit pattern is a value.
pub trait Plain: Elem {}
impl Plain for f32 {}
impl Plain for f64 {}
impl Plain for i64 {}
