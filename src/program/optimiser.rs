//! Optimisers: an update is more nodes of the same program, `update.<parameter>.…`.
//!
//! What changes from one update to the next (the parameters, the optimiser's memory, the learning rate, the bias
//! corrections) enters as leaves, so that one program serves every update of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Affine, Binary, BuildError, Builder, Constant, Gradients, NodeId, Reduction, Role, ScopeKind, Unary};
use crate::tensor::{Axis, DType, MAX_RANK, Shape};

type Built = Result<NodeId, BuildError>;

/// How parameters are updated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Optimiser {
    /// Which.
    pub kind: OptimiserKind,
    /// Learning rate.
    pub lr: f64,
    /// Momentum, for SGD.
    pub momentum: f64,
    /// Weight decay: added to the gradient, or decoupled for AdamW.
    pub weight_decay: f64,
    /// β₁ and β₂, for Adam.
    pub betas: (f64, f64),
    /// ε, for Adam.
    pub eps: f64,
    /// Largest norm of all gradients together.
    pub clip: Option<f64>,
    /// Updates.
    pub steps: u64,
    /// Updates over which the learning rate rises to its value.
    pub warmup: u64,
    /// How it goes on.
    pub schedule: Schedule,
    /// Share of the learning rate that `Linear` and `Cosine` end with.
    pub floor: f64,
    /// Momentum that looks ahead (Nesterov), for SGD.
    pub nesterov: bool,
    /// Adam divides by the largest v so far (AMSGrad).
    pub amsgrad: bool,
    /// Adam divides m and v by 1 − βᵗ; BERT's own optimiser does not.
    pub bias_correction: bool,
    /// Batches whose gradients are averaged for an update (gradient accumulation); `train --batch` says how large they are.
    pub accumulate: u64,
    /// Parameters with settings of their own, such as no decay on norms and biases; the first that fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ParameterGroup>,
}

impl Default for Optimiser {
    fn default() -> Self {
        Self {
            kind: OptimiserKind::Sgd,
            lr: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
            betas: (0.9, 0.999),
            eps: 1e-8,
            clip: None,
            steps: 100,
            warmup: 0,
            schedule: Schedule::Constant,
            floor: 0.0,
            nesterov: false,
            amsgrad: false,
            bias_correction: true,
            accumulate: 1,
            groups: Vec::new(),
        }
    }
}

/// Settings of the parameters that a pattern fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ParameterGroup {
    /// Glob over parameter paths, such as `*.bias`.
    pub paths: String,
    /// Factor of the learning rate.
    #[serde(default = "one")]
    pub rate: f64,
    /// Weight decay, where it is not that of the others.
    #[serde(default)]
    pub weight_decay: Option<f64>,
}

/// Kind of optimiser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum OptimiserKind {
    /// w − lr·g, with momentum where there is any.
    #[default]
    Sgd,
    /// Kingma and Ba 2015.
    Adam,
    /// Loshchilov and Hutter 2019.
    AdamW,
}

/// Course of the learning rate after warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Schedule {
    /// It stays.
    #[default]
    Constant,
    /// It falls to 0 along a line.
    Linear,
    /// It falls to 0 along half a cosine.
    Cosine,
    /// It falls with one over the root of the update's number.
    InverseSqrt,
}

fn one() -> f64 {
    1.0
}

impl OptimiserKind {
    /// Its name, as the command line takes it.
    pub fn name(self) -> &'static str {
        match self {
            OptimiserKind::Sgd => "sgd",
            OptimiserKind::Adam => "adam",
            OptimiserKind::AdamW => "adamw",
        }
    }
}

/// A setting of an optimiser that is out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct BadSetting {
    /// Path of the field: `betas[0]`, `groups[1].rate`.
    pub field: String,
    /// What is wrong with it.
    pub why: Fault,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// It is not above 0, or not finite.
    #[error("must be above 0, not {0}")]
    NotPositive(f64),
    /// It is below 0, or not finite.
    #[error("must be 0 or more, not {0}")]
    Negative(f64),
    /// It is not from 0 to below 1.
    #[error("must be from 0 to below 1, not {0}")]
    NotBelowOne(f64),
    /// It is not from 0 to 1.
    #[error("must be from 0 to 1, not {0}")]
    NoShare(f64),
    /// The pattern of a group is no glob.
    #[error("pattern {pattern}: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why it is none.
        why: String,
    },
}

