//! The backward pass as numbered steps: the forward walkthrough in reverse, each step showing the gradients of what
//! the forward step showed, through the same slices and under the same symbols (`∂L/∂score1`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::plan::{numbered, phase_of, symbol_of};
use super::{LocalizedText, Role, Step, View};
use crate::program::{
    Binary, Gradients, Leaf, Name, NodeId, Op, Pass, Pick, Program, Role as Quantity, ScopeKind, Step as Part, Unary,
};
use crate::tensor::slice::Slice;
use crate::text::Msg;

/// Most symbols in a title.
const MAX_SYMBOLS: usize = 6;

/// Numbers that the first step of a plan takes.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Number of its first step.
    pub number: u32,
    /// Number of its first section.
    pub section: u32,
}

impl Start {
    /// After the last of `steps`.
    pub fn after(steps: &[Step]) -> Self {
        let section = |s: &Step| s.section.split('.').next()?.parse::<u32>().ok();
        Self {
            number: steps.iter().map(|s| s.number[0]).max().unwrap_or(0) + 1,
            section: steps.iter().filter_map(section).max().unwrap_or(0) + 1,
        }
    }
}

/// A gradient to be shown: what it is of, and how it is seen.
struct Shown {
    grad: NodeId,
    of: NodeId,
    slice: Slice,
    symbol: String,
    role: Role,
}

