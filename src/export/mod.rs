//! Steps as files: one writer a format, all from the same plain data.

pub mod doc;
