//! Numbers of JSON, with names for those that it lacks.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Named(String),
}

/// Writes a number, or the name of one.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
pub fn serialize<S: Serializer>(x: &f64, to: S) -> Result<S::Ok, S::Error> {
    if x.is_finite() {
        return Number::Finite(*x).serialize(to);
    }
    Number::Named(x.to_string()).serialize(to)
}

/// Reads what [`serialize`] writes.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    match Number::deserialize(from)? {
        Number::Finite(x) => Ok(x),
        Number::Named(name) => name.parse().map_err(serde::de::Error::custom),
    }
}

/// The same for lists.
pub mod list {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct One(#[serde(with = "super")] f64);

    /// Writes numbers.
    pub fn serialize<S: Serializer>(x: &Arc<[f64]>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(x.iter().map(|x| One(*x)))
    }

    /// Reads numbers.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[f64]>, D::Error> {
        Ok(Vec::<One>::deserialize(from)?.into_iter().map(|x| x.0).collect())
    }
}
