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

/// How parameters follow their gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Optimiser {
    /// The rule.
    pub method: Method,
    /// Learning rate after the warm-up.
    pub learning_rate: f64,
    /// λ: added to the gradient as λ·w, or, in `AdamW`, taken off the parameter as lr·λ·w.
    pub weight_decay: f64,
    /// Gradients are scaled down so that the norm of all together is at most this.
    pub clip_norm: Option<f64>,
    /// Updates over which the learning rate rises linearly to its value.
    pub warmup: u64,
    /// How the learning rate falls afterwards.
    pub decay: Decay,
    /// Momentum that looks ahead: the step is g + μ·u instead of u (Nesterov; as `torch.optim.SGD(nesterov=True)`).
    pub nesterov: bool,
    /// Adam divides by the largest v so far (Reddi et al. 2018; as `torch.optim.Adam(amsgrad=True)`).
    pub amsgrad: bool,
    /// Adam divides m and v by 1 − βᵗ; `BertAdam` does not.
    pub bias_correction: bool,
    /// Parameters with settings of their own; the first group whose pattern fits a path holds for it.
    pub groups: Vec<Group>,
    /// Batches whose gradients are averaged for an update (gradient accumulation).
    pub accumulate: u64,
}

/// Settings of the parameters that a pattern fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Glob over paths, such as `*.bias`.
    pub paths: String,
    /// Factor of the learning rate.
    #[serde(default = "one")]
    pub rate: f64,
    /// λ, where it is not that of the others.
    #[serde(default)]
    pub weight_decay: Option<f64>,
}

fn one() -> f64 {
    1.0
}

impl Default for Optimiser {
    fn default() -> Self {
        Self {
            method: Method::Sgd { momentum: 0.0 },
            learning_rate: 0.1,
            weight_decay: 0.0,
            clip_norm: None,
            warmup: 0,
            decay: Decay::Constant,
            nesterov: false,
            amsgrad: false,
            bias_correction: true,
            groups: Vec::new(),
            accumulate: 1,
        }
    }
}

/// Rule of an update; g is the gradient, w the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Method {
    /// w − lr·g. With momentum μ: u ← μ·u + g, w − lr·u.
    Sgd {
        /// μ.
        #[serde(default)]
        momentum: f64,
    },
    /// Adam (Kingma and Ba 2015).
    Adam {
        /// β₁.
        #[serde(default = "beta1")]
        beta1: f64,
        /// β₂.
        #[serde(default = "beta2")]
        beta2: f64,
        /// ε, next to the root.
        #[serde(default = "epsilon")]
        eps: f64,
    },
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019).
    AdamW {
        /// β₁.
        #[serde(default = "beta1")]
        beta1: f64,
        /// β₂.
        #[serde(default = "beta2")]
        beta2: f64,
        /// ε, next to the root.
        #[serde(default = "epsilon")]
        eps: f64,
    },
}

fn beta1() -> f64 {
    0.9
}

fn beta2() -> f64 {
    0.999
}

fn epsilon() -> f64 {
    1e-8
}

impl Method {
    /// Adam with the usual numbers.
    pub fn adam() -> Self {
        Method::Adam { beta1: beta1(), beta2: beta2(), eps: epsilon() }
    }

    /// `AdamW` with the usual numbers.
    pub fn adamw() -> Self {
        Method::AdamW { beta1: beta1(), beta2: beta2(), eps: epsilon() }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Sgd { .. } => "sgd",
            Method::Adam { .. } => "adam",
            Method::AdamW { .. } => "adamw",
        }
    }
}

/// How the learning rate falls after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Decay {
    /// Not at all.
    #[default]
    Constant,
    /// Along a line, to `to` times the learning rate at update `over` and from then on.
    Linear {
        /// Update at which the end is reached.
        over: u64,
        /// Share that is left.
        #[serde(default)]
        to: f64,
    },
    /// Along half a cosine (Loshchilov and Hutter 2017), likewise.
    Cosine {
        /// Update at which the end is reached.
        over: u64,
        /// Share that is left.
        #[serde(default)]
        to: f64,
    },
    /// With 1/√update from the end of the warm-up on (Vaswani et al. 2017).
    InverseSqrt,
}

impl Decay {
    /// Updates until its end, where it has one.
    pub fn over(self) -> Option<u64> {
        match self {
            Decay::Linear { over, .. } | Decay::Cosine { over, .. } => Some(over),
            Decay::Constant | Decay::InverseSqrt => None,
        }
    }

    /// The same course over so many updates.
    #[must_use]
    pub fn lasting(mut self, updates: u64) -> Self {
        if let Decay::Linear { over, .. } | Decay::Cosine { over, .. } = &mut self {
            *over = updates;
        }
        self
    }
}

/// A setting of an optimiser that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// The field.
    pub field: &'static str,
    /// What it must be: the end of a catalogue key `optimiser.bad.…`.
    pub must: &'static str,
}

