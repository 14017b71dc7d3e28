//! What a head does: how evenly it looks, and the pattern that it follows.

use crate::trace::AnyValue;
use crate::trace::stats::{Mask, Window};

/// Where a head looks, whatever is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// At the token before.
    Previous,
    /// At the first token.
    First,
    /// At the token itself.
    Diagonal,
    /// Everywhere alike.
    Uniform,
}

impl Pattern {
    /// Catalogue key of its name.
    pub fn key(self) -> &'static str {
        match self {
            Pattern::Previous => "tui.pattern.previous",
            Pattern::First => "tui.pattern.first",
            Pattern::Diagonal => "tui.pattern.diagonal",
            Pattern::Uniform => "tui.pattern.uniform",
        }
    }
}

/// Facts of one head.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeadFacts {
    /// Mean entropy of the rows, from 0 (one key) to 1 (all keys that are not masked alike).
    pub entropy: f64,
    /// The pattern, with the mean weight on it.
    pub pattern: Option<(Pattern, f64)>,
    /// The largest weight: query, key, weight.
    pub peak: (usize, usize, f64),
}

/// Least share that a pattern has of the weight.
const CLEAR: f64 = 0.4;
/// Entropy from which on a head looks everywhere alike.
const EVEN: f64 = 0.97;

impl HeadFacts {
    /// Reads every weight of a head.
    pub fn read(value: &AnyValue, mask: &Mask, w: Window) -> Self {
        let weight = |r: usize, c: usize| value.get(w.flat(r, c));
        Self::of(w.rows, w.cols, &weight, &|r, c| mask.has(w.flat(r, c)))
    }

    /// Of `rows` × `cols` weights, some of them masked.
    pub fn of(
        rows: usize,
        cols: usize,
        weight: &dyn Fn(usize, usize) -> f64,
        masked: &dyn Fn(usize, usize) -> bool,
    ) -> Self {
        let (all, w) = (rows, cols);
        let (mut entropy, mut rows) = (0.0, 0_usize);
        let mut on = [0.0; 3];
        let mut peak = (0, 0, f64::NEG_INFINITY);
        for r in 0..all {
            let (mut h, mut open) = (0.0, 0_usize);
            for c in 0..w {
                let p = weight(r, c);
                open += usize::from(!masked(r, c));
                if p > 0.0 {
                    h -= p * p.ln();
                }
                if p > peak.2 {
                    peak = (r, c, p);
                }
            }
            if open > 1 {
                entropy += h / (open as f64).ln();
                rows += 1;
            }
            let at = |c: Option<usize>| c.filter(|c| *c < w).map_or(0.0, |c| weight(r, c));
            on[0] += at(r.checked_sub(1));
            on[1] += at(Some(0));
            on[2] += at(Some(r));
        }
        let entropy = entropy / rows.max(1) as f64;
        let n = all.max(1) as f64;
        // The first row has no token before it; the first token is its own diagonal.
        let means = [on[0] / (n - 1.0).max(1.0), on[1] / n, on[2] / n];
        let kinds = [Pattern::Previous, Pattern::First, Pattern::Diagonal];
        let best = (0..3).max_by(|a, b| means[*a].total_cmp(&means[*b])).unwrap_or(0);
        let pattern = if entropy > EVEN && rows > 0 {
            Some((Pattern::Uniform, 1.0 / w.max(1) as f64))
        } else {
            (means[best] >= CLEAR && w > 2).then_some((kinds[best], means[best]))
        };
        Self { entropy, pattern, peak }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Axis, Shape, Tensor, Value};

    fn facts(rows: &[&[f64]]) -> HeadFacts {
        let (n, m) = (rows.len(), rows[0].len());
        let data: Vec<f64> = rows.concat();
        let value = AnyValue::F64(Value::Float(Tensor::new(Shape::named(&[(Axis::Query, n), (Axis::Key, m)]), data)));
        let window = Window { start: 0, rows: n, cols: m, row_stride: m, col_stride: 1 };
        HeadFacts::read(&value, &Mask::none(), window)
    }

    #[test]
    fn patterns_are_recognised() {
        let kind = |f: HeadFacts| f.pattern.map(|p| p.0);
        let diagonal = facts(&[&[0.8, 0.1, 0.1], &[0.1, 0.8, 0.1], &[0.1, 0.1, 0.8]]);
        assert_eq!(kind(diagonal), Some(Pattern::Diagonal));
        let previous = facts(&[&[0.4, 0.3, 0.3], &[0.9, 0.05, 0.05], &[0.05, 0.9, 0.05]]);
        assert_eq!(kind(previous), Some(Pattern::Previous));
        assert_eq!(previous.peak, (1, 0, 0.9));
        let third = 1.0 / 3.0;
        let uniform = facts(&[&[third; 3], &[third; 3], &[third; 3]]);
        assert_eq!(kind(uniform), Some(Pattern::Uniform));
        assert!((uniform.entropy - 1.0).abs() < 1e-12);
        let first = facts(&[&[0.6, 0.2, 0.2], &[0.7, 0.1, 0.2], &[0.8, 0.1, 0.1]]);
        assert_eq!(kind(first), Some(Pattern::First));
        assert_eq!(kind(facts(&[&[0.3, 0.4, 0.3], &[0.2, 0.3, 0.5], &[0.5, 0.3, 0.2]])), None);
    }
}
