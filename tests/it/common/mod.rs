//! What several tests share.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod finite;
pub mod front;
pub mod lints;
#[cfg(all(unix, feature = "tui"))]
pub mod pty;
pub mod reference;
pub mod tiny;
pub mod water_class;
