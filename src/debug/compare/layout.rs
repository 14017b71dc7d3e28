//! How the axes of a reference's tensor correspond to ours: `b t (h d) -> b h t d` is a tensor of batch, token and heads
//! side by side, which we hold as batch, head, token, width.
//!
//! Left of the arrow stand the reference's axes, right of it ours, outermost first. A bracket is one axis that holds
//! several, the first the slowest. `1/3` is an axis of 3 of which only element 1 is ours (counted from 0; `0/*`: of any
//! length). Lengths are never written: they follow from both shapes.

use std::collections::HashMap;

use crate::scenario::rewrite::{Plan, Rewrite};
use crate::tensor::Tensor;
use crate::tensor::{MAX_RANK, Shape};
use crate::text::{Msg, escape};

/// One axis, or one element of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Atom {
    Axis(String),
    Pick { at: usize, of: Option<usize> },
}

/// An arrangement of axes, or how a tensor is taken out of one of the reference by the rewrites of a file of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Axes(Axes),
    /// A tensor of the file.
    Made(Vec<Rewrite>),
    /// What a matrix of the file makes of a vector: the last axis is its rows.
    Outputs(Vec<Rewrite>),
}

/// Axes of the reference, and ours.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Axes {
    left: Vec<Vec<Atom>>,
    right: Vec<Vec<Atom>>,
}

impl Layout {
    /// Reads an arrangement.
    ///
    /// # Errors
    /// Where it has no arrow, an open bracket, an axis twice, or an axis on one side only.
    pub fn parse(text: &str) -> Result<Self, Msg> {
        let wrong = |key: &'static str, what: &str| Msg::new(key).arg("layout", escape(text)).arg("what", escape(what));
        let (left, right) = text.split_once("->").ok_or_else(|| wrong("compare.layout.arrow", ""))?;
        let side = |text: &str| groups(text).map_err(|what| wrong("compare.layout.axis", &what));
        let layout = Axes { left: side(left)?, right: side(right)? };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (atoms, names) in [(&layout.left, &mut theirs), (&layout.right, &mut ours)] {
            for atom in atoms.iter().flatten() {
                match atom {
                    Atom::Axis(name) if names.contains(name) => {
                        return Err(wrong("compare.layout.twice", name));
                    }
                    Atom::Axis(name) => names.push(name.clone()),
                    Atom::Pick { .. } => {}
                }
            }
        }
        if let Some(Atom::Pick { at, .. }) = (layout.right.iter().flatten()).find(|a| matches!(a, Atom::Pick { .. })) {
            return Err(wrong("compare.layout.axis", &at.to_string()));
        }
        let lone = (theirs.iter().find(|n| !ours.contains(n))).or_else(|| ours.iter().find(|n| !theirs.contains(n)));
        match lone {
            Some(name) => Err(wrong("compare.layout.one_side", name)),
            None if layout.left.len() > MAX_RANK || layout.right.len() > MAX_RANK => {
                Err(wrong("compare.layout.axis", &(MAX_RANK + 1).to_string()))
            }
            None => Ok(Self(Kind::Axes(layout))),
        }
    }

    /// The layout of a tensor that is taken out of one of a file by these rewrites.
    pub(super) fn made(with: Vec<Rewrite>) -> Self {
        Self(Kind::Made(with))
    }

    /// The layout of the outputs of a matrix that is taken out of one of a file by these rewrites; `None` where they do
    /// something to it that its outputs do not show.
    pub(super) fn outputs(with: &[Rewrite]) -> Option<Self> {
        // Where the outputs lie before each rewrite.
        let transposed = with.iter().filter(|r| **r == Rewrite::Transpose).count();
        let mut axis_of_outputs = transposed % 2;
        let mut rows = Vec::new();
        for rewrite in with {
            match *rewrite {
                Rewrite::Transpose => axis_of_outputs = 1 - axis_of_outputs,
                Rewrite::Reshape(_) => {}
                Rewrite::Slice { axis, from, to, step } if axis == axis_of_outputs => {
                    rows.push(Rewrite::Slice { axis: 0, from, to, step });
                }
                Rewrite::Parts { .. } | Rewrite::Halves(_) | Rewrite::Pairs(_) if axis_of_outputs == 0 => {
                    rows.push(rewrite.clone());
                }
                Rewrite::Multiply(_) => rows.push(rewrite.clone()),
                _ => return None,
            }
        }
        Some(Self(Kind::Outputs(rows)))
    }

    /// The way back; `None` where only a part of the axes is taken.
    pub fn inverted(&self) -> Option<Self> {
        let Kind::Axes(axes) = &self.0 else { return None };
        let whole = !axes.left.iter().flatten().any(|a| matches!(a, Atom::Pick { .. }));
        whole.then(|| Self(Kind::Axes(Axes { left: axes.right.clone(), right: axes.left.clone() })))
    }

    /// Whether its first axis is a batch of which one element is ours: `0/* t d -> t d`.
    pub fn drops_batch(&self) -> bool {
        let Kind::Axes(axes) = &self.0 else { return false };
        matches!(axes.left.first().map(Vec::as_slice), Some([Atom::Pick { of: None, .. }]))
    }

