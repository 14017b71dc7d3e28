//! Norms of the rows of a tensor, and how they turned since the tensor before.

use crate::trace::AnyValue;

/// Facts of each row (the last axis), in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFacts {
    /// Euclidean norms.
    pub norms: Vec<f64>,
    /// Cosines with the rows of the tensor before; empty where there is none of the same shape.
    pub cosines: Vec<f64>,
}

impl RowFacts {
    /// Reads every cell; `before` has the same rows, at an earlier stage.
    pub fn read(value: &AnyValue, before: Option<&AnyValue>) -> Self {
        let shape = *value.shape();
        let width = shape.dims().last().copied().unwrap_or(1).max(1);
        let rows = shape.len() / width;
        let dot = |a: &AnyValue, b: &AnyValue, r: usize| -> f64 {
            (r * width..(r + 1) * width).map(|i| a.get(i) * b.get(i)).sum()
        };
        let norm = |v: &AnyValue, r: usize| dot(v, v, r).sqrt();
        let norms: Vec<f64> = (0..rows).map(|r| norm(value, r)).collect();
        let before = before.filter(|b| b.shape().same_dims(&shape));
        let cosines =
            before.map_or_else(Vec::new, |b| (0..rows).map(|r| dot(value, b, r) / (norms[r] * norm(b, r))).collect());
        Self { norms, cosines }
    }

    /// Mean of the norms of these rows.
    pub fn mean_norm(&self, rows: std::ops::Range<usize>) -> f64 {
        mean(self.norms.get(rows).unwrap_or_default())
    }

    /// Mean of the cosines of these rows; `None` where there is nothing before.
    pub fn mean_cosine(&self, rows: std::ops::Range<usize>) -> Option<f64> {
        let cosines = self.cosines.get(rows)?;
        (!cosines.is_empty()).then(|| mean(cosines))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Axis, Shape, Tensor, Value};

    #[test]
    fn norms_and_cosines_by_hand() {
        let of = |data: Vec<f64>| {
            let shape = Shape::named(&[(Axis::Token, 2), (Axis::DModel, 2)]);
            AnyValue::F64(Value::Float(Tensor::new(shape, data)))
        };
        let facts = RowFacts::read(&of(vec![3.0, 4.0, 0.0, 2.0]), Some(&of(vec![4.0, -3.0, 0.0, 7.0])));
        assert_eq!(facts.norms, [5.0, 2.0]);
        assert_eq!(facts.cosines, [0.0, 1.0]);
        assert_eq!((facts.mean_norm(0..2), facts.mean_cosine(1..2)), (3.5, Some(1.0)));
    }
}