/// Steps for the gradients of `program`, whose run is `run`. `forward` are the steps of the forward run, whose nodes
/// `program` begins with.
pub fn backward_plan(program: &Program, run: usize, loss: &str, forward: &[Step], start: Start) -> Vec<Step> {
    let Some(gradients) = Gradients::find(program, loss) else {
        return Vec::new();
    };
    let mirror = Mirror::new(program, &gradients, forward);
    // A step of the forward pass, last first; what is unknown to it that belongs to parameters stands apart.
    let mut stages: BTreeMap<(Reverse<usize>, bool), Vec<Shown>> = BTreeMap::new();
    for (id, node) in program.nodes().filter(|(_, n)| n.name.is_gradient()) {
        let seed = gradients.of(gradients.loss) == Some(id);
        if node.inline || matches!(node.op, Op::Leaf(_)) && !seed {
            continue;
        }
        let Some((of, rest)) = mirror.owner(id) else {
            continue;
        };
        let parameter = matches!(program.node(of).op, Op::Leaf(Leaf::Parameter));
        let inside = mirror.norm_input(of);
        let views = match (mirror.views.get(&of), inside) {
            (Some(views), None) => &views[..],
            _ => &[],
        };
        // What the forward steps do not show, or show in part only, is shown whole.
        if !mirror.covers(of, views) {
            let shown = Shown {
                grad: id,
                of,
                slice: Slice::all(),
                symbol: mirror.symbol(of, &mirror.name(of), &Slice::all(), &rest),
                role: if rest.is_empty() && parameter { Role::Result } else { Role::Auxiliary },
            };
            let home = inside.and_then(|input| mirror.home(input)).or_else(|| mirror.home(of)).unwrap_or(0);
            stages.entry((Reverse(home), parameter && views.is_empty())).or_default().push(shown);
        }
        let mut whole = false;
        for &(step, view) in views {
            let fits = view.slice.is_all() || view.slice.resolve(&program.node(id).shape).is_ok();
            if !fits && whole {
                continue;
            }
            whole |= !fits;
            let role = if rest.is_empty() { view.role } else { Role::Auxiliary };
            stages.entry((Reverse(step), false)).or_default().push(Shown {
                grad: id,
                of,
                slice: if fits { view.slice.clone() } else { Slice::all() },
                symbol: mirror.symbol(of, &mirror.called(of, view), &view.slice, &rest),
                role,
            });
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    let (mut phase, mut section, mut part) = (String::new(), start.section - 1, 0u32);
    for shown in stages.into_values() {
        let main = shown.iter().rfind(|s| s.role == Role::Result).or(shown.last()).map(|s| s.of);
        let views: Vec<View> = shown
            .into_iter()
            .filter_map(|s| {
                let mut view = View::new(program, run, s.grad, s.symbol, s.slice).ok()?;
                view.role = s.role;
                Some(view)
            })
            .collect();
        let (Some(main), Some(last)) = (main, views.last()) else {
            continue;
        };
        let next = phase_of(program, last.node);
        if next != phase {
            (phase, section, part) = (next, section + 1, 0);
        }
        part += 1;
        let kind = kind(program, &gradients, main);
        let mut step = Step {
            number: vec![start.number + steps.len() as u32],
            section: format!("{section}.{part}"),
            phase: phase.clone(),
            run,
            title: LocalizedText::Empty,
            note: LocalizedText::Message(Msg::new(kind.note())),
            formula: String::new(),
            views,
        };
        step.title = LocalizedText::Message(Msg::new(kind.title()).arg("symbols", symbols(&step)));
        steps.push(step);
    }
    steps
}

/// Symbols of a step's results, the first ones where there are many.
pub(super) fn symbols(step: &Step) -> String {
    let mut names: Vec<&str> = Vec::new();
    for view in step.results() {
        if !names.contains(&view.symbol.as_str()) {
            names.push(&view.symbol);
        }
    }
    let more = names.len() > MAX_SYMBOLS;
    names.truncate(MAX_SYMBOLS);
    names.join(", ") + if more { ", …" } else { "" }
}

/// What a node of the backward pass is of a gradient; nothing: the gradient itself.
#[derive(Default)]
struct Rest {
    /// What this reader passes on.
    from: Option<Name>,
    /// A step on the way.
    steps: Vec<Quantity>,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.from.is_none() && self.steps.is_empty()
    }
}

/// The forward walkthrough, looked up by node.
pub(super) struct Mirror<'a> {
    program: &'a Program,
    gradients: &'a Gradients,
    /// Views of a node, each slice once, with the step that shows it first.
    pub(super) views: HashMap<NodeId, Vec<(usize, &'a View)>>,
    of: HashMap<NodeId, NodeId>,
}

impl<'a> Mirror<'a> {
    pub(super) fn new(program: &'a Program, gradients: &'a Gradients, forward: &'a [Step]) -> Self {
        let mut views: HashMap<NodeId, Vec<(usize, &View)>> = HashMap::new();
        for (i, step) in forward.iter().enumerate() {
            for view in &step.views {
                let seen = views.entry(view.node).or_default();
                let known = seen.iter().any(|(_, v)| v.slice == view.slice || v.slice.is_all());
                if !known {
                    seen.push((i, view));
                }
            }
        }
        let of = gradients.iter().map(|(x, g)| (g, x)).collect();
        Self { program, gradients, views, of }
    }

    /// The forward node that a node of the backward pass belongs to, and what of it the node is.
    fn owner(&self, id: NodeId) -> Option<(NodeId, Rest)> {
        let mut rest = Rest::default();
        if let Some(&of) = self.of.get(&id) {
            return Some((of, rest));
        }
        let name = &self.program.node(id).name;
        if let Pass::Gradient(gradient) = &name.pass {
            rest.from.clone_from(&gradient.from);
        }
        let mut of = name.gradient_of()?;
        loop {
            // Without a reader the name itself is that of a step, not of a forward node.
            if rest.from.is_some() || !rest.steps.is_empty() {
                let node = self.program.named(&of).filter(|of| self.gradients.of(*of).is_some());
                if let Some(node) = node {
                    return Some((node, rest));
                }
            }
            let last = of.last().clone();
            if last == Quantity::Whole {
                return None;
            }
            rest.steps.insert(0, last);
            of = of.outer()?;
        }
    }

    /// Whether these views together show every cell of a node.
    pub(super) fn covers(&self, of: NodeId, views: &[(usize, &View)]) -> bool {
        let seen: usize = views.iter().map(|(_, v)| v.shape().len()).sum();
        seen >= self.program.node(of).shape.len()
    }

    /// The input of the norm that a node is an inner number of (mean, variance, root): their gradients are the terms
    /// of that of the input.
    fn norm_input(&self, of: NodeId) -> Option<NodeId> {
        let node = self.program.node(of);
        match self.program.scope(node.scope).kind {
            ScopeKind::LayerNorm { input, output, .. } | ScopeKind::RmsNorm { input, output, .. }
                if output != of && !matches!(node.op, Op::Leaf(_)) =>
            {
                Some(input)
            }
            _ => None,
        }
    }

    /// What a view is called; heads that the forward steps call by one name are numbered.
    fn called(&self, of: NodeId, view: &View) -> String {
        let seen = self.views.get(&of).map_or(&[][..], Vec::as_slice);
        let same = seen.iter().filter(|(_, v)| v.symbol == view.symbol);
        if same.count() > 1 { numbered(&view.symbol, &view.slice) } else { view.symbol.clone() }
    }

    /// What a node is called: as the forward steps call it, where they have one name for it.
    fn name(&self, of: NodeId) -> String {
        match self.views.get(&of).map(Vec::as_slice) {
            Some([(_, view)]) if view.slice.is_all() => view.symbol.clone(),
            _ => symbol_of(&self.program.node(of).name, &Slice::all()),
        }
    }

    /// The forward step that a node no step shows belongs to: that of the norm it is inside, else of what reads it.
    fn home(&self, of: NodeId) -> Option<usize> {
        let mut seen = HashSet::new();
        let mut at = of;
        while seen.insert(at) {
            if let Some(views) = self.views.get(&at) {
                return views.first().map(|v| v.0);
            }
            let scope = self.program.node(at).scope;
            at = match self.program.scope(scope).kind {
                ScopeKind::LayerNorm { output, .. } | ScopeKind::RmsNorm { output, .. } if output != at => output,
                _ => *self.program.users(at).iter().find(|u| self.gradients.of(**u).is_some())?,
            };
        }
        None
    }

    /// `∂L/∂X`, or what a number on the way to it is called.
    fn symbol(&self, of: NodeId, symbol: &str, slice: &Slice, rest: &Rest) -> String {
        if rest.is_empty() {
            return format!("∂L/∂{symbol}");
        }
        if let Some(reader) = &rest.from {
            let product = *reader.last() == Quantity::Step(Part::Product);
            let reader = if product { reader.outer().unwrap_or_default() } else { reader.clone() };
            let name =
                self.program.named(&reader).map_or_else(|| symbol_of(&reader, &Slice::all()), |id| self.name(id));
            return format!("∂L/∂{symbol}←{name}");
        }
        if rest.steps == [Quantity::Step(Part::RowSum)] {
            // What a softmax takes off each row: Σ ∂L/∂A⊙A.
            let weights = self.program.scopes().find_map(|(_, s)| match s.kind {
                ScopeKind::Softmax { input, output } if input == of => Some(output),
                _ => None,
            });
            let named = weights.and_then(|w| {
                let views = self.views.get(&w)?;
                let same = views.iter().find(|(_, v)| v.slice == *slice)?;
                Some(same.1.symbol.clone())
            });
            let a = named.unwrap_or_else(|| "A".to_owned());
            return format!("Σ(∂L/∂{a}⊙{a})");
        }
        if rest.steps == [Quantity::Step(Part::Product)] && self.norm_input(of).is_some() {
            return "Σ(∂L/∂x̂⊙x̂)".to_owned();
        }
        rest.steps.iter().fold(format!("∂L/∂{symbol}"), |name, step| format!("{name}.{step}"))
    }
}

/// What a gradient step teaches.
#[derive(Clone, Copy)]
enum Kind {
    Seed,
    Logits,
    Weight,
    Scale,
    Embedding,
    Softmax,
    AttentionWeights,
    Context,
    Projection,
    LayerNorm,
    RmsNorm,
    Relu,
    Activation,
    Sum,
    Product,
    Lookup,
    Residual,
    Other,
}

impl Kind {
    fn title(self) -> &'static str {
        match self {
            Kind::Seed => "back.title.seed",
            Kind::Logits => "back.title.logits",
            Kind::Weight => "back.title.weight",
            Kind::Scale => "back.title.scale",
            Kind::Embedding => "back.title.embedding",
            Kind::Softmax => "back.title.softmax",
            Kind::AttentionWeights => "back.title.attention",
            Kind::Context => "back.title.context",
            Kind::Projection => "back.title.projection",
            Kind::LayerNorm => "back.title.layer_norm",
            Kind::RmsNorm => "back.title.rms_norm",
            Kind::Relu => "back.title.relu",
            Kind::Activation => "back.title.activation",
            Kind::Sum => "back.title.sum",
            Kind::Product => "back.title.product",
            Kind::Lookup => "back.title.lookup",
            Kind::Residual => "back.title.residual",
            Kind::Other => "back.title.other",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Kind::Seed => "back.note.seed",
            Kind::Logits => "back.note.logits",
            Kind::Weight => "back.note.weight",
            Kind::Scale => "back.note.scale",
            Kind::Embedding => "back.note.embedding",
            Kind::Softmax => "back.note.softmax",
            Kind::AttentionWeights => "back.note.attention",
            Kind::Context => "back.note.context",
            Kind::Projection => "back.note.projection",
            Kind::LayerNorm => "back.note.layer_norm",
            Kind::RmsNorm => "back.note.rms_norm",
            Kind::Relu => "back.note.relu",
            Kind::Activation => "back.note.activation",
            Kind::Sum => "back.note.sum",
            Kind::Product => "back.note.product",
            Kind::Lookup => "back.note.lookup",
            Kind::Residual => "back.note.residual",
            Kind::Other => "back.note.other",
        }
    }
}