impl Optimiser {
    /// Learning rate of update `update`, counted from 0.
    pub fn rate(&self, update: u64) -> f64 {
        if update < self.warmup {
            return self.lr * (update + 1) as f64 / self.warmup as f64;
        }
        let progress = || {
            let span = self.steps.saturating_sub(self.warmup).max(1) as f64;
            ((update - self.warmup) as f64 / span).min(1.0)
        };
        let share = match self.schedule {
            Schedule::Constant => 1.0,
            Schedule::Linear => 1.0 - (1.0 - self.floor) * progress(),
            Schedule::Cosine => {
                let wave = 0.5 * (1.0 + libm::cos(std::f64::consts::PI * progress()));
                self.floor + (1.0 - self.floor) * wave
            }
            Schedule::InverseSqrt => (self.warmup.max(1) as f64 / (update + 1) as f64).sqrt(),
        };
        self.lr * share
    }

    /// Updates until the end of the schedule, where it has one.
    pub fn over(&self) -> Option<u64> {
        match self.schedule {
            Schedule::Linear | Schedule::Cosine => Some(self.steps),
            Schedule::Constant | Schedule::InverseSqrt => None,
        }
    }

    /// Whether m and v of Adam are divided by 1 − βᵗ.
    fn corrects(&self) -> bool {
        self.kind != OptimiserKind::Sgd && self.bias_correction
    }

    /// 1 − β₁ᵗ and 1 − β₂ᵗ of update `update`, counted from 0 (t = update + 1); `None` where the rule has none.
    pub fn corrections(&self, update: u64) -> Option<[f64; 2]> {
        let t = (update + 1) as f64;
        self.corrects().then(|| [self.betas.0, self.betas.1].map(|b| 1.0 - libm::pow(b, t)))
    }

    /// The group of the parameter at `path`, where one fits.
    pub fn group_of(&self, path: &str) -> Option<usize> {
        self.groups.iter().position(|g| {
            let glob = globset::Glob::new(&g.paths);
            glob.is_ok_and(|glob| glob.compile_matcher().is_match(path))
        })
    }

    /// Every setting that is out of its range.
    pub fn faults(&self) -> Vec<BadSetting> {
        let mut found = Vec::new();
        let mut check = |field: String, good: bool, why: Fault| {
            if !good {
                found.push(BadSetting { field, why });
            }
        };
        let below_one = |x: f64| (0.0..1.0).contains(&x);
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let whole = [("steps", self.steps), ("accumulate", self.accumulate)].map(|(field, n)| (field, n as f64));
        for (field, x) in
            [("lr", self.lr), ("eps", self.eps), ("clip", self.clip.unwrap_or(1.0))].into_iter().chain(whole)
        {
            check(field.into(), positive(x), Fault::NotPositive(x));
        }
        check("weight_decay".into(), not_negative(self.weight_decay), Fault::Negative(self.weight_decay));
        for (field, x) in [("momentum", self.momentum), ("betas[0]", self.betas.0), ("betas[1]", self.betas.1)] {
            check(field.into(), below_one(x), Fault::NotBelowOne(x));
        }
        check("floor".into(), (0.0..=1.0).contains(&self.floor), Fault::NoShare(self.floor));
        for (i, group) in self.groups.iter().enumerate() {
            for (field, x) in [("rate", group.rate), ("weight_decay", group.weight_decay.unwrap_or(0.0))] {
                check(format!("groups[{i}].{field}"), not_negative(x), Fault::Negative(x));
            }
            if let Err(e) = globset::Glob::new(&group.paths) {
                let why = Fault::Pattern { pattern: group.paths.clone(), why: e.kind().to_string() };
                check(format!("groups[{i}].paths"), false, why);
            }
        }
        found
    }
}

/// Memory of an optimiser for one parameter.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its name: `m`, `v`, `velocity`.
    pub name: &'static str,
    /// The leaf by which the last update's value enters (zeros at first).
    pub before: NodeId,
    /// The value after the update.
    pub after: NodeId,
}

/// The update of one parameter.
#[derive(Clone, Debug)]
pub struct ParameterUpdate {
    /// The parameter.
    pub parameter: NodeId,
    /// Its gradient.
    pub gradient: NodeId,
    /// What is taken off it.
    pub step: NodeId,
    /// The parameter after the update.
    pub new: NodeId,
    /// The optimiser's memory.
    pub slots: SmallVec<[Slot; 2]>,
}

