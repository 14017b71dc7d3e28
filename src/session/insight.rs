//! What a training run looks like from outside, as plain data for charts: gradient norms along the layers, attention
//! maps, and embeddings seen in two dimensions.

use std::sync::Arc;

use super::Session;
use super::training::TrainSteps;
use crate::program::optimiser::Optimiser;
use crate::program::{Block, Gradients, Leaf, Name, NodeId, Op, Program, Role, Side, Site};
use crate::tensor::{Axis, Real};
use crate::trace::train::{State, Stopped, TrainStep, reseeded};
use crate::trace::{Keep, Settings, Trace, run_with};

/// Size of the gradients of one part of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientNorm {
    /// The part: `encoder.0`, `embed`, `output`.
    pub part: String,
    /// √(Σ g²) at its last activation: what arrives there from the loss.
    pub activation: f64,
    /// √(Σ g²) over all its parameters.
    pub parameters: f64,
}

/// Norms of the gradients by part, in forward order: vanishing and exploding gradients show along it.
pub fn gradient_norms<T: Real>(trace: &Trace<T>, gradients: &Gradients) -> Vec<GradientNorm> {
    let program = trace.program();
    let mut parts: Vec<(GradientNorm, NodeId)> = Vec::new();
    for (of, grad) in gradients.iter().filter(|(of, _)| *of != gradients.loss) {
        let Some(value) = trace.get(grad) else {
            continue;
        };
        let squares: f64 = (0..value.shape().len()).map(|i| value.get(i) * value.get(i)).sum();
        let part = part_of(&program.node(of).name);
        let at = parts.iter().position(|(p, _)| p.part == part);
        let at = at.unwrap_or_else(|| {
            let fresh = GradientNorm { part, activation: 0.0, parameters: 0.0 };
            parts.push((fresh, of));
            parts.len() - 1
        });
        if matches!(program.node(of).op, Op::Leaf(Leaf::Parameter)) {
            parts[at].0.parameters += squares;
        } else {
            parts[at].0.activation = squares.sqrt();
            parts[at].1 = of;
        }
    }
    // Parameters stand where they are first read; a part, where its last activation is.
    parts.sort_by_key(|(_, last)| *last);
    parts.into_iter().map(|(p, _)| GradientNorm { parameters: p.parameters.sqrt(), ..p }).collect()
}

/// The layer a node is in, or the stack, the embeddings, the output.
fn part_of(name: &Name) -> String {
    let mut part = Name { call: name.call, site: name.site, ..Name::default() };
    if part.site == Site::Root {
        return Name { role: name.role.clone(), ..part }.to_string();
    }
    loop {
        match part.site {
            Site::Layer(_, _, Block::Layer) | Site::Stack(_) => return part.to_string(),
            _ => match part.outer() {
                Some(outer) if outer.site != Site::Root => part = outer,
                _ => return part.to_string(),
            },
        }
    }
}

/// The attention weights of one head for one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMap {
    /// Path of the weights.
    pub path: String,
    /// Which head, counted from 0.
    pub head: usize,
    /// One row a query, one column a key.
    pub weights: Vec<Vec<f64>>,
}

/// The attention maps of sentence `sentence`, in forward order.
pub fn attention_maps<T: Real>(trace: &Trace<T>, sentence: usize) -> Vec<AttentionMap> {
    let program = trace.program();
    let mut maps = Vec::new();
    for (id, node) in program.nodes() {
        let s = node.shape;
        let fits = node.name.site.is_attention()
            && *node.name.last() == Role::Weights
            && !node.name.is_gradient()
            && s.rank() == 4
            && s.axes()[3] == Axis::Key;
        // What was let go is computed anew where it is requested: only maps are.
        let Some(value) = fits.then(|| trace.get(id)).flatten() else {
            continue;
        };
        let weights = value.float().view();
        let sentence = weights.index_axis(ndarray::Axis(0), sentence.min(s.dims()[0] - 1));
        for (head, map) in sentence.outer_iter().enumerate() {
            let weights = map.outer_iter().map(|row| row.iter().map(|x| x.to_f64()).collect()).collect();
            maps.push(AttentionMap { path: node.path.to_string(), head, weights });
        }
    }
    maps
}

/// Two directions in which rows differ most.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    centre: Vec<f64>,
    axes: [Vec<f64>; 2],
}

