//! What several tests share.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod finite;
pub mod water_class;
