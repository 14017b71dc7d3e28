//! An expression as a tree.

use std::fmt;
use std::ops::Range;

use super::functions::Function;
use crate::tensor::Axis;

/// An expression, read from text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub kind: Kind,
    pub at: Range<usize>,
    /// Levels below and including this one.
    pub depth: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    Name(String),
    /// The tensor that a condition is about.
    It,
    /// What it was.
    Before,
    /// Which cells of it are other than before.
    Changed,
    Negative(Box<Node>),
    Not(Box<Node>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    Product(Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>, Option<Box<Node>>),
    /// Both (true) or either (false).
    Logic(bool, Box<Node>, Box<Node>),
    Index(Box<Node>, Vec<PickNode>),
    Transposed(Box<Node>),
    Call(Function, Vec<Node>, Option<AxisNode>),
}

/// What is taken of one axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PickNode {
    /// Which axis; the next in order where it has no name.
    pub axis: Option<Axis>,
    pub pick: Pick,
    pub at: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pick {
    At(Node),
    Range(Option<Node>, Option<Node>),
}

/// An axis by name or by place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AxisNode {
    Named(Axis, Range<usize>),
    Place(Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
}

impl Arithmetic {
    pub fn eval(self, a: f64, b: f64) -> f64 {
        match self {
            Arithmetic::Add => a + b,
            Arithmetic::Sub => a - b,
            Arithmetic::Mul => a * b,
            Arithmetic::Div => a / b,
            Arithmetic::Pow => libm::pow(a, b),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// NaN equals nothing, and is neither less nor greater.
    pub fn eval(self, a: f64, b: f64, tolerance: f64) -> bool {
        // The same infinity is equal to itself, though their difference is NaN.
        let equal = a == b || (a - b).abs() <= tolerance;
        match self {
            Comparison::Equal => equal,
            Comparison::Unequal => !equal,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterOrEqual => a >= b,
        }
    }
}

impl Expr {
    pub(super) fn new(root: Node, text: &str) -> Self {
        Self { root, text: text.to_owned() }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn root(&self) -> &Node {
        &self.root
    }

    /// Names in it, with their place in characters, in order.
    pub fn names(&self) -> Vec<(&str, Range<usize>)> {
        let mut names = Vec::new();
        self.root.walk(&mut |n| {
            if let Kind::Name(name) = &n.kind {
                names.push((name.as_str(), n.at.clone()));
            }
        });
        names
    }

    /// Whether it is about `it`, the tensor of a step.
    pub fn is_about_it(&self) -> bool {
        let mut found = false;
        self.root.walk(&mut |n| {
            found |= matches!(n.kind, Kind::It | Kind::Before | Kind::Changed);
        });
        found
    }

    /// Whether it is true or false: a comparison, or some put together.
    pub fn is_truth(&self) -> bool {
        self.root.is_truth()
    }

    /// The part of a comparison (or of the first one joined by `or` / `and`) that is on the left, with the tensor whose
    /// cells its truth is about: what a report of a condition shows.
    pub(super) fn first_comparison(&self) -> Option<&Node> {
        fn find(n: &Node) -> Option<&Node> {
            match &n.kind {
                Kind::Compare(_, left, _, _) => Some(left),
                Kind::Logic(_, a, b) => find(a).or_else(|| find(b)),
                Kind::Not(a) => find(a),
                _ => None,
            }
        }
        find(&self.root)
    }

    /// What is on the left of the first comparison, as an expression: the number that a report shows.
    pub fn measured(&self) -> Option<Expr> {
        let root = self.first_comparison()?.clone();
        let text = self.text.chars().skip(root.at.start).take(root.at.len()).collect();
        Some(Expr { text, root })
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Node {
    /// A node over children, with its depth counted.
    pub fn new(kind: Kind, at: Range<usize>) -> Self {
        let mut depth = 0;
        kind.children(&mut |c| depth = depth.max(c.depth));
        Self { kind, at, depth: depth + 1 }
    }

    pub fn is_truth(&self) -> bool {
        match &self.kind {
            Kind::Compare(..) | Kind::Logic(..) | Kind::Not(_) | Kind::Changed => true,
            Kind::Call(f, ..) => f.is_truth(),
            Kind::Index(of, _) | Kind::Transposed(of) => of.is_truth(),
            _ => false,
        }
    }

    fn walk<'n>(&'n self, seen: &mut dyn FnMut(&'n Node)) {
        seen(self);
        self.kind.children(&mut |c| c.walk(seen));
    }
}

impl Kind {
    fn children<'n>(&'n self, seen: &mut dyn FnMut(&'n Node)) {
        match self {
            Kind::Number(_) | Kind::Name(_) | Kind::It | Kind::Before | Kind::Changed => {}
            Kind::Negative(a) | Kind::Not(a) | Kind::Transposed(a) => seen(a),
            Kind::Arithmetic(_, a, b) | Kind::Product(a, b) | Kind::Logic(_, a, b) => {
                seen(a);
                seen(b);
            }
            Kind::Compare(_, a, b, tolerance) => {
                seen(a);
                seen(b);
                if let Some(tolerance) = tolerance {
                    seen(tolerance);
                }
            }
            Kind::Index(of, picks) => {
                seen(of);
                for p in picks {
                    match &p.pick {
                        Pick::At(i) => seen(i),
                        Pick::Range(from, to) => from.iter().chain(to).for_each(&mut *seen),
                    }
                }
            }
            Kind::Call(_, args, axis) => {
                args.iter().for_each(&mut *seen);
                if let Some(AxisNode::Place(place)) = axis {
                    seen(place);
                }
            }
        }
    }
}
