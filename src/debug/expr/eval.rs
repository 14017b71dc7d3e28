//! The value of an expression.

use super::array::{Array, Unfit, same};
use super::ast::{AxisNode, Expr, Kind, Node, Pick, PickNode};
use super::error::{ExprError, Fault};
use super::functions::Function;
use crate::tensor::{MAX_RANK, Shape};
use crate::text::{Msg, escape};
use crate::trace::derive::Cell;

/// Most cells of a result that must be made: 512 MiB.
const MAX_CELLS: usize = 1 << 26;

/// Most multiplications of a matrix product.
const MAX_WORK: usize = 1 << 30;

/// What names denote.
pub trait Scope {
    /// The tensor called `name`.
    ///
    /// # Errors
    /// Why there is none.
    fn named(&self, name: &str) -> std::result::Result<Array, NameFault>;

    /// The tensor that a condition is about; `None` where there is none.
    fn it(&self) -> Option<Array> {
        None
    }

    /// What it was before; `None` where nothing was.
    fn before(&self) -> Option<Array> {
        None
    }
}

/// Why a name has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// There is none of this name; the nearest one.
    Unknown(Option<String>),
    /// It is computed after this step.
    NotYet,
    /// Anything else.
    Other(Msg),
}

type Result<T> = std::result::Result<T, ExprError>;

impl Expr {
    /// The value of the expression.
    ///
    /// # Errors
    /// A name without a value, shapes that do not fit, an index outside: with the place in the text.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Array> {
        eval(self.root(), scope)
    }

    /// Whether it holds: a comparison holds where it does for any cell. The position of the first cell for which it
    /// does (in the shape of the result), and how many there are.
    ///
    /// # Errors
    /// As [`eval`](Self::eval); and where it is a number, not a comparison.
    pub fn holds(&self, scope: &dyn Scope) -> Result<Option<Holds>> {
        if !self.is_truth() {
            let at = self.root().at.clone();
            return Err(ExprError::new(Fault::Syntax, at, Msg::new("expr.not_truth")));
        }
        let truth = self.eval(scope)?;
        let (mut first, mut count, mut i) = (None, 0, 0);
        truth.scan(&mut |x| {
            if x != 0.0 {
                first.get_or_insert(i);
                count += 1;
            }
            i += 1;
        });
        Ok(first.map(|first| Holds { first, count, shape: *truth.shape() }))
    }
}

impl Expr {
    /// The cell that a number of a whole tensor is about: where its largest is, its first NaN, its first zero. Run and
    /// cell; `None` for other numbers.
    pub fn witness(&self, scope: &dyn Scope) -> Option<(usize, Cell)> {
        let Kind::Call(f, args, None) = &self.root().kind else {
            return None;
        };
        let [arg] = &args[..] else { return None };
        let (of, size) = match &arg.kind {
            Kind::Call(Function::Abs, inner, None) => (inner.first()?, true),
            _ => (arg, false),
        };
        let of = eval(of, scope).ok()?;
        let seen = |x: f64| if size { x.abs() } else { x };
        let wanted = f.eval(&of.map(seen)).number()?;
        let fits = |x: f64| match f {
            Function::Max | Function::Min => same(x, wanted),
            Function::Nan => x.is_nan(),
            Function::Inf => x.is_infinite(),
            Function::Zeros => x == 0.0,
            _ => false,
        };
        let (mut found, mut i) = (None, 0);
        of.scan(&mut |x| {
            if found.is_none() && fits(seen(x)) {
                found = Some(i);
            }
            i += 1;
        });
        of.cell(found?)
    }
}

/// For which cells a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Position of the first.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Shape of the comparison.
    pub shape: Shape,
}

fn wrong(node: &Node, msg: Msg) -> ExprError {
    ExprError::new(Fault::Value, node.at.clone(), msg)
}