impl Optimiser {
    /// Learning rate of update `update`, counted from 0.
    pub fn rate(&self, update: u64) -> f64 {
        if update < self.warmup {
            return self.learning_rate * (update + 1) as f64 / self.warmup as f64;
        }
        let progress = |over: u64| {
            let span = over.saturating_sub(self.warmup).max(1) as f64;
            ((update - self.warmup) as f64 / span).min(1.0)
        };
        let share = match self.decay {
            Decay::Constant => 1.0,
            Decay::Linear { over, to } => 1.0 - (1.0 - to) * progress(over),
            Decay::Cosine { over, to } => {
                let wave = 0.5 * (1.0 + libm::cos(std::f64::consts::PI * progress(over)));
                to + (1.0 - to) * wave
            }
            Decay::InverseSqrt => (self.warmup.max(1) as f64 / (update + 1) as f64).sqrt(),
        };
        self.learning_rate * share
    }

    /// 1 − β₁ᵗ and 1 − β₂ᵗ of update `update`, counted from 0 (t = update + 1); `None` where the rule has none.
    pub fn corrections(&self, update: u64) -> Option<[f64; 2]> {
        match self.method {
            Method::Sgd { .. } => None,
            _ if !self.bias_correction => None,
            Method::Adam { beta1, beta2, .. } | Method::AdamW { beta1, beta2, .. } => {
                let t = (update + 1) as f64;
                Some([beta1, beta2].map(|b| 1.0 - libm::pow(b, t)))
            }
        }
    }

    /// The group of the parameter at `path`, where one fits.
    pub fn group_of(&self, path: &str) -> Option<usize> {
        self.groups.iter().position(|g| {
            let glob = globset::Glob::new(&g.paths);
            glob.is_ok_and(|glob| glob.compile_matcher().is_match(path))
        })
    }

    /// The first setting that makes no sense.
    ///
    /// # Errors
    /// Where a number is negative, not finite or outside its range.
    pub fn validate(&self) -> Result<(), BadSetting> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let share = |x: f64| (0.0..1.0).contains(&x);
        let bad = |field, must| Err(BadSetting { field, must });
        if !(self.learning_rate.is_finite() && self.learning_rate >= 0.0) {
            return bad("learning_rate", "not_negative");
        }
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            return bad("weight_decay", "not_negative");
        }
        if self.clip_norm.is_some_and(|c| !positive(c)) {
            return bad("clip_norm", "positive");
        }
        match self.method {
            Method::Sgd { momentum } if !share(momentum) => return bad("momentum", "share"),
            Method::Sgd { .. } => {}
            Method::Adam { beta1, beta2, eps } | Method::AdamW { beta1, beta2, eps } => {
                if !share(beta1) {
                    return bad("beta1", "share");
                }
                if !share(beta2) {
                    return bad("beta2", "share");
                }
                if !positive(eps) {
                    return bad("eps", "positive");
                }
            }
        }
        if self.accumulate == 0 {
            return bad("accumulate", "positive");
        }
        for group in &self.groups {
            if !(group.rate.is_finite() && group.rate >= 0.0) {
                return bad("groups.rate", "not_negative");
            }
            if group.weight_decay.is_some_and(|d| !(d.is_finite() && d >= 0.0)) {
                return bad("groups.weight_decay", "not_negative");
            }
        }
        match self.decay {
            Decay::Linear { to, .. } | Decay::Cosine { to, .. } if !(0.0..=1.0).contains(&to) => bad("to", "share"),
            _ => Ok(()),
        }
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
        let corrections = match optimiser.method {
            Method::Sgd { .. } => None,
            _ if !optimiser.bias_correction => None,
            Method::Adam { .. } | Method::AdamW { .. } => Some([
                b.input("bias_correction1", DType::Float, Shape::SCALAR)?,
                b.input("bias_correction2", DType::Float, Shape::SCALAR)?,
            ]),
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
        let decoupled = matches!(optimiser.method, Method::AdamW { .. });
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
        if let (Some(limit), false) = (optimiser.clip_norm, pairs.is_empty()) {
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
        let decoupled = matches!(self.optimiser.method, Method::AdamW { .. });
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
        let (direction, slots) = match self.optimiser.method {
            Method::Sgd { momentum } if momentum > 0.0 => {
                let (velocity, slot) = Self::momentum(b, g, momentum)?;
                let mut direction = velocity;
                if self.optimiser.nesterov {
                    let ahead = b.affine("velocity_ahead", Affine::Mul(momentum), velocity)?;
                    b.inline(ahead);
                    direction = b.binary("direction", Binary::Add, g, ahead)?;
                }
                (direction, SmallVec::from_iter([slot]))
            }
            Method::Sgd { .. } => (g, SmallVec::new()),
            Method::Adam { beta1, beta2, eps } | Method::AdamW { beta1, beta2, eps } => {
                self.adam(b, g, [beta1, beta2], eps)?
            }
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
    fn adam(
        &self,
        b: &mut Builder,
        g: NodeId,
        betas: [f64; 2],
        eps: f64,
    ) -> Result<(NodeId, SmallVec<[Slot; 2]>), BuildError> {
        let square = b.unary("gradient_square", Unary::Square, g)?;
        b.inline(square);
        let mut slots = SmallVec::new();
        let mut hats = SmallVec::<[NodeId; 2]>::new();
        for (i, ((name, seen), beta)) in [("m", g), ("v", square)].into_iter().zip(betas).enumerate() {
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
