//! Numbers of a tensor as a scenario writes them: in one list row by row, or in lists of lists as its axes are.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers, row-major, and how the lists were nested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    flat: Vec<f64>,
    dims: Vec<usize>,
}

impl Numbers {
    /// All of them, row by row.
    pub fn flat(&self) -> &[f64] {
        &self.flat
    }

    /// Lengths of the lists, the outermost first; one where they are not nested.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(flat: Vec<f64>) -> Self {
        Self { dims: vec![flat.len()], flat }
    }
}

/// What a list holds: a number, or a list of its own.
struct Part(Numbers);

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Read { number: true }).map(Part)
    }
}

struct Read {
    number: bool,
}

fn one(x: f64) -> Numbers {
    Numbers { flat: vec![x], dims: Vec::new() }
}

impl<'de> Visitor<'de> for Read {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.number { "a number or a list of numbers" } else { "a list of numbers" })
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Numbers, E> {
        if self.number { Ok(one(x)) } else { Err(E::invalid_type(serde::de::Unexpected::Float(x), &self)) }
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<Numbers, E> {
        self.visit_f64(x as f64)
    }

    fn visit_u64<E: Error>(self, x: u64) -> Result<Numbers, E> {
        self.visit_f64(x as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
        let mut all = Numbers { flat: Vec::new(), dims: vec![0] };
        while let Some(Part(part)) = list.next_element()? {
            if all.dims[0] == 0 {
                all.dims.extend(&part.dims);
            } else if all.dims[1..] != part.dims {
                return Err(A::Error::custom("lists beside each other must be equally long"));
            }
            all.dims[0] += 1;
            all.flat.extend(part.flat);
        }
        Ok(all)
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Read { number: false })
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some((&rows, inner)) = self.dims.split_first() else {
            return self.flat[0].serialize(to);
        };
        let mut list = to.serialize_seq(Some(rows))?;
        let width = self.flat.len() / rows.max(1);
        for row in 0..rows {
            let flat = self.flat[row * width..(row + 1) * width].to_vec();
            list.serialize_element(&Self { flat, dims: inner.to_vec() })?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_may_be_nested_and_are_written_as_they_were() {
        let read = |text: &str| ron::from_str::<Numbers>(text);
        let n = read("[[1, 2.5], [-3, 4e-2]]").unwrap();
        assert_eq!((n.flat(), n.dims()), (&[1.0, 2.5, -3.0, 0.04][..], &[2, 2][..]));
        assert_eq!(ron::from_str::<Numbers>(&ron::to_string(&n).unwrap()), Ok(n));
        assert_eq!(read("[1, 2, 3]").unwrap(), Numbers::from(vec![1.0, 2.0, 3.0]));
        assert_eq!(read("[]").unwrap().flat(), &[] as &[f64]);
        assert!(read("[[1, 2], [3]]").is_err());
        assert!(read("[[1], 3]").is_err());
        assert!(read("3").is_err());
        assert!(read("[\"a\"]").is_err());
    }
}
