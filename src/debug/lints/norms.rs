//! Norms: is the mean the mean, the variance the variance over n, and ε small next to it.

use super::{Look, brief};
use crate::program::{Affine, NodeId, Op, ScopeKind, Unary};
use crate::scenario::lint::{Lint, Severity};
use crate::tensor::{Precision, Real};

/// Share of ε below which a variance is a warning: what was σ² becomes less than a third of the divisor's square.
const GRAVE: f64 = 0.5;

/// The nodes of a norm that lints look at.
struct Norm {
    input: NodeId,
    /// μ; `None` for `RMSNorm`.
    mean: Option<NodeId>,
    /// σ², or the mean square.
    var: NodeId,
}

/// ε as the program has it.
struct Epsilon {
    node: NodeId,
    size: f64,
    inside: bool,
}

pub(super) fn look<T: Real>(look: &mut Look<'_, T>) {
    let norms: Vec<Norm> = look
        .program
        .scopes()
        .filter_map(|(_, scope)| {
            let norm = match scope.kind {
                ScopeKind::LayerNorm { input, mean, var, .. } => Norm { input, mean: Some(mean), var },
                ScopeKind::RmsNorm { input, mean_square, .. } => Norm { input, mean: None, var: mean_square },
                _ => return None,
            };
            Some(norm).filter(|n| look.fresh(n.var))
        })
        .collect();
    let mut beside = Vec::new();
    for norm in norms {
        statistics(look, &norm);
        if let Some(eps) = epsilon(look, norm.var) {
            dominates(look, &norm, &eps);
            beside.extend(Some(eps).filter(|eps| !eps.inside));
        }
    }
    // Where one norm has it so, mostly all have.
    if let Some(eps) = beside.first() {
        let kind = (Lint::EpsilonBesideSigma, Severity::Info);
        look.tell(kind, (eps.node, None), (eps.size, beside.len()), &[]);
    }
}

/// Where ε is added, between the variance and the division.
fn epsilon<T: Real>(look: &Look<'_, T>, var: NodeId) -> Option<Epsilon> {
    let step = |id: NodeId, root: bool| {
        look.readers(id).find(|(_, node)| match node.op {
            Op::Affine(Affine::Add(_)) => true,
            Op::Unary(Unary::Sqrt) => root,
            _ => false,
        })
    };
    let (node, found) = step(var, true)?;
    if let Op::Affine(Affine::Add(size)) = found.op {
        return Some(Epsilon { node, size, inside: true });
    }
    let (node, found) = step(node, false)?;
    match found.op {
        Op::Affine(Affine::Add(size)) => Some(Epsilon { node, size, inside: false }),
        _ => None,
    }
}

/// What a row says of the mean and variance that were recorded for it.
enum Row {
    Good,
    Unbiased,
    WrongMean(f64),
    WrongVariance(f64),
}

/// Compares a row with its recorded mean and variance.
fn judge<T: Real>(row: &[T], mean: Option<T>, var: T) -> Row {
    let n = row.len() as f64;
    let (loose, tiny) = match T::PRECISION {
        Precision::F32 => (1e-3, 1e-4),
        Precision::F64 => (1e-9, 1e-11),
    };
    let x = row.iter().map(|x| x.to_f64());
    let largest = x.clone().fold(0.0, |a: f64, x| a.max(x.abs()));
    let mean = mean.map(Real::to_f64);
    if let Some(mean) = mean {
        let true_mean = x.clone().sum::<f64>() / n;
        if (mean - true_mean).abs() > loose * largest {
            return Row::WrongMean(true_mean);
        }
    }
    let centre = mean.unwrap_or(0.0);
    let squares: f64 = x.map(|x| (x - centre) * (x - centre)).sum();
    let (var, wanted) = (var.to_f64(), squares / n);
    // Of a row of nearly equal numbers rounding decides.
    if n < 2.0 || wanted.sqrt() <= tiny * largest {
        return if var.abs().sqrt() <= 10.0 * tiny * largest { Row::Good } else { Row::WrongVariance(wanted) };
    }
    let unbiased = squares / (n - 1.0);
    let (off, off_unbiased) = ((var - wanted).abs(), (var - unbiased).abs());
    // In f32 n and n − 1 of a long row are near each other: what is much nearer counts.
    if off_unbiased <= loose * unbiased && off_unbiased < off / 4.0 {
        Row::Unbiased
    } else if off <= loose * wanted {
        Row::Good
    } else {
        Row::WrongVariance(wanted)
    }
}

fn statistics<T: Real>(look: &mut Look<'_, T>, norm: &Norm) {
    let (x, var) = (look.numbers(norm.input), look.numbers(norm.var));
    let mean = norm.mean.map(|m| look.numbers(m));
    let n = *x.shape().dims().last().unwrap_or(&1);
    if n == 0 || var.data().len() * n != x.data().len() {
        return;
    }
    let mut unbiased = (0, 0);
    let mut wrong: Option<(NodeId, usize, f64, f64)> = None;
    let mut count = 0;
    for (row, cells) in x.data().chunks_exact(n).enumerate() {
        if cells.iter().any(|c| !c.is_finite()) {
            continue;
        }
        let mean = mean.as_ref().map(|m| m.data()[row]);
        let var = var.data()[row];
        let off = match judge(cells, mean, var) {
            Row::Good => continue,
            Row::Unbiased => {
                if unbiased.0 == 0 {
                    unbiased.1 = row;
                }
                unbiased.0 += 1;
                continue;
            }
            Row::WrongMean(wanted) => (norm.mean.unwrap_or(norm.var), row, mean.map_or(0.0, Real::to_f64), wanted),
            Row::WrongVariance(wanted) => (norm.var, row, var.to_f64(), wanted),
        };
        count += 1;
        wrong.get_or_insert(off);
    }
    if unbiased.0 > 0 {
        let kind = (Lint::VarianceUnbiased, Severity::Warning);
        let value = var.data()[unbiased.1].to_f64();
        let args = [("n", n.to_string()), ("less", (n - 1).to_string())];
        look.tell(kind, (norm.var, Some(unbiased.1)), (value, unbiased.0), &args);
    }
    if let Some((node, row, value, wanted)) = wrong {
        let kind = (Lint::NormStatistics, Severity::Error);
        let args = [("wanted", brief(wanted))];
        look.tell(kind, (node, Some(row)), (value, count), &args);
    }
}

/// ε is there to keep a division from 0, not to decide it.
fn dominates<T: Real>(look: &mut Look<'_, T>, norm: &Norm, eps: &Epsilon) {
    let var = look.numbers(norm.var);
    let size = |x: T| {
        let x = x.to_f64();
        if eps.inside { x } else { x.sqrt() }
    };
    // A row of equal numbers, such as one of zeros for padding, has nothing to divide.
    let below = |x: &T, bound: f64| *x != T::ZERO && size(*x) < bound * eps.size;
    let count = |bound: f64| var.data().iter().filter(|x| below(x, bound)).count();
    for (severity, bound) in [(Severity::Warning, GRAVE), (Severity::Info, 1.0)] {
        let Some(flat) = var.data().iter().position(|x| below(x, bound)) else {
            continue;
        };
        let args = [("eps", brief(eps.size))];
        let value = (var.data()[flat].to_f64(), count(bound));
        let kind = (Lint::EpsilonDominates, severity);
        look.tell(kind, (norm.var, Some(flat)), value, &args);
        return;
    }
}