impl Plane {
    /// The plane of the first two principal components of `rows` (Pearson 1901), by power iteration from a fixed
    /// start, so that it is the same whenever it is computed.
    pub fn of(rows: &[Vec<f64>]) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let n = rows.len().max(1) as f64;
        let mut centre = vec![0.0; width];
        for row in rows {
            for (c, x) in centre.iter_mut().zip(row) {
                *c += x / n;
            }
        }
        let mut left: Vec<Vec<f64>> =
            rows.iter().map(|row| row.iter().zip(&centre).map(|(x, c)| x - c).collect()).collect();
        let axes = [0, 1].map(|_| {
            let axis = leading(&left, width);
            for row in &mut left {
                let along = dot(row, &axis);
                for (x, a) in row.iter_mut().zip(&axis) {
                    *x -= along * a;
                }
            }
            axis
        });
        Self { centre, axes }
    }

    /// Where a row lies on it.
    pub fn project(&self, row: &[f64]) -> [f64; 2] {
        let centred: Vec<f64> = row.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
        [dot(&centred, &self.axes[0]), dot(&centred, &self.axes[1])]
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The direction along which centred rows are widest; zeros where they do not differ.
fn leading(rows: &[Vec<f64>], width: usize) -> Vec<f64> {
    let largest = rows.iter().max_by(|a, b| dot(a, a).total_cmp(&dot(b, b))).filter(|r| dot(r, r) > 1e-24);
    let Some(start) = largest else {
        return vec![0.0; width];
    };
    let mut axis = unit(start.clone());
    for _ in 0..200 {
        let mut next = vec![0.0; width];
        for row in rows {
            let along = dot(row, &axis);
            for (x, r) in next.iter_mut().zip(row) {
                *x += along * r;
            }
        }
        axis = unit(next);
    }
    // Either sign would do; the largest part is taken positive.
    let widest = axis.iter().copied().fold(0.0, |m: f64, x| if x.abs() > m.abs() { x } else { m });
    if widest < 0.0 {
        for x in &mut axis {
            *x = -*x;
        }
    }
    axis
}

fn unit(mut x: Vec<f64>) -> Vec<f64> {
    let norm = dot(&x, &x).sqrt();
    if norm > 0.0 {
        for v in &mut x {
            *v /= norm;
        }
    }
    x
}

/// The model at one point of its training, over all sentences.
#[derive(Clone, Debug)]
pub struct ModelSnapshot {
    /// Updates made.
    pub update: u64,
    /// Loss over all sentences.
    pub loss: f64,
    /// Gradient norms by part.
    pub gradients: Vec<GradientNorm>,
    /// Attention maps of the first sentence.
    pub attention: Vec<AttentionMap>,
    /// Token embeddings on one plane, that of the last look, so that they can be followed.
    pub embeddings: Vec<[f64; 2]>,
}

/// Looks at the model in each of `states`: a run forward and back, nothing is learned.
///
/// # Errors
/// Where a program does not build or run.
pub fn looks<T: Real>(
    session: &Session,
    run: usize,
    optimiser: &Optimiser,
    states: Vec<State<T>>,
) -> Result<Vec<ModelSnapshot>, Stopped> {
    let mut train_steps = TrainSteps::new(session, run, optimiser.clone(), None, 0);
    let mut out = Vec::new();
    let mut tables = Vec::new();
    for mut state in states {
        let train_step = train_steps
            .train_step(state.update)
            .map_err(|e| Stopped::Build { update: state.update, error: Box::new(e) })?;
        train_step.bind(optimiser, &mut state);
        let trace = look(&train_step.program, &train_step, &state)?;
        tables.push(embeddings(train_step.program.as_ref(), &trace));
        out.push(ModelSnapshot {
            update: state.update,
            loss: trace.value(train_step.loss).get(0),
            gradients: gradient_norms(&trace, &train_step.gradients),
            attention: attention_maps(&trace, 0),
            embeddings: Vec::new(),
        });
    }
    if let Some(last) = tables.last() {
        let plane = Plane::of(last);
        for (look, table) in out.iter_mut().zip(&tables) {
            look.embeddings = table.iter().map(|row| plane.project(row)).collect();
        }
    }
    Ok(out)
}

/// The model before one update, with what a screen shows of it.
#[derive(Clone, Debug)]
pub struct TrainProbe {
    /// What is seen; its embeddings are not placed.
    pub look: ModelSnapshot,
    /// √(Σ g²) of each parameter, in the order of their gradients.
    pub parameters: Vec<(String, f64)>,
    /// Embeddings of the tokens that were asked for, `[token, d_model]`.
    pub rows: Vec<Vec<f64>>,
    /// Attention maps that are not kept, since probes are many and maps may be large.
    pub maps_left_out: usize,
}

/// Attention weights that a probe keeps.
const MAX_WEIGHTS: usize = 1 << 18;

/// Looks at the model in `state`, with the dropout of its update: the loss is that which the update begins from.
/// Of the embeddings, those of `tokens` are taken.
///
/// # Errors
/// Where the program does not build or run.
pub fn probe<T: Real>(
    train_steps: &mut TrainSteps<'_>,
    optimiser: &Optimiser,
    mut state: State<T>,
    tokens: &[usize],
) -> Result<TrainProbe, Stopped> {
    let train_step = train_steps
        .train_step(state.update)
        .map_err(|e| Stopped::Build { update: state.update, error: Box::new(e) })?;
    train_step.bind(optimiser, &mut state);
    let program = reseeded(&train_step.program, state.update);
    let trace = look(&program, &train_step, &state)?;
    let norm = |grad: NodeId| {
        let value = trace.get(grad)?;
        let squares: f64 = (0..value.shape().len()).map(|i| value.get(i) * value.get(i)).sum();
        Some(squares.sqrt())
    };
    let parameters = train_step
        .gradients
        .iter()
        .filter(|(of, _)| matches!(program.node(*of).op, Op::Leaf(Leaf::Parameter)))
        .filter_map(|(of, grad)| Some((program.node(of).path.to_string(), norm(grad)?)))
        .collect();
    let table = embedding_table(&program).and_then(|id| trace.get(id));
    let rows = table.map_or_else(Vec::new, |value| {
        let width = value.shape().dims().last().copied().unwrap_or(1).max(1);
        let held = value.shape().len() / width;
        let row = |r: &usize| (0..width).map(|i| value.get(r * width + i)).collect();
        tokens.iter().filter(|r| **r < held).map(row).collect()
    });
    let mut attention = attention_maps(&trace, 0);
    let all = attention.len();
    let mut room = MAX_WEIGHTS;
    attention.retain(|map| {
        let weights = map.weights.iter().map(Vec::len).sum();
        let fits = room.checked_sub(weights);
        room = fits.unwrap_or(room);
        fits.is_some()
    });
    Ok(TrainProbe {
        maps_left_out: all - attention.len(),
        look: ModelSnapshot {
            update: state.update,
            loss: trace.value(train_step.loss).get(0),
            gradients: gradient_norms(&trace, &train_step.gradients),
            attention,
            embeddings: Vec::new(),
        },
        parameters,
        rows,
    })
}

fn look<T: Real>(program: &Arc<Program>, train_step: &TrainStep, state: &State<T>) -> Result<Trace<T>, Stopped> {
    let settings = Settings {
        keep: Keep::only(program, |id| {
            let name = &program.node(id).name;
            let weights = name.site.is_attention() && *name.last() == Role::Weights;
            id == train_step.loss || name.is_gradient() || weights
        }),
        timed: false,
        ..Settings::default()
    };
    run_with(program, &state.values, &settings, &mut ())
        .map_err(|error| Stopped::Run { update: state.update, error: Box::new(error) })
}

/// The embedding table of the side that the output speaks, else the only one.
pub fn embedding_table(program: &Program) -> Option<NodeId> {
    let sides = [None, Some(Side::Target), Some(Side::Source)];
    sides.into_iter().find_map(|side| program.named(&Name::of(Site::Embedding(side)).then(Role::Weight)))
}

/// Rows of the embedding table of the side that the output speaks, else of the only one.
fn embeddings<T: Real>(program: &Program, trace: &Trace<T>) -> Vec<Vec<f64>> {
    let Some(value) = embedding_table(program).and_then(|id| trace.get(id)) else {
        return Vec::new();
    };
    let width = value.shape().dims().last().copied().unwrap_or(1).max(1);
    (0..value.shape().len() / width).map(|r| (0..width).map(|i| value.get(r * width + i)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_holds_what_differs_most() {
        // Points of a tilted ellipse in three dimensions, far from the origin.
        let rows: Vec<Vec<f64>> = (0..24)
            .map(|i| {
                let t = f64::from(i) * std::f64::consts::TAU / 24.0;
                let (long, short) = (5.0 * t.cos(), 2.0 * t.sin());
                vec![7.0 + 0.6 * long, -3.0 + 0.8 * long, 1.0 + short]
            })
            .collect();
        let plane = Plane::of(&rows);
        for row in &rows {
            let [x, y] = plane.project(row);
            assert!(((x / 5.0).powi(2) + (y / 2.0).powi(2) - 1.0).abs() < 1e-9);
        }
        // No differences, no directions, no NaN.
        let same = vec![vec![1.0, 2.0]; 3];
        assert_eq!(Plane::of(&same).project(&same[0]), [0.0, 0.0]);
        assert_eq!(Plane::of(&[]).project(&[]), [0.0, 0.0]);
    }

    #[test]
    fn parts() {
        assert_eq!(part_of(&Name::parse("encoder.1.self_attn.q.weight")), "encoder.1");
        assert_eq!(part_of(&Name::parse("encoder.final_norm.out")), "encoder");
        assert_eq!(part_of(&Name::parse("embed.source.positions.weight")), "embed");
    }
}
