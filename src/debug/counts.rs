//! What a model is made of and what it costs: parameters by module, arithmetic and memory of a run by module, cost
//! against the length of the text for full, local and linear attention, and what padding costs. From shapes alone:
//! nothing is computed, and no weights are read.

use crate::model::config::{Algorithm, AttentionKind, ModelConfig};
use crate::model::loss::Loss;
use crate::model::params::{ParamRole, ParamSpec, VocabSizes};
use crate::model::{Forward, Sequences, forward};
use crate::program::{Block, BuildError, Leaf, Name, NodeId, Op, Pass, Program, Site, Stack, cost};
use crate::session::{RunKind, Session};
use crate::tensor::Precision;

/// Parameters of a module, or of several alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Path of the module, of the first where there are several.
    pub module: String,
    /// Path of the last of them.
    pub last: String,
    /// How many such modules.
    pub times: usize,
    /// Numbers in one of them.
    pub each: u64,
    /// Path and shape of the parameters of the first.
    pub tensors: Vec<(String, Vec<usize>)>,
}

impl Parameters {
    /// Numbers in all of them.
    pub fn all(&self) -> u64 {
        self.each * self.times as u64
    }
}

/// Arithmetic and memory of a module, of all its layers together.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The module.
    pub module: String,
    /// How many such modules.
    pub times: usize,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub moved: u64,
    /// Bytes of results.
    pub kept: u64,
}

/// The cost of one way of attention at several lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Which.
    pub kind: Kind,
    /// Cost of the attention of one layer, without the projections, at each length.
    pub points: Vec<Work>,
}

/// A way of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// All keys.
    Full,
    /// A window, computed in bands.
    Local,
    /// Linear attention.
    Linear,
}

impl Kind {
    /// All of them.
    pub const ALL: &[Kind] = <Self as strum::VariantArray>::VARIANTS;

