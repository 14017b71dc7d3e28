//! What a node is: a typed name, whose print is the node's path.
//!
//! A [`Name`] says in which [`Pass`] a node is, of which decoding call, at which [`Site`] of the model and in which
//! [`Role`]. The builder sets names; `Display` prints the path (`gen.3.decoder.0.self_attn.scores`) and
//! [`Name::parse`] is its inverse. This is the only file that joins paths or takes them apart: everything else asks
//! the fields, with matches that stop compiling when a new site or role needs a decision.

use std::sync::Arc;

use smallvec::SmallVec;

use super::role::number;
pub use super::role::{Role, Step};
pub use super::stack::{Side, Stack};

/// A part of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Block {
    /// The layer itself: residual sums, dropout after sublayers.
    Layer,
    /// Self-attention.
    SelfAttention,
    /// Cross-attention.
    CrossAttention,
    /// The feed-forward block.
    FeedForward,
    /// The norm of sublayer n, counted from 1.
    Norm(u32),
    /// The norm after sublayer n, where there is one before it too.
    PostNorm(u32),
}

/// A place of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// None: the tokens of a decoding call, the learning rate, any node of a user's program.
    #[default]
    Root,
    /// The ids of the vocabulary.
    Vocabulary,
    /// Embedding and positions of a side; `None`: the table that both sides read.
    Embedding(Option<Side>),
    /// The norm after an embedding.
    EmbeddingNorm(Side),
    /// A stack as a whole.
    Stack(Stack),
    /// The tables of a stack's rotary positions.
    Rotary(Stack),
    /// A layer, counted from 0, and a part of it.
    Layer(Stack, u32, Block),
    /// The norm after the last layer.
    FinalNorm(Stack),
    /// The output head.
    Output,
    /// The pooler: what a classifier reads of the first token.
    Pooler,
    /// The head of a classifier.
    Classifier,
    /// The loss.
    Loss,
    /// Tables of a beam search.
    Beam,
    /// The choice of the next token of a decoding call.
    Next,
    /// Keys and values that follow their beams, by layer of the decoder; `None`: of all layers.
    Cache(Option<u32>),
}

/// One of several alike inside a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Within {
    /// A head.
    Head(u32),
    /// An expert of a mixture.
    Expert(u32),
    /// A tile of blocked attention: of queries, and of keys in it.
    Tile(u32, Option<u32>),
    /// A band of banded attention.
    Band(u32),
}

/// Which computation a node belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// The forward pass.
    #[default]
    Forward,
    /// The backward pass. Site and role are those of the forward node, then those of a step on the way to its gradient.
    Gradient(Arc<Gradient>),
    /// The update of a parameter. Site and role are the parameter's, then those of a step of the update.
    Update,
}

/// What a gradient is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gradient {
    /// The pass of the node that it is the gradient of.
    pub of: Pass,
    /// The reader that passes it on, where it is one contribution of several; then steps on the way to it.
    pub from: Option<Name>,
}

/// The name of a node or a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Which computation.
    pub pass: Pass,
    /// The decoding call, counted from 0.
    pub call: Option<u32>,
    /// Where in the model.
    pub site: Site,
    /// Which of several alike there.
    pub within: Option<Within>,
    /// Which quantity.
    pub role: Role,
    /// Parameters and steps of that quantity, from the outer to the inner: `[Weight]` of [`Role::Query`] is `q.weight`.
    pub inner: SmallVec<[Role; 2]>,
}

impl Name {
    /// The name of a scope that only has a site.
    pub fn of(site: Site) -> Self {
        Self { site, ..Self::default() }
    }

    /// The name whose path is that of this one with `text` behind it.
    pub(super) fn joined(&self, text: &str) -> Self {
        let outer = self.to_string();
        match (outer.is_empty(), text.is_empty()) {
            (true, _) => Self::parse(text),
            (_, true) => self.clone(),
            _ => Self::parse(&format!("{outer}.{text}")),
        }
    }

    pub(super) fn push(&mut self, role: Role) {
        match (&self.role, &role) {
            (_, Role::Whole) => {}
            (Role::Whole, _) => self.role = role,
            _ => self.inner.push(role),
        }
    }

    /// The name of a step inside this one.
    #[must_use]
    pub fn then(&self, role: impl Into<Role>) -> Self {
        let mut name = self.clone();
        match &mut name.pass {
            Pass::Gradient(gradient) if gradient.from.is_some() => {
                let from = gradient.from.as_ref().map(|from| from.then(role));
                *gradient = Arc::new(Gradient { of: gradient.of.clone(), from });
            }
            _ => name.push(role.into()),
        }
        name
    }