    /// `tensor` in our arrangement, of shape `wanted`; `None` where it does not fit. A batch of 1 may be left out of
    /// the reference.
    pub fn arrange(&self, tensor: &Tensor<f64>, wanted: &Shape) -> Option<Tensor<f64>> {
        match &self.0 {
            Kind::Axes(axes) => axes.arrange(tensor, wanted),
            Kind::Made(with) => {
                let plan = Plan::new(tensor.shape().dims(), with).ok()?;
                let data = tensor.data();
                let cell = |flat| plan.element(flat, |at| data[at]);
                (plan.dims() == wanted.dims())
                    .then(|| Tensor::new(*wanted, (0..wanted.len()).map(cell).collect::<Vec<f64>>()))
            }
            Kind::Outputs(with) => {
                let width = *tensor.shape().dims().last()?;
                let plan = Plan::new(&[width], with).ok()?;
                let (data, kept) = (tensor.data(), plan.dims()[0]);
                // Rows of `[batch, token]`, and the components of a row, head by head where ours has heads.
                let (rows, heads) = match *wanted.dims() {
                    [b, h, t, d] if h * d == kept => (b * t, Some((h, t, d))),
                    [b, t, d] if d == kept => (b * t, None),
                    _ => return None,
                };
                if data.len() != rows * width {
                    return None;
                }
                let cell = |flat: usize| {
                    let (row, j) = match heads {
                        Some((h, t, d)) => (flat / (h * t * d) * t + flat / d % t, flat / (t * d) % h * d + flat % d),
                        None => (flat / kept, flat % kept),
                    };
                    plan.element(j, |at| data[row * width + at])
                };
                Some(Tensor::new(*wanted, (0..wanted.len()).map(cell).collect::<Vec<f64>>()))
            }
        }
    }
}

impl Axes {
    fn arrange(&self, tensor: &Tensor<f64>, wanted: &Shape) -> Option<Tensor<f64>> {
        let mut found = tensor.shape().dims().to_vec();
        if found.len() + 1 == self.left.len() && wanted.dims().first() == Some(&1) {
            found.insert(0, 1);
        }
        if found.len() != self.left.len() || wanted.rank() != self.right.len() {
            return None;
        }
        let sizes = self.sizes(&found, wanted.dims())?;
        let size = |atom: &Atom, of: usize| match atom {
            Atom::Axis(name) => sizes[name],
            Atom::Pick { of: n, .. } => n.unwrap_or(of),
        };
        let atoms = || self.left.iter().zip(&found).flat_map(|(group, n)| group.iter().map(|atom| (atom, *n)));
        let split: Vec<usize> = atoms().map(|(atom, n)| size(atom, n)).collect();
        let mut view = tensor.view().into_shape_with_order(split).ok()?;
        let mut names = Vec::new();
        for (d, (atom, _)) in atoms().collect::<Vec<_>>().into_iter().enumerate().rev() {
            match atom {
                Atom::Axis(name) => names.insert(0, name),
                Atom::Pick { at, .. } if *at < view.shape()[d] => view = view.index_axis_move(ndarray::Axis(d), *at),
                Atom::Pick { .. } => return None,
            }
        }
        let place = |atom: &Atom| match atom {
            Atom::Axis(name) => names.iter().position(|n| *n == name),
            Atom::Pick { .. } => None,
        };
        let order: Vec<usize> = self.right.iter().flatten().filter_map(place).collect();
        if order.len() != names.len() {
            return None;
        }
        let data: Vec<f64> = view.permuted_axes(order).iter().copied().collect();
        Some(Tensor::new(*wanted, data))
    }

    /// Length of each axis, where both shapes agree on them.
    fn sizes(&self, found: &[usize], wanted: &[usize]) -> Option<HashMap<String, usize>> {
        let mut sizes: HashMap<String, usize> = HashMap::new();
        let sides = || (self.left.iter().zip(found)).chain(self.right.iter().zip(wanted));
        // Each round finds an axis at least, or all that can be found are.
        loop {
            let before = sizes.len();
            for (group, &length) in sides() {
                let mut known = 1;
                let mut open = Vec::new();
                for atom in group {
                    match atom {
                        Atom::Axis(name) => match sizes.get(name) {
                            Some(n) => known *= n,
                            None => open.push(name),
                        },
                        Atom::Pick { of: Some(n), .. } => known *= n,
                        Atom::Pick { of: None, .. } if group.len() == 1 => known *= length,
                        Atom::Pick { of: None, .. } => return None,
                    }
                }
                match open[..] {
                    [] if known == length => {}
                    [name] if known > 0 && length % known == 0 => {
                        sizes.insert(name.clone(), length / known);
                    }
                    [] | [_] => return None,
                    _ => {}
                }
            }
            if sizes.len() == before {
                break;
            }
        }
        let picks_inside = sides().all(|(group, &length)| {
            (group.iter()).all(|a| !matches!(a, Atom::Pick { at, of } if *at >= of.unwrap_or(length)))
        });
        let all = (self.left.iter().flatten()).all(|a| !matches!(a, Atom::Axis(name) if !sizes.contains_key(name)));
        (all && picks_inside).then_some(sizes)
    }
}