/// Where an update is in its program.
#[derive(Clone, Debug)]
pub struct Updates {
    /// One a parameter that has a gradient, in forward order.
    pub parameters: Vec<ParameterUpdate>,
    /// Leaf of the learning rate, a scalar.
    pub learning_rate: NodeId,
    /// Leaves of 1 − β₁ᵗ and 1 − β₂ᵗ, scalars.
    pub corrections: Option<[NodeId; 2]>,
    /// Norm of all gradients together, where they are clipped.
    pub gradient_norm: Option<NodeId>,
    /// Sums of gradients over the batches of an update; empty where each update has one batch.
    pub accumulated: Vec<Slot>,
}

/// Appends the update of every parameter that has a gradient: `update.<parameter>.m`, `.v`, `.m_hat`, `.v_hat`,
/// `.step`, `.new` (as far as the rule has them); memory enters by `.m_before`, `.v_before`, `.velocity_before`. Where
/// gradients are accumulated, `.gradient_before` is their sum over the batches before, `.gradient_mean` what counts.
///
/// # Errors
/// Where a path `update.…` is taken.
pub fn append_update(b: &mut Builder, gradients: &Gradients, optimiser: &Optimiser) -> Result<Updates, BuildError> {
    let mut pairs: Vec<_> = gradients.parameters(b.program()).collect();
    b.scope("update", ScopeKind::Update, |b| {
        let mut accumulated = Vec::new();
        if optimiser.accumulate > 1 {
            for (parameter, gradient) in &mut pairs {
                let path = b.program().node(*parameter).path.to_string();
                let before = b.input(format!("{path}.gradient_before"), DType::Float, b.shape(*gradient))?;
                let after = b.binary(format!("{path}.gradient_sum"), Binary::Add, before, *gradient)?;
                let share = Affine::Div(optimiser.accumulate as f64);
                *gradient = b.affine(format!("{path}.gradient_mean"), share, after)?;
                accumulated.push(Slot { name: "gradient", before, after });
            }
        }
        let learning_rate = b.input("learning_rate", DType::Float, Shape::SCALAR)?;
        let corrections = if optimiser.corrects() {
            Some([
                b.input("bias_correction1", DType::Float, Shape::SCALAR)?,
                b.input("bias_correction2", DType::Float, Shape::SCALAR)?,
            ])
        } else {
            None
        };
        let mut rule = Rule {
            optimiser,
            learning_rate,
            corrections,
            decay_rate: None,
            clip: None,
            rates: vec![(learning_rate, None); optimiser.groups.len()],
            raised: BTreeMap::new(),
        };
        let decoupled = optimiser.kind == OptimiserKind::AdamW;
        if decoupled && optimiser.weight_decay > 0.0 {
            let at = Affine::Mul(optimiser.weight_decay);
            rule.decay_rate = Some(b.affine("decay_rate", at, learning_rate)?);
        }
        for (i, group) in optimiser.groups.iter().enumerate() {
            if group.rate != 1.0 {
                rule.rates[i].0 = b.affine(format!("group{i}_rate"), Affine::Mul(group.rate), learning_rate)?;
            }
            let decay = group.weight_decay.unwrap_or(optimiser.weight_decay);
            if decoupled && decay > 0.0 {
                let rate = b.affine(format!("group{i}_decay_rate"), Affine::Mul(decay), rule.rates[i].0)?;
                rule.rates[i].1 = Some(rate);
            }
        }
        let mut gradient_norm = None;
        if let (Some(limit), false) = (optimiser.clip, pairs.is_empty()) {
            let norm = global_norm(b, &pairs)?;
            gradient_norm = Some(norm);
            rule.clip = Some(clip_factor(b, norm, limit)?);
        }
        let mut parameters = Vec::with_capacity(pairs.len());
        for (parameter, gradient) in pairs {
            let path = b.program().node(parameter).path.to_string();
            // Shared by every parameter of the same rank, so they are outside the parameter's scope.
            rule.raise(b, b.shape(parameter).rank())?;
            let group = optimiser.group_of(&path);
            parameters.push(b.scope(&path, ScopeKind::Group, |b| rule.update(b, parameter, gradient, group))?);
        }
        Ok(Updates { parameters, learning_rate, corrections, gradient_norm, accumulated })
    })
}