    /// The innermost role: what the node itself is.
    pub fn last(&self) -> &Role {
        match &self.pass {
            Pass::Gradient(g) if let Some(from) = &g.from => from.last(),
            _ => self.inner.last().unwrap_or(&self.role),
        }
    }

    pub(super) fn last_mut(&mut self) -> &mut Role {
        self.inner.last_mut().unwrap_or(&mut self.role)
    }

    /// The `n`th of this name, counted from 1.
    #[must_use]
    pub fn again(&self, n: u32) -> Self {
        let mut name = self.clone();
        if let Pass::Gradient(gradient) = &mut name.pass
            && let Some(from) = &gradient.from
        {
            *gradient = Arc::new(Gradient { of: gradient.of.clone(), from: Some(from.again(n)) });
        } else {
            let last = name.last_mut();
            *last = last.again(n);
        }
        name
    }

    /// The name around it: without its innermost role, or without its site; `None` for the outermost.
    pub fn outer(&self) -> Option<Self> {
        let mut name = self.clone();
        if let Pass::Gradient(gradient) = &self.pass
            && let Some(from) = &gradient.from
        {
            let from = from.outer().filter(|outer| *outer != Self::default());
            name.pass = Pass::Gradient(Arc::new(Gradient { of: gradient.of.clone(), from }));
            return Some(name);
        }
        if name.inner.pop().is_some() {
            return Some(name);
        }
        if name.role != Role::Whole {
            name.role = Role::Whole;
            return Some(name);
        }
        if name.within.take().is_some() {
            return Some(name);
        }
        name.site = match self.site {
            Site::Root => return None,
            Site::Layer(stack, _, Block::Layer) | Site::Rotary(stack) | Site::FinalNorm(stack) => Site::Stack(stack),
            Site::Layer(stack, layer, _) => Site::Layer(stack, layer, Block::Layer),
            Site::EmbeddingNorm(side) => Site::Embedding(Some(side)),
            Site::Embedding(Some(_)) => Site::Embedding(None),
            Site::Cache(Some(_)) => Site::Cache(None),
            Site::Vocabulary
            | Site::Embedding(None)
            | Site::Stack(_)
            | Site::Output
            | Site::Pooler
            | Site::Classifier
            | Site::Loss
            | Site::Beam
            | Site::Next
            | Site::Cache(None) => Site::Root,
        };
        Some(name)
    }

    /// The name with this role in the place of its innermost one.
    #[must_use]
    pub fn sibling(&self, role: impl Into<Role>) -> Self {
        let mut name = self.clone();
        if let Pass::Gradient(gradient) = &mut name.pass
            && let Some(from) = &gradient.from
        {
            *gradient = Arc::new(Gradient { of: gradient.of.clone(), from: Some(from.sibling(role)) });
        } else {
            *name.last_mut() = role.into();
        }
        name
    }

    /// The last `n` parts of the path: `q.weight`.
    pub fn tail(&self, n: usize) -> String {
        let path = self.to_string();
        match path.rmatch_indices('.').nth(n.saturating_sub(1)) {
            Some((at, _)) => path[at + 1..].to_owned(),
            None => path,
        }
    }

    /// What a node is, whatever its layer and call, as one word: `self_attn_q`, `norm_out`, `residual`.
    pub fn kind(&self) -> String {
        let path = self.to_string();
        let parts: Vec<&str> = path.split('.').filter(|p| p.parse::<u32>().is_err() && *p != "gen").collect();
        let stack = matches!(parts.first(), Some(&("encoder" | "decoder"))) && parts.len() > 1;
        let mut kind = parts[usize::from(stack)..].join("_");
        for numbered in ["norm", "residual", "sublayer"] {
            for digit in ["1", "2", "3"] {
                kind = kind.replace(&format!("{numbered}{digit}"), numbered);
            }
        }
        kind
    }

    /// The path of what it is the gradient of, steps on the way to the gradient included.
    pub fn gradient_path(&self) -> Option<String> {
        let path = self.to_string();
        path.strip_prefix("grad.").filter(|_| self.is_gradient()).map(str::to_owned)
    }

    /// The name of its gradient.
    #[must_use]
    pub fn gradient(&self) -> Self {
        let of = self.pass.clone();
        Self { pass: Pass::Gradient(Arc::new(Gradient { of, from: None })), ..self.clone() }
    }

    /// Of a gradient, the part of it that `reader` passes on.
    #[must_use]
    pub fn contribution(&self, reader: &Name) -> Self {
        let of = match &self.pass {
            Pass::Gradient(gradient) => gradient.of.clone(),
            Pass::Forward | Pass::Update => self.pass.clone(),
        };
        Self { pass: Pass::Gradient(Arc::new(Gradient { of, from: Some(reader.clone()) })), ..self.clone() }
    }