fn eval(node: &Node, scope: &dyn Scope) -> Result<Array> {
    match &node.kind {
        Kind::Number(x) => Ok(Array::scalar(*x)),
        Kind::Name(name) => scope.named(name).map_err(|why| no_name(node, name, why)),
        Kind::It => scope.it().ok_or_else(|| ExprError::new(Fault::Value, node.at.clone(), Msg::new("expr.no_it"))),
        Kind::Before => {
            scope.before().ok_or_else(|| ExprError::new(Fault::NotYet, node.at.clone(), Msg::new("expr.no_before")))
        }
        Kind::Changed => Ok(changed(scope)),
        Kind::Negative(a) => Ok(eval(a, scope)?.map(|x| -x)),
        Kind::Not(a) => {
            let a = eval(a, scope)?;
            Ok(a.map(|x| f64::from(u8::from(x == 0.0))).with_truth(true))
        }
        Kind::Arithmetic(op, a, b) => {
            let op = *op;
            cellwise(node, &eval(a, scope)?, &eval(b, scope)?, |x, y| op.eval(x, y))
        }
        Kind::Logic(both, a, b) => {
            let (a, b) = (eval(a, scope)?, eval(b, scope)?);
            // Comparisons of tensors of other shapes are joined as wholes: `any nan or max > 10`.
            let (a, b) = if a.common(&b).is_some() { (a, b) } else { (Function::Any.eval(&a), Function::Any.eval(&b)) };
            let both = *both;
            let join = |x: f64, y: f64| {
                let (x, y) = (x != 0.0, y != 0.0);
                f64::from(u8::from(if both { x && y } else { x || y }))
            };
            Ok(cellwise(node, &a, &b, join)?.with_truth(true))
        }
        Kind::Compare(c, a, b, tolerance) => {
            let (c, a, b) = (*c, eval(a, scope)?, eval(b, scope)?);
            let tolerance = match tolerance {
                None => 0.0,
                Some(t) => match eval(t, scope)?.number() {
                    Some(x) if x >= 0.0 => x,
                    _ => return Err(wrong(t, Msg::new("expr.bad_tolerance"))),
                },
            };
            let compare = |x, y| f64::from(u8::from(c.eval(x, y, tolerance)));
            Ok(cellwise(node, &a, &b, compare)?.with_truth(true))
        }
        Kind::Product(a, b) => {
            let (a, b) = (eval(a, scope)?, eval(b, scope)?);
            a.product(&b, |cells, work| cells <= MAX_CELLS && work <= MAX_WORK).map_err(|unfit| {
                let key = match unfit {
                    Unfit::Shapes => "expr.product_shapes",
                    Unfit::Large => "expr.too_large",
                };
                wrong(node, shapes(key, a.shape(), b.shape()))
            })
        }
        Kind::Index(of, picks) => index(eval(of, scope)?, picks, scope),
        Kind::Transposed(a) => Ok(eval(a, scope)?.transposed()),
        Kind::Call(f, args, axis) => call(node, *f, args, axis.as_ref(), scope),
    }
}

fn no_name(node: &Node, name: &str, why: NameFault) -> ExprError {
    let say = |fault, key| ExprError::new(fault, node.at.clone(), Msg::new(key).arg("name", escape(name)));
    match why {
        NameFault::Unknown(near) => {
            let e = say(Fault::Name, "expr.unknown_name");
            match near {
                Some(near) => e.help(Msg::new("diagnostic.did_you_mean").arg("name", escape(&near))),
                None => e,
            }
        }
        NameFault::NotYet => say(Fault::NotYet, "expr.not_yet"),
        NameFault::Other(msg) => ExprError::new(Fault::Value, node.at.clone(), msg),
    }
}

fn shapes(key: &'static str, a: &Shape, b: &Shape) -> Msg {
    Msg::new(key).arg("left", a).arg("right", b)
}

fn cellwise(node: &Node, a: &Array, b: &Array, f: impl Fn(f64, f64) -> f64) -> Result<Array> {
    match a.common(b) {
        None => Err(wrong(node, shapes("expr.shapes", a.shape(), b.shape()))),
        Some(shape) if shape.len() > MAX_CELLS => Err(wrong(node, shapes("expr.too_large", a.shape(), b.shape()))),
        Some(shape) => Ok(a.zip(b, shape, f)),
    }
}

/// Which cells of `it` are other than before; all of it where it has another shape, none where nothing was.
fn changed(scope: &dyn Scope) -> Array {
    let truth = |x: bool| f64::from(u8::from(x));
    let found = match (scope.it(), scope.before()) {
        (Some(it), Some(before)) if it.shape().same_dims(before.shape()) => {
            it.zip(&before, *it.shape(), |x, y| truth(!same(x, y)))
        }
        (Some(_), Some(_)) => Array::scalar(1.0),
        _ => Array::scalar(0.0),
    };
    found.with_truth(true)
}

/// A whole number.
fn whole(node: &Node, scope: &dyn Scope) -> Result<i64> {
    match eval(node, scope)?.number() {
        Some(x) if x.fract() == 0.0 && x.abs() < 1e15 => Ok(x as i64),
        _ => Err(wrong(node, Msg::new("expr.not_whole"))),
    }
}

/// A place on an axis of length `len`; negative ones count from the end.
fn place(i: i64, len: usize) -> Option<usize> {
    usize::try_from(if i < 0 { i + len as i64 } else { i }).ok()
}