/// The axes of one side; the text that is none where there is one.
fn groups(text: &str) -> Result<Vec<Vec<Atom>>, String> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let (mut out, mut open): (Vec<Vec<Atom>>, Option<Vec<Atom>>) = (Vec::new(), None);
    for word in spaced.split_whitespace() {
        match (word, &mut open) {
            ("(", None) => open = Some(Vec::new()),
            (")", Some(atoms)) if !atoms.is_empty() => out.extend(open.take()),
            (_, Some(atoms)) => atoms.push(atom(word)?),
            (_, None) => out.push(vec![atom(word)?]),
        }
    }
    match open {
        Some(_) => Err("(".to_owned()),
        None => Ok(out),
    }
}

fn atom(word: &str) -> Result<Atom, String> {
    let bad = || word.to_owned();
    if let Some((at, of)) = word.split_once('/') {
        // No fused projection joins more than a few; a product of lengths must not overflow.
        let number = |text: &str| text.parse().ok().filter(|n| *n <= 4096).ok_or_else(bad);
        let at = number(at)?;
        let of = match of {
            "*" => None,
            n => Some(number(n)?),
        };
        return Ok(Atom::Pick { at, of });
    }
    let named = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if named { Ok(Atom::Axis(word.to_owned())) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(dims: &[usize]) -> Tensor<f64> {
        let shape = Shape::new(dims);
        Tensor::new(shape, (0..shape.len()).map(|i| i as f64).collect::<Vec<_>>())
    }

    fn arranged(layout: &str, from: &[usize], to: &[usize]) -> Option<Vec<f64>> {
        let layout = Layout::parse(layout).expect("a layout");
        let out = layout.arrange(&counted(from), &Shape::new(to))?;
        Some(out.data().to_vec())
    }

    #[test]
    fn heads_side_by_side_become_an_axis() {
        // [1, 2, 2·3] → [1, 2, 2, 3]: row (token 0, heads 0 1), (token 1, heads 0 1).
        let out = arranged("b t (h d) -> b h t d", &[1, 2, 6], &[1, 2, 2, 3]);
        let want = [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11].map(f64::from);
        assert_eq!(out, Some(want.to_vec()));
        // The batch may be left out.
        let out = arranged("b t (h d) -> b h t d", &[2, 6], &[1, 2, 2, 3]);
        assert_eq!(out, Some(want.to_vec()));
    }

    #[test]
    fn parts_of_an_axis_are_picked() {
        let key = arranged("b t (1/3 h d) -> b h t d", &[1, 1, 12], &[1, 2, 1, 2]);
        assert_eq!(key, Some(vec![4.0, 5.0, 6.0, 7.0]));
        let key = arranged("b t (h 1/3 d) -> b h t d", &[1, 1, 12], &[1, 2, 1, 2]);
        assert_eq!(key, Some(vec![2.0, 3.0, 8.0, 9.0]));
        let first = arranged("0/* t d -> t d", &[2, 2, 2], &[2, 2]);
        assert_eq!(first, Some(vec![0.0, 1.0, 2.0, 3.0]));
        let weight = arranged("i (2/3 o) -> o i", &[2, 6], &[2, 2]);
        assert_eq!(weight, Some(vec![4.0, 10.0, 5.0, 11.0]));
        let joined = arranged("h i d -> (h d) i", &[2, 3, 1], &[2, 3]);
        assert_eq!(joined, Some((0..6).map(f64::from).collect()));
    }

    #[test]
    fn shapes_that_disagree_do_not_fit() {
        assert_eq!(arranged("b t (h d) -> b h t d", &[1, 2, 7], &[1, 2, 2, 3]), None);
        assert_eq!(arranged("b t h d -> b h t d", &[1, 2, 6], &[1, 2, 2, 3]), None);
        assert_eq!(arranged("b t (1/3 d) -> b t d", &[1, 1, 8], &[1, 1, 2]), None);
        assert_eq!(arranged("3/* t -> t", &[2, 2], &[2]), None);
        assert_eq!(arranged("(a b) -> (a b)", &[6], &[6]), None);
    }

    #[test]
    fn what_is_no_layout_is_told() {
        for (text, key) in [
            ("b t d", "compare.layout.arrow"),
            ("b (t -> b t", "compare.layout.axis"),
            ("b t) -> b t", "compare.layout.axis"),
            ("b -> b 0/2", "compare.layout.axis"),
            ("b é -> b é", "compare.layout.axis"),
            ("b b -> b", "compare.layout.twice"),
            ("b t -> b", "compare.layout.one_side"),
            ("b -> b t", "compare.layout.one_side"),
            ("a b c d e f g -> a b c d e f g", "compare.layout.axis"),
        ] {
            assert_eq!(Layout::parse(text).expect_err(text).key, key, "{text}");
        }
    }
}