    /// What it is the gradient of, and of steps on the way to a gradient the same with the step; `None` where it is no
    /// gradient.
    pub fn gradient_of(&self) -> Option<Self> {
        match &self.pass {
            Pass::Gradient(gradient) => Some(Self { pass: gradient.of.clone(), ..self.clone() }),
            Pass::Forward | Pass::Update => None,
        }
    }

    /// Whether it is of a backward pass.
    pub fn is_gradient(&self) -> bool {
        matches!(self.pass, Pass::Gradient(_))
    }

    /// Whether it is of a backward pass or an update.
    pub fn is_derived(&self) -> bool {
        self.pass != Pass::Forward
    }

    /// Whether it lies inside a scope of this name.
    pub fn is_inside(&self, scope: &Name) -> bool {
        self.moved(scope, &Name::default()).is_some()
    }

    /// The name that it has where the scope `from` around it is called `to`.
    pub fn moved(&self, from: &Name, to: &Name) -> Option<Self> {
        let (path, from, to) = (self.to_string(), from.to_string(), to.to_string());
        let rest = path.strip_prefix(from.as_str())?;
        let rest = if from.is_empty() { rest } else { rest.strip_prefix('.')? };
        Some(Self::parse(&if to.is_empty() { rest.to_owned() } else { format!("{to}.{rest}") }))
    }

