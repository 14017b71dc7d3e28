//! Configuration → program: parameters by path, blocks as composites.

pub mod config;