fn kind(program: &Program, gradients: &Gradients, of: NodeId) -> Kind {
    if of == gradients.loss {
        return Kind::Seed;
    }
    let node = program.node(of);
    let last = node.name.last();
    let readers: Vec<NodeId> =
        program.users(of).iter().copied().filter(|u| *u <= gradients.loss && gradients.of(*u).is_some()).collect();
    let reads = |fits: &dyn Fn(&Op) -> bool| readers.iter().any(|r| fits(&program.node(*r).op));
    if matches!(node.op, Op::Leaf(Leaf::Parameter)) {
        return if reads(&|op| matches!(op, Op::Gather(Pick::Rows))) {
            Kind::Embedding
        } else if matches!(last, Quantity::Gamma | Quantity::Beta | Quantity::Bias) {
            Kind::Scale
        } else {
            Kind::Weight
        };
    }
    let logits = |k: &ScopeKind| matches!(k, ScopeKind::CrossEntropy { logits, .. } if *logits == of);
    if program.scopes().any(|(_, scope)| logits(&scope.kind)) {
        return Kind::Logits;
    }
    for (_, scope) in program.scopes() {
        match scope.kind {
            ScopeKind::Softmax { input, .. } if input == of => return Kind::Softmax,
            ScopeKind::Softmax { output, .. } if output == of => return Kind::AttentionWeights,
            ScopeKind::LayerNorm { input, .. } if input == of => return Kind::LayerNorm,
            ScopeKind::RmsNorm { input, .. } if input == of => return Kind::RmsNorm,
            ScopeKind::Activation { input, output } if input == of => {
                return if matches!(program.node(output).op, Op::Unary(Unary::Relu)) {
                    Kind::Relu
                } else {
                    Kind::Activation
                };
            }
            _ => {}
        }
    }
    match last {
        Quantity::Context => return Kind::Context,
        Quantity::Lookup => return Kind::Lookup,
        Quantity::Query | Quantity::Key | Quantity::Value | Quantity::QueryRotated | Quantity::KeyRotated => {
            return Kind::Projection;
        }
        _ => {}
    }
    if readers.len() > 1 {
        Kind::Sum
    } else if reads(&|op| matches!(op, Op::MatMul { .. })) {
        Kind::Product
    } else if reads(&|op| matches!(op, Op::Binary(Binary::Add))) {
        Kind::Residual
    } else {
        Kind::Other
    }
}