/// √(Σ g²) over all gradients.
fn global_norm(b: &mut Builder, pairs: &[(NodeId, NodeId)]) -> Built {
    let mut sums = Vec::with_capacity(pairs.len());
    for &(parameter, gradient) in pairs {
        let path = b.program().node(parameter).path.to_string();
        let square = b.unary(format!("{path}.square"), Unary::Square, gradient)?;
        let n = b.shape(square).len();
        let row = b.reshape(format!("{path}.square_row"), square, Shape::named(&[(Axis::Other, n)]))?;
        b.inline(square);
        b.inline(row);
        sums.push(b.reduce(format!("{path}.square_sum"), Reduction::Sum, 0, row)?);
    }
    let all = b.concat("square_sums", 0, &sums)?;
    b.inline(all);
    let total = b.reduce("square_sum", Reduction::Sum, 0, all)?;
    let total = b.reshape("square_sum_scalar", total, Shape::SCALAR)?;
    b.inline(total);
    b.unary("gradient_norm", Unary::Sqrt, total)
}

/// min(1, limit/(norm + 10⁻⁶)), as `PyTorch`'s `clip_grad_norm_`.
fn clip_factor(b: &mut Builder, norm: NodeId, limit: f64) -> Built {
    let safe = b.affine("gradient_norm_safe", Affine::Add(1e-6), norm)?;
    let limit = b.constant("clip_norm", Shape::SCALAR, Constant::Filled(limit))?;
    let ratio = b.binary("clip_ratio", Binary::Div, limit, safe)?;
    // min(1, r) = −max(−1, −r).
    let minus = b.unary("clip_ratio_minus", Unary::Neg, ratio)?;
    let floor = b.constant("clip_floor", Shape::SCALAR, Constant::Filled(-1.0))?;
    let larger = b.binary("clip_minus", Binary::Max, floor, minus)?;
    for id in [safe, limit, ratio, minus, floor, larger] {
        b.inline(id);
    }
    b.unary("clip", Unary::Neg, larger)
}

struct Rule<'a> {
    optimiser: &'a Optimiser,
    learning_rate: NodeId,
    corrections: Option<[NodeId; 2]>,
    decay_rate: Option<NodeId>,
    clip: Option<NodeId>,
    /// Learning rate and decay rate of each group.
    rates: Vec<(NodeId, Option<NodeId>)>,
    /// Scalars under other ranks.
    raised: BTreeMap<(NodeId, usize), NodeId>,
}