    /// Its name in JSON, and the end of its catalogue key.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What padding costs: a whole pass over texts of their own length, and padded.
#[derive(Clone, Debug, PartialEq)]
pub struct Padding {
    /// Tokens of each sentence without padding.
    pub real: Vec<usize>,
    /// The length they are padded to.
    pub to: usize,
    /// Operations where each sentence is computed alone.
    pub flops_real: u64,
    /// Operations of the padded batch.
    pub flops_padded: u64,
}

/// The lengths of [`sweep`] unless others are wanted.
pub const LENGTHS: [usize; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];
/// The window of local attention where the model has none.
pub const WINDOW: usize = 16;

/// A module and what it is counted under: a layer's number does not count.
fn module(site: Site) -> Site {
    match site {
        Site::Layer(stack, _, Block::PostNorm(n)) => Site::Layer(stack, 0, Block::Norm(n)),
        Site::Layer(stack, _, block) => Site::Layer(stack, 0, block),
        Site::Stack(stack) | Site::Rotary(stack) => Site::Stack(stack),
        Site::Vocabulary | Site::Embedding(_) | Site::EmbeddingNorm(_) => Site::Embedding(None),
        Site::Cache(_) => Site::Cache(None),
        other => other,
    }
}

/// Parameters by module, in the order of the model. Equal modules of several layers are one entry; the tables of an
/// embedding are one each.
pub fn parameters(specs: &[ParamSpec]) -> Vec<Parameters> {
    let table = |s: &ParamSpec| matches!(s.role, ParamRole::Embedding | ParamRole::Position | ParamRole::TokenType);
    let mut own: Vec<(Site, Parameters)> = Vec::new();
    for spec in specs {
        let name = Name::parse(&spec.path);
        let path = if table(spec) { spec.path.clone() } else { Name::of(name.site).to_string() };
        let tensor = (spec.path.clone(), spec.shape.dims().to_vec());
        let each = spec.shape.len() as u64;
        match own.iter_mut().find(|(_, p)| p.module == path) {
            Some((_, there)) => {
                there.each += each;
                there.tensors.push(tensor);
            }
            None => own.push((
                name.site,
                Parameters { last: path.clone(), module: path, times: 1, each, tensors: vec![tensor] },
            )),
        }
    }
    let mut out: Vec<(Site, Parameters)> = Vec::new();
    for (site, one) in own {
        let layer = matches!(site, Site::Layer(..));
        let alike = |(of, p): &&mut (Site, Parameters)| layer && module(*of) == module(site) && p.each == one.each;
        match out.iter_mut().find(alike) {
            Some((_, there)) => {
                there.times += 1;
                there.last = one.last;
            }
            None => out.push((site, one)),
        }
    }
    out.into_iter().map(|(_, p)| p).collect()
}

/// Arithmetic and memory of a program's nodes of one pass, by module.
pub fn work(program: &Program, precision: Precision, of: fn(&Pass) -> bool) -> Vec<Work> {
    let mut out: Vec<(Site, Vec<Site>, Work)> = Vec::new();
    for (id, node) in program.nodes() {
        if !of(&node.name.pass) {
            continue;
        }
        let c = cost(program, id, precision);
        let key = module(node.name.site);
        let at = out.iter().position(|(k, ..)| *k == key).unwrap_or_else(|| {
            let shown = if key == Site::Embedding(None) { key } else { node.name.site };
            // What is in no module: the tokens of a decoding.
            let module = Some(Name::of(shown).to_string()).filter(|m| !m.is_empty());
            let module = module.unwrap_or_else(|| node.path.to_string());
            let work = Work { module, times: 0, flops: 0, moved: 0, kept: 0 };
            out.push((key, Vec::new(), work));
            out.len() - 1
        });
        let (_, sites, sum) = &mut out[at];
        if !sites.contains(&node.name.site) {
            sites.push(node.name.site);
        }
        sum.flops += c.flops;
        sum.moved += c.read + c.written;
        sum.kept += c.written;
    }
    let layers = |sites: &[Site]| sites.iter().filter(|s| matches!(s, Site::Layer(..))).count().max(1);
    let done = out.into_iter().map(|(_, sites, work)| Work { times: layers(&sites), ..work });
    done.filter(|w| w.flops + w.moved > 0).collect()
}

/// Whether a pass is the forward one.
pub fn is_forward(pass: &Pass) -> bool {
    matches!(pass, Pass::Forward)
}

/// The sum over all modules.
pub fn total(work: &[Work]) -> Work {
    let zero = Work { module: String::new(), times: 1, flops: 0, moved: 0, kept: 0 };
    work.iter().fold(zero, |a, w| Work {
        flops: a.flops + w.flops,
        moved: a.moved + w.moved,
        kept: a.kept + w.kept,
        ..a
    })
}

/// A pass of the model over texts of these lengths.
fn pass(
    model: &ModelConfig,
    vocab: VocabSizes,
    (batch, source, target): (usize, usize, usize),
) -> Result<Program, BuildError> {
    let text = |n: usize| (n > 0).then(|| Sequences { ids: vec![0; batch * n], batch, ..Sequences::default() });
    let source = model.encoder.as_ref().and_then(|_| text(source));
    let target = model.decoder.as_ref().and_then(|_| text(target));
    let spec = Forward {
        config: model,
        vocab: VocabSizes { source: vocab.source.max(1), target: vocab.target.max(1) },
        source: source.as_ref(),
        target: target.as_ref(),
        labels: None,
        loss: &Loss::default(),
        training: false,
    };
    forward(&spec).map(|(program, _)| program)
}

/// The attention of one layer as wide as the model's: full, local and linear. Positions that need a table as long as
/// the text are left out: they are no part of the attention.
///
/// # Errors
/// Where such a layer does not build.
pub fn sweep(
    model: &ModelConfig,
    lengths: &[usize],
    window: usize,
    precision: Precision,
) -> Result<Vec<Curve>, BuildError> {
    Kind::ALL
        .iter()
        .map(|&kind| {
            let mut one = model.clone();
            let stack = one.encoder.take().or(one.decoder.take());
            let mut layer = stack.and_then(|s| s.layers.into_iter().next()).unwrap_or_default();
            (layer.repeat, layer.has_ffn, layer.has_attention, layer.cross_attention) = (1, false, true, Some(false));
            layer.attention = None;
            (one.attention.kind, one.attention.window, one.attention.algorithm) = match kind {
                Kind::Full => (AttentionKind::Softmax, None, Algorithm::Plain),
                Kind::Local => (AttentionKind::Softmax, Some(window), Algorithm::Banded),
                Kind::Linear => (AttentionKind::Linear, None, Algorithm::Plain),
            };
            (one.attention.latent, one.attention.sinks, one.attention.softcap) = (None, false, None);
            (one.attention.positions, one.attention.causal) = (None, Some(false));
            one.positions = crate::model::config::Positions::None;
            (one.output.none, one.pooler, one.classifier, one.decoder) = (true, None, None, None);
            one.encoder = Some(crate::model::config::StackConfig {
                layers: vec![layer],
                final_norm: false,
                weight_groups: None,
                weight_group_layers: None,
            });
            let vocab = VocabSizes { source: 1, target: 1 };
            let points = lengths.iter().map(|n| {
                let program = pass(&one, vocab, (1, *n, 0))?;
                Ok(core(&program, precision))
            });
            Ok(Curve { kind, points: points.collect::<Result<_, BuildError>>()? })
        })
        .collect()
}

/// The attention without its projections: nodes of its site that no parameter enters.
fn core(program: &Program, precision: Precision) -> Work {
    let is = |id: NodeId| {
        let node = program.node(id);
        let inside = matches!(node.name.site, Site::Layer(Stack::Encoder, 0, Block::SelfAttention));
        let parameter = |i: &NodeId| matches!(program.node(*i).op, Op::Leaf(Leaf::Parameter));
        inside && !node.inputs.iter().any(parameter)
    };
    let mut sum = Work { module: String::new(), times: 1, flops: 0, moved: 0, kept: 0 };
    for (id, _) in program.nodes().filter(|(id, _)| is(*id)) {
        let c = cost(program, id, precision);
        sum.flops += c.flops;
        sum.moved += c.read + c.written;
        sum.kept += c.written;
    }
    sum
}

/// What padding every sentence of a run to `to` tokens costs, on both sides.
///
/// # Errors
/// Where the model does not build at these lengths, such as beyond its table of positions.
pub fn padding(session: &Session, run: usize, to: usize) -> Result<Option<Padding>, BuildError> {
    let inputs = &session.runs[run].inputs;
    let lengths = |s: &Option<Sequences>| -> Vec<usize> {
        let Some(s) = s else { return Vec::new() };
        let n = s.tokens();
        let real = |row: usize| match &s.real {
            Some(real) => real[row * n..(row + 1) * n].iter().filter(|r| **r).count(),
            None => n,
        };
        (0..s.batch).map(real).collect()
    };
    let (source, target) = (lengths(&inputs.source), lengths(&inputs.target));
    let batch = source.len().max(target.len());
    let real = if source.is_empty() { target.clone() } else { source.clone() };
    if batch == 0 || real.iter().chain(&target).any(|n| *n > to) {
        return Ok(None);
    }
    let model = session.model_of(run);
    let vocab = VocabSizes { source: session.source_words.len(), target: session.target_words.len() };
    let flops = |shape| -> Result<u64, BuildError> {
        Ok(total(&work(&pass(model, vocab, shape)?, session.precision, is_forward)).flops)
    };
    let of = |all: &[usize], row: usize| all.get(row).copied().unwrap_or(0);
    let mut flops_real = 0;
    for row in 0..batch {
        flops_real += flops((1, of(&source, row), of(&target, row)))?;
    }
    let side = |all: &[usize]| if all.is_empty() { 0 } else { to };
    let flops_padded = flops((batch, side(&source), side(&target)))?;
    Ok(Some(Padding { real, to, flops_real, flops_padded }))
}

/// Everything that is counted of a session.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Parameters by module.
    pub parameters: Vec<Parameters>,
    /// The run whose work is counted.
    pub run: usize,
    /// Its forward pass by module.
    pub work: Vec<Work>,
    /// Operations of its backward pass and of its update, where it is trained.
    pub training: Option<(u64, u64)>,
    /// Lengths of the curves.
    pub lengths: Vec<usize>,
    /// The window of local attention.
    pub window: usize,
    /// Cost against length.
    pub curves: Vec<Curve>,
    /// What padding costs; nothing where the sentences are longer.
    pub padding: Option<Padding>,
}