/// One place of an axis, or some of them.
enum Part {
    At(usize),
    Range(std::ops::Range<usize>),
}

/// What an index denotes on an axis of length `len`.
fn part(p: &PickNode, len: usize, scope: &dyn Scope) -> Result<Part> {
    let bad = |msg: Msg| ExprError::new(Fault::Value, p.at.clone(), msg);
    let bound = |node: &Node, most: usize| {
        let i = whole(node, scope)?;
        let outside = || bad(Msg::new("expr.outside").arg("index", i).arg("len", len));
        place(i, len).filter(|at| *at <= most).ok_or_else(outside)
    };
    let (from, to) = match &p.pick {
        Pick::At(i) => {
            let Some(last) = len.checked_sub(1) else {
                let outside = Msg::new("expr.outside").arg("index", whole(i, scope)?);
                return Err(bad(outside.arg("len", len)));
            };
            return bound(i, last).map(Part::At);
        }
        Pick::Range(from, to) => (from, to),
    };
    let or = |node: &Option<Node>, default| node.as_ref().map_or(Ok(default), |n| bound(n, len));
    let range = or(from, 0)?..or(to, len)?;
    if range.is_empty() {
        return Err(bad(Msg::new("expr.empty_range")));
    }
    Ok(Part::Range(range))
}

fn index(mut of: Array, picks: &[PickNode], scope: &dyn Scope) -> Result<Array> {
    // Reports and paths count a batch of 1, names of cells do not: both are understood.
    let in_order = picks.iter().filter(|p| p.axis.is_none()).count();
    let picks = match picks {
        [first, rest @ ..] if first.axis.is_none() && of.counts_batch(in_order) => {
            part(first, 1, scope)?;
            rest
        }
        all => all,
    };
    let shape = *of.shape();
    // Axes that went away move those behind them.
    let mut gone: Vec<usize> = Vec::new();
    let mut used = [false; MAX_RANK];
    let mut next = 0;
    for p in picks {
        let bad = |msg: Msg| ExprError::new(Fault::Value, p.at.clone(), msg);
        let axis = if let Some(axis) = p.axis {
            let at = shape.axes().iter().position(|a| *a == axis);
            at.ok_or_else(|| bad(Msg::new("slice.no_such_axis").arg("axis", axis.name()).arg("shape", shape)))?
        } else {
            next += 1;
            next - 1
        };
        if axis >= shape.rank() {
            return Err(bad(Msg::new("expr.many_indices").arg("shape", shape)));
        }
        if std::mem::replace(&mut used[axis], true) {
            return Err(bad(Msg::new("slice.axis_twice").arg("axis", shape.axes()[axis].name())));
        }
        let now = axis - gone.iter().filter(|g| **g < axis).count();
        match part(p, shape.dims()[axis], scope)? {
            Part::At(at) => {
                of = of.at(now, at);
                gone.push(axis);
            }
            Part::Range(range) => of = of.range(now, range),
        }
    }
    Ok(of)
}

fn call(node: &Node, f: Function, args: &[Node], axis: Option<&AxisNode>, scope: &dyn Scope) -> Result<Array> {
    let x = eval(&args[0], scope)?;
    if f.is_truth() && !x.is_truth() {
        return Err(wrong(&args[0], Msg::new("expr.not_truth")));
    }
    if let Some(second) = args.get(1) {
        let y = eval(second, scope)?;
        return cellwise(node, &x, &y, |x, y| f.pair(x, y));
    }
    let Some(axis) = axis else {
        return Ok(f.eval(&x));
    };
    let shape = *x.shape();
    let no_axis = |at: std::ops::Range<usize>, name: String| {
        let msg = Msg::new("slice.no_such_axis").arg("axis", name).arg("shape", shape);
        ExprError::new(Fault::Value, at, msg)
    };
    let at = match axis {
        AxisNode::Named(axis, at) => {
            shape.axes().iter().position(|a| a == axis).ok_or_else(|| no_axis(at.clone(), axis.name().to_owned()))?
        }
        // What has no value is a slip in the name of an axis.
        AxisNode::Place(n)
            if let Kind::Name(name) = &n.kind
                && let Err(NameFault::Unknown(_)) = scope.named(name) =>
        {
            return Err(no_axis(n.at.clone(), escape(name).into_owned()));
        }
        AxisNode::Place(n) => {
            let i = whole(n, scope)?;
            place(i, shape.rank()).filter(|d| *d < shape.rank()).ok_or_else(|| no_axis(n.at.clone(), i.to_string()))?
        }
    };
    Ok(f.along(&x, Some(at)))
}