impl Rule<'_> {
    /// All scalars with `rank` axes of length 1.
    fn raise(&mut self, b: &mut Builder, rank: usize) -> Result<(), BuildError> {
        let scalars = [self.learning_rate]
            .into_iter()
            .chain(self.corrections.into_iter().flatten())
            .chain(self.decay_rate)
            .chain(self.clip)
            .chain(self.rates.iter().flat_map(|(rate, decay)| [Some(*rate), *decay].into_iter().flatten()));
        for id in scalars.collect::<Vec<_>>() {
            if rank == 0 || self.raised.contains_key(&(id, rank)) {
                continue;
            }
            let name = b.program().node(id).name.then(Role::parse(&format!("rank{rank}")));
            let dims: SmallVec<[(Axis, usize); MAX_RANK]> = SmallVec::from_elem((Axis::One, 1), rank);
            let view = b.reshape(name, id, Shape::named(&dims))?;
            b.inline(view);
            self.raised.insert((id, rank), view);
        }
        Ok(())
    }

    fn scalar(&self, b: &Builder, id: NodeId, like: NodeId) -> NodeId {
        let rank = b.shape(like).rank();
        self.raised.get(&(id, rank)).copied().unwrap_or(id)
    }

    fn update(
        &self,
        b: &mut Builder,
        w: NodeId,
        gradient: NodeId,
        group: Option<usize>,
    ) -> Result<ParameterUpdate, BuildError> {
        let (learning_rate, decay_rate) = group.map_or((self.learning_rate, self.decay_rate), |g| self.rates[g]);
        let weight_decay =
            group.and_then(|g| self.optimiser.groups[g].weight_decay).unwrap_or(self.optimiser.weight_decay);
        let decoupled = self.optimiser.kind == OptimiserKind::AdamW;
        let mut g = gradient;
        if let Some(clip) = self.clip {
            let clip = self.scalar(b, clip, w);
            g = b.binary("clipped", Binary::Mul, g, clip)?;
        }
        let mut start = w;
        if let Some(rate) = decay_rate {
            let rate = self.scalar(b, rate, w);
            let decay = b.binary("decay", Binary::Mul, rate, w)?;
            start = b.binary("decayed", Binary::Sub, w, decay)?;
        } else if weight_decay > 0.0 && !decoupled {
            let pull = Affine::Mul(weight_decay);
            let pull = b.affine("decay", pull, w)?;
            b.inline(pull);
            g = b.binary("decayed_gradient", Binary::Add, g, pull)?;
        }
        let momentum = self.optimiser.momentum;
        let (direction, slots) = match self.optimiser.kind {
            OptimiserKind::Sgd if momentum > 0.0 => {
                let (velocity, slot) = Self::momentum(b, g, momentum)?;
                let mut direction = velocity;
                if self.optimiser.nesterov {
                    let ahead = b.affine("velocity_ahead", Affine::Mul(momentum), velocity)?;
                    b.inline(ahead);
                    direction = b.binary("direction", Binary::Add, g, ahead)?;
                }
                (direction, SmallVec::from_iter([slot]))
            }
            OptimiserKind::Sgd => (g, SmallVec::new()),
            OptimiserKind::Adam | OptimiserKind::AdamW => self.adam(b, g)?,
        };
        let rate = self.scalar(b, learning_rate, w);
        let step = b.binary("step", Binary::Mul, rate, direction)?;
        let new = b.binary("new", Binary::Sub, start, step)?;
        Ok(ParameterUpdate { parameter: w, gradient, step, new, slots })
    }

    /// u ← μ·u + g.
    fn momentum(b: &mut Builder, g: NodeId, mu: f64) -> Result<(NodeId, Slot), BuildError> {
        let before = b.input("velocity_before", DType::Float, b.shape(g))?;
        let kept = b.affine("velocity_kept", Affine::Mul(mu), before)?;
        b.inline(kept);
        let after = b.binary("velocity", Binary::Add, kept, g)?;
        let slot = Slot { name: "velocity", before, after };
        Ok((after, slot))
    }

    /// m̂/(√v̂ + ε).
    fn adam(&self, b: &mut Builder, g: NodeId) -> Result<(NodeId, SmallVec<[Slot; 2]>), BuildError> {
        let square = b.unary("gradient_square", Unary::Square, g)?;
        b.inline(square);
        let &Optimiser { betas: (beta1, beta2), eps, .. } = self.optimiser;
        let mut slots = SmallVec::new();
        let mut hats = SmallVec::<[NodeId; 2]>::new();
        for (i, ((name, seen), beta)) in [("m", g), ("v", square)].into_iter().zip([beta1, beta2]).enumerate() {
            let before = b.input(format!("{name}_before"), DType::Float, b.shape(g))?;
            let kept = b.affine(format!("{name}_kept"), Affine::Mul(beta), before)?;
            let added = b.affine(format!("{name}_added"), Affine::Mul(1.0 - beta), seen)?;
            b.inline(kept);
            b.inline(added);
            let after = b.binary(name, Binary::Add, kept, added)?;
            slots.push(Slot { name, before, after });
            let mut seen = after;
            if name == "v" && self.optimiser.amsgrad {
                let before = b.input("v_max_before", DType::Float, b.shape(g))?;
                seen = b.binary("v_max", Binary::Max, before, after)?;
                slots.push(Slot { name: "v_max", before, after: seen });
            }
            hats.push(match self.corrections {
                Some(corrections) => {
                    let correction = self.scalar(b, corrections[i], g);
                    b.binary(format!("{name}_hat"), Binary::Div, seen, correction)?
                }
                None => seen,
            });
        }
        let root = b.unary("root", Unary::Sqrt, hats[1])?;
        let safe = b.affine("root_eps", Affine::Add(eps), root)?;
        let ratio = b.binary("direction", Binary::Div, hats[0], safe)?;
        for id in [root, safe, ratio] {
            b.inline(id);
        }
        Ok((ratio, slots))
    }
}