    /// Whether its path ends in these whole parts.
    pub fn ends_in(&self, parts: &str) -> bool {
        let path = self.to_string();
        path.strip_suffix(parts).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// A text that ends in a number, `decoder.0.cross_attn.3`: what is before it, and the number.
    pub fn before_number(text: &str) -> Option<(&str, usize)> {
        let (before, number) = text.rsplit_once('.')?;
        Some((before, number.parse().ok()?))
    }

    /// Whether a text has several parts, as paths have and symbols have not.
    pub fn is_path(text: &str) -> bool {
        text.contains('.')
    }

    /// All roles, from the outer to the inner.
    pub fn roles(&self) -> impl Iterator<Item = &Role> {
        std::iter::once(&self.role).chain(&self.inner)
    }

    /// The name of its update.
    #[must_use]
    pub fn update(&self) -> Self {
        Self { pass: Pass::Update, ..self.clone() }
    }

    /// The same in no decoding call.
    #[must_use]
    pub fn outside_call(&self) -> Self {
        Self { call: None, ..self.clone() }
    }

    /// The same in decoding call `call`.
    #[must_use]
    pub fn in_call(&self, call: u32) -> Self {
        Self { call: Some(call), ..self.clone() }
    }

    /// Reads a path; every text has a name, and prints as it was.
    pub fn parse(path: &str) -> Self {
        if path.is_empty() {
            return Self::default();
        }
        let parts: Vec<&str> = path.split('.').collect();
        Self::read(&parts)
    }

    fn read(mut parts: &[&str]) -> Self {
        let mut passes = 0;
        while let ["grad", rest @ ..] = parts {
            parts = rest;
            passes += 1;
        }
        let mut name = Self::default();
        let mut from = None;
        if passes > 0 {
            // The reader's name follows; a gradient is of something, so nothing can be read from the first part on.
            if let Some(at) = parts.iter().position(|p| *p == "from").filter(|at| *at > 0 && at + 1 < parts.len()) {
                from = Some(Self::read(&parts[at + 1..]));
                parts = &parts[..at];
            }
        } else if let ["update", rest @ ..] = parts {
            parts = rest;
            name.pass = Pass::Update;
        }
        for _ in 0..passes {
            name.pass = Pass::Gradient(Arc::new(Gradient { of: name.pass, from: from.take() }));
        }
        if let ["gen", n, rest @ ..] = parts
            && let Some(n) = number(n)
        {
            name.call = Some(n);
            parts = rest;
        }
        (name.site, parts) = Site::read(parts);
        if let [kind, n, rest @ ..] = parts
            && let Some(n) = number(n)
            && let Some(mut within) = Within::named(kind, n)
        {
            parts = rest;
            if let (Within::Tile(_, keys), [n, rest @ ..]) = (&mut within, rest)
                && let Some(n) = number(n)
            {
                *keys = Some(n);
                parts = rest;
            }
            name.within = Some(within);
        }
        for (i, part) in parts.iter().enumerate() {
            match *part {
                "v" if i > 0 && name.pass == Pass::Update => name.push(Role::SecondMoment),
                part => name.push(Role::parse(part)),
            }
        }
        name
    }
}

impl Within {
    fn named(kind: &str, n: u32) -> Option<Self> {
        match kind {
            "heads" => Some(Within::Head(n)),
            "experts" => Some(Within::Expert(n)),
            "tiles" => Some(Within::Tile(n, None)),
            "bands" => Some(Within::Band(n)),
            _ => None,
        }
    }
}

impl Site {
    /// Reads the site that `parts` begin with; the parts after it.
    fn read<'a, 'b>(parts: &'a [&'b str]) -> (Self, &'a [&'b str]) {
        match parts {
            ["vocabulary", rest @ ..] => (Site::Vocabulary, rest),
            ["embed", side @ ("source" | "target"), rest @ ..] => {
                let side = if *side == "source" { Side::Source } else { Side::Target };
                match rest {
                    ["norm", rest @ ..] => (Site::EmbeddingNorm(side), rest),
                    _ => (Site::Embedding(Some(side)), rest),
                }
            }
            ["embed", rest @ ..] => (Site::Embedding(None), rest),
            [stack @ ("encoder" | "decoder"), rest @ ..] => {
                let stack = if *stack == "encoder" { Stack::Encoder } else { Stack::Decoder };
                match rest {
                    ["rotary", rest @ ..] => (Site::Rotary(stack), rest),
                    ["final_norm", rest @ ..] => (Site::FinalNorm(stack), rest),
                    [layer, rest @ ..] if let Some(layer) = number(layer) => {
                        let block = rest.first().and_then(|part| Block::named(part));
                        let rest = if block.is_some() { &rest[1..] } else { rest };
                        (Site::Layer(stack, layer, block.unwrap_or(Block::Layer)), rest)
                    }
                    _ => (Site::Stack(stack), rest),
                }
            }
            ["output", rest @ ..] => (Site::Output, rest),
            ["pooler", rest @ ..] => (Site::Pooler, rest),
            ["classifier", rest @ ..] => (Site::Classifier, rest),
            ["loss", rest @ ..] => (Site::Loss, rest),
            ["beam", rest @ ..] => (Site::Beam, rest),
            ["next", rest @ ..] => (Site::Next, rest),
            ["cache", layer, rest @ ..] if let Some(layer) = number(layer) => (Site::Cache(Some(layer)), rest),
            ["cache", rest @ ..] => (Site::Cache(None), rest),
            _ => (Site::Root, parts),
        }
    }

    /// The stack it is in.
    pub fn stack(self) -> Option<Stack> {
        match self {
            Site::Stack(stack) | Site::Rotary(stack) | Site::Layer(stack, ..) | Site::FinalNorm(stack) => Some(stack),
            Site::Cache(_) => Some(Stack::Decoder),
            Site::Root
            | Site::Vocabulary
            | Site::Embedding(_)
            | Site::EmbeddingNorm(_)
            | Site::Output
            | Site::Pooler
            | Site::Classifier
            | Site::Loss
            | Site::Beam
            | Site::Next => None,
        }
    }

    /// The layer it is in, counted from 0.
    pub fn layer(self) -> Option<(Stack, u32)> {
        match self {
            Site::Layer(stack, layer, _) => Some((stack, layer)),
            _ => None,
        }
    }

    /// The part of a layer.
    pub fn block(self) -> Option<Block> {
        match self {
            Site::Layer(_, _, block) => Some(block),
            _ => None,
        }
    }

    /// The side whose tokens run through it; `None` where that is the output's, or nobody's.
    pub fn side(self) -> Option<Side> {
        match self {
            Site::Embedding(side) => side,
            Site::EmbeddingNorm(side) => Some(side),
            site => site.stack().map(Stack::side),
        }
    }

    /// Whether it is an attention block.
    pub fn is_attention(self) -> bool {
        matches!(self.block(), Some(Block::SelfAttention | Block::CrossAttention))
    }

    /// Whether it is a norm.
    pub fn is_norm(self) -> bool {
        match self {
            Site::Layer(_, _, Block::Norm(_) | Block::PostNorm(_)) | Site::FinalNorm(_) | Site::EmbeddingNorm(_) => {
                true
            }
            Site::Layer(_, _, Block::Layer | Block::SelfAttention | Block::CrossAttention | Block::FeedForward)
            | Site::Root
            | Site::Vocabulary
            | Site::Embedding(_)
            | Site::Stack(_)
            | Site::Rotary(_)
            | Site::Output
            | Site::Pooler
            | Site::Classifier
            | Site::Loss
            | Site::Beam
            | Site::Next
            | Site::Cache(_) => false,
        }
    }
}

impl Block {
    fn named(part: &str) -> Option<Self> {
        match part {
            "self_attn" => Some(Block::SelfAttention),
            "cross_attn" => Some(Block::CrossAttention),
            "ffn" => Some(Block::FeedForward),
            _ => {
                let norm = part.strip_prefix("norm").and_then(number).map(Block::Norm);
                norm.or_else(|| part.strip_prefix("post_norm").and_then(number).map(Block::PostNorm))
            }
        }
    }
}