/// What is to be counted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Lengths of the curves.
    pub lengths: Vec<usize>,
    /// The window of local attention; that of the model unless given.
    pub window: Option<usize>,
    /// The length that sentences are padded to.
    pub pad: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { lengths: LENGTHS.to_vec(), window: None, pad: 128 }
    }
}

impl Counts {
    /// Counts a session and a run of it. Weights are not looked at.
    ///
    /// # Errors
    /// Where the model does not build at a length that is wanted.
    pub fn of(session: &Session, run: usize, wanted: &Wanted) -> Result<Self, BuildError> {
        let program = &session.runs[run].program;
        let model = session.model_of(run);
        let window = wanted.window.or(model.attention.window).unwrap_or(WINDOW).max(1);
        let sum = |program: &Program, of: fn(&Pass) -> bool| total(&work(program, session.precision, of)).flops;
        let update = session.runs.iter().find(|r| r.kind == RunKind::Update);
        let training = update.map(|r| {
            let backward = sum(&r.program, |p| matches!(p, Pass::Gradient(_)));
            (backward, sum(&r.program, |p| matches!(p, Pass::Update)))
        });
        Ok(Self {
            parameters: parameters(&session.specs),
            run,
            work: work(program, session.precision, is_forward),
            training,
            curves: sweep(model, &wanted.lengths, window, session.precision)?,
            lengths: wanted.lengths.clone(),
            window,
            padding: padding(session, run, wanted.pad).unwrap_or(None),
        })
    }

    /// Numbers in all parameters.
    pub fn all(&self) -> u64 {
        self.parameters.iter().map(Parameters::all).sum()
    }
}
