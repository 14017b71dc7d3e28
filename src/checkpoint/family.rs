//! A family of checkpoints as data: which settings of ours its configuration means, and which of its tensors our
//! parameters are. Files of this form are in `assets/families`, and a user may write one; `docs/checkpoints.md` describes
//! them.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::OnceLock;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::text::{Msg, escape};

/// The families that come with the program: name of the file and text.
const FILES: &[(&str, &str)] = &[
    ("albert.ron", include_str!("../../assets/families/albert.ron")),
    ("bart.ron", include_str!("../../assets/families/bart.ron")),
    ("bert.ron", include_str!("../../assets/families/bert.ron")),
    ("bloom.ron", include_str!("../../assets/families/bloom.ron")),
    ("codegen.ron", include_str!("../../assets/families/codegen.ron")),
    ("cohere.ron", include_str!("../../assets/families/cohere.ron")),
    ("cohere2.ron", include_str!("../../assets/families/cohere2.ron")),
    ("deepseek_v3.ron", include_str!("../../assets/families/deepseek_v3.ron")),
    ("distilbert.ron", include_str!("../../assets/families/distilbert.ron")),
    ("electra.ron", include_str!("../../assets/families/electra.ron")),
    ("falcon.ron", include_str!("../../assets/families/falcon.ron")),
    ("gemma.ron", include_str!("../../assets/families/gemma.ron")),
    ("gemma2.ron", include_str!("../../assets/families/gemma2.ron")),
    ("gemma3.ron", include_str!("../../assets/families/gemma3.ron")),
    ("gguf_bloom.ron", include_str!("../../assets/families/gguf_bloom.ron")),
    ("gguf_command_r.ron", include_str!("../../assets/families/gguf_command_r.ron")),
    ("gguf_falcon.ron", include_str!("../../assets/families/gguf_falcon.ron")),
    ("gguf_gemma.ron", include_str!("../../assets/families/gguf_gemma.ron")),
    ("gguf_gemma2.ron", include_str!("../../assets/families/gguf_gemma2.ron")),
    ("gguf_gemma3.ron", include_str!("../../assets/families/gguf_gemma3.ron")),
    ("gguf_gpt2.ron", include_str!("../../assets/families/gguf_gpt2.ron")),
    ("gguf_gpt_oss.ron", include_str!("../../assets/families/gguf_gpt_oss.ron")),
    ("gguf_gptneox.ron", include_str!("../../assets/families/gguf_gptneox.ron")),
    ("gguf_granite.ron", include_str!("../../assets/families/gguf_granite.ron")),
    ("gguf_llama.ron", include_str!("../../assets/families/gguf_llama.ron")),
    ("gguf_olmo.ron", include_str!("../../assets/families/gguf_olmo.ron")),
    ("gguf_olmo2.ron", include_str!("../../assets/families/gguf_olmo2.ron")),
    ("gguf_phi2.ron", include_str!("../../assets/families/gguf_phi2.ron")),
    ("gguf_phi3.ron", include_str!("../../assets/families/gguf_phi3.ron")),
    ("gguf_qwen2.ron", include_str!("../../assets/families/gguf_qwen2.ron")),
    ("gguf_qwen3.ron", include_str!("../../assets/families/gguf_qwen3.ron")),
    ("gguf_smollm3.ron", include_str!("../../assets/families/gguf_smollm3.ron")),
    ("gguf_stablelm.ron", include_str!("../../assets/families/gguf_stablelm.ron")),
    ("gguf_starcoder2.ron", include_str!("../../assets/families/gguf_starcoder2.ron")),
    ("glm4.ron", include_str!("../../assets/families/glm4.ron")),
    ("gpt2.ron", include_str!("../../assets/families/gpt2.ron")),
    ("gpt_bigcode.ron", include_str!("../../assets/families/gpt_bigcode.ron")),
    ("gpt_neo.ron", include_str!("../../assets/families/gpt_neo.ron")),
    ("gpt_neox.ron", include_str!("../../assets/families/gpt_neox.ron")),
    ("gpt_oss.ron", include_str!("../../assets/families/gpt_oss.ron")),
    ("gptj.ron", include_str!("../../assets/families/gptj.ron")),
    ("granite.ron", include_str!("../../assets/families/granite.ron")),
    ("llama.ron", include_str!("../../assets/families/llama.ron")),
    ("marian.ron", include_str!("../../assets/families/marian.ron")),
    ("mbart.ron", include_str!("../../assets/families/mbart.ron")),
    ("mistral.ron", include_str!("../../assets/families/mistral.ron")),
    ("mixtral.ron", include_str!("../../assets/families/mixtral.ron")),
    ("modernbert.ron", include_str!("../../assets/families/modernbert.ron")),
    ("mpt.ron", include_str!("../../assets/families/mpt.ron")),
    ("nemotron.ron", include_str!("../../assets/families/nemotron.ron")),
    ("olmo.ron", include_str!("../../assets/families/olmo.ron")),
    ("olmo2.ron", include_str!("../../assets/families/olmo2.ron")),
    ("olmoe.ron", include_str!("../../assets/families/olmoe.ron")),
    ("opt.ron", include_str!("../../assets/families/opt.ron")),
    ("phi.ron", include_str!("../../assets/families/phi.ron")),
    ("phi3.ron", include_str!("../../assets/families/phi3.ron")),
    ("qwen2.ron", include_str!("../../assets/families/qwen2.ron")),
    ("qwen2_moe.ron", include_str!("../../assets/families/qwen2_moe.ron")),
    ("qwen3.ron", include_str!("../../assets/families/qwen3.ron")),
    ("qwen3_moe.ron", include_str!("../../assets/families/qwen3_moe.ron")),
    ("roberta.ron", include_str!("../../assets/families/roberta.ron")),
    ("smollm3.ron", include_str!("../../assets/families/smollm3.ron")),
    ("stablelm.ron", include_str!("../../assets/families/stablelm.ron")),
    ("starcoder2.ron", include_str!("../../assets/families/starcoder2.ron")),
    ("t5.ron", include_str!("../../assets/families/t5.ron")),
    ("umt5.ron", include_str!("../../assets/families/umt5.ron")),
];

/// An expression over the keys of the configuration, or a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr(pub String);

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Expr;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an expression in quotes, or a number")
            }
            fn visit_str<E>(self, s: &str) -> Result<Expr, E> {
                Ok(Expr(s.to_owned()))
            }
            fn visit_u64<E>(self, n: u64) -> Result<Expr, E> {
                Ok(Expr(n.to_string()))
            }
            fn visit_i64<E>(self, n: i64) -> Result<Expr, E> {
                Ok(Expr(n.to_string()))
            }
            fn visit_f64<E>(self, n: f64) -> Result<Expr, E> {
                Ok(Expr(format!("{n:?}")))
            }
            fn visit_bool<E>(self, b: bool) -> Result<Expr, E> {
                Ok(Expr(b.to_string()))
            }
        }
        d.deserialize_any(Any)
    }
}

/// Names and what they denote, in the order in which they are written.
#[derive(Clone, Debug)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map `{…}` of names")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Ordered(all))
            }
        }
        d.deserialize_map(Map(PhantomData))
    }
}

/// A stack of layers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stack {
    /// How many layers.
    pub layers: Option<Expr>,
    /// Settings of the stack, such as `final_norm`.
    pub settings: Ordered<Expr>,
    /// Settings of a layer, evaluated for each `L`; those without a value are as in the model.
    pub each: Ordered<Expr>,
}

/// A rewrite, with expressions for numbers; see [`crate::scenario::rewrite::Rewrite`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum RewriteExpr {
    /// The last two axes change places.
    Transpose,
    /// A part of an axis.
    Slice {
        /// The axis.
        #[serde(default = "zero")]
        axis: Expr,
        /// First index.
        #[serde(default = "zero")]
        from: Expr,
        /// The index after the last one; the end unless given.
        #[serde(default)]
        to: Option<Expr>,
        /// Distance; 1 unless given.
        #[serde(default = "one")]
        step: Expr,
    },
    /// Every so many rows of a fused matrix.
    Parts {
        /// Blocks.
        groups: Expr,
        /// Parts of a block.
        of: Expr,
        /// First part.
        from: Expr,
        /// How many; 1 unless given.
        #[serde(default = "one")]
        count: Expr,
    },
    /// Pairs side by side to halves, in each of so many heads.
    Halves(Expr),
    /// The inverse.
    Pairs(Expr),
    /// Other lengths of the axes.
    Reshape(Vec<Expr>),
    /// Add a number.
    Add(Expr),
    /// Multiply by a number.
    Multiply(Expr),
}

fn zero() -> Expr {
    Expr("0".into())
}

fn one() -> Expr {
    Expr("1".into())
}

/// Which tensors of the file a parameter is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Path of the parameter, with `{L}` for the layer and `{E}` for the expert.
    pub ours: String,
    /// Name in the file, likewise; ` | ` separates names of which the first that exists is meant. `{E}` here alone
    /// stacks the tensors of all experts.
    pub theirs: String,
    /// Rewrites, in order.
    #[serde(default)]
    pub with: Vec<RewriteExpr>,
    /// Holds only where this is true.
    #[serde(default)]
    pub when: Option<Expr>,
}

/// A name that recordings of the family have, and what it denotes here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedName {
    /// The name, with `{L}` for the layer.
    pub name: String,
    /// Our path, `{S}` for the stack that the model has.
    pub path: String,
    /// How its axes lie, where it is not as ours.
    #[serde(default)]
    pub layout: Option<String>,
    /// Which of the node's cells it says, where it is not all of them.
    #[serde(default)]
    pub reading: Option<String>,
}

/// Names that recordings of the family have, besides those that follow from `tensors`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recorded {
    /// What a comparison calls this table.
    pub about: String,
    /// What may be before every name.
    pub prefixes: Vec<String>,
    /// Values of `model_type` whose recordings have these names, though this file does not open them.
    pub also: Vec<String>,
    /// The names.
    pub names: Vec<RecordedName>,
}

/// What a family file says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Family {
    /// File that it comes from.
    #[serde(skip)]
    pub file: String,
    /// What it is called.
    pub name: String,
    /// The family that it is like: what is not said here is as there.
    pub like: Option<String>,
    /// Values of `model_type` that mean it.
    pub model_types: Vec<String>,
    /// Values of keys that the configuration lacks; each may use those before it.
    pub defaults: Ordered<Expr>,
    /// Names for expressions that are used more than once; each may use those before it.
    pub values: Ordered<Expr>,
    /// Conditions, and what it means where one does not hold.
    pub require: Ordered<String>,
    /// Settings of the model by their paths in a scenario, such as `norm.eps`.
    pub model: Ordered<Expr>,
    /// The encoder's layers.
    pub encoder: Option<Stack>,
    /// The decoder's layers.
    pub decoder: Option<Stack>,
    /// Words of the vocabulary; `vocab_size` unless given.
    pub vocabulary: Option<Expr>,
    /// Words of the target's vocabulary, where it differs.
    pub target_vocabulary: Option<Expr>,
    /// Number of experts, for `{E}`.
    pub experts: Option<Expr>,
    /// First id of the decoder of an encoder-decoder; `decoder_start_token_id` unless given.
    pub start: Option<Expr>,
    /// What may be before every name in the file.
    pub prefixes: Vec<String>,
    /// Parameters and their tensors; of several rules for a parameter, the first whose tensors exist.
    pub tensors: Vec<Rule>,
    /// Names in the file that are no parameters, such as buffers: globs, and when they may be there.
    pub ignore: Ordered<Expr>,
    /// Names that recordings have.
    pub recorded: Recorded,
    /// Whether it has such names and is like no other family: a recording of which nobody says what it is may have them.
    #[serde(skip)]
    pub names_recorded: bool,
}

impl Family {
    /// Reads a family file; what it is like is filled in.
    ///
    /// # Errors
    /// Where it is none; the message says where.
    pub fn read(file: &str, text: &str) -> Result<Self, Msg> {
        let mut family = Self::parse(file, text)?;
        for _ in 0..DEEPEST {
            let Some(like) = family.like.take() else {
                return Ok(family);
            };
            let Some((name, text)) = FILES.iter().find(|(name, _)| *name == format!("{like}.ron")) else {
                let known: Vec<&str> = embedded().map(|f| f.name.as_str()).collect();
                return Err(Msg::new("family.like")
                    .arg("file", escape(file))
                    .arg("name", escape(&like))
                    .arg("names", known.join(", ")));
            };
            family.over(Self::parse(name, text)?);
        }
        Err(Msg::new("family.circle").arg("file", escape(file)))
    }

    fn parse(file: &str, text: &str) -> Result<Self, Msg> {
        let options = ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
        let mut family: Self = options.from_str(text).map_err(|e| {
            let place = format!("{}:{}", e.span.start.line, e.span.start.col);
            Msg::new("family.syntax")
                .arg("file", escape(file))
                .arg("place", place)
                .arg("why", escape(&e.code.to_string()))
        })?;
        file.clone_into(&mut family.file);
        family.names_recorded = family.like.is_none() && !family.recorded.names.is_empty();
        Ok(family)
    }

    /// Reads the family file at `path`.
    ///
    /// # Errors
    /// Where it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let file = path.to_string_lossy();
        let text = super::json::text(path)?;
        Self::read(&file, &text)
    }

    /// Takes from `base` what this one does not say.
    fn over(&mut self, base: Self) {
        fn under<T>(own: &mut Ordered<T>, base: Ordered<T>) {
            let mut all = base.0;
            for (name, value) in own.0.drain(..) {
                match all.iter_mut().find(|(n, _)| *n == name) {
                    Some(there) => there.1 = value,
                    None => all.push((name, value)),
                }
            }
            own.0 = all;
        }
        fn stack(own: &mut Option<Stack>, base: Option<Stack>) {
            match (own.as_mut(), base) {
                (Some(own), Some(base)) => {
                    if own.layers.is_none() {
                        own.layers = base.layers;
                    }
                    under(&mut own.settings, base.settings);
                    under(&mut own.each, base.each);
                }
                (None, base) => *own = base,
                (Some(_), None) => {}
            }
        }
        self.like = base.like;
        under(&mut self.defaults, base.defaults);
        under(&mut self.values, base.values);
        under(&mut self.require, base.require);
        under(&mut self.model, base.model);
        stack(&mut self.encoder, base.encoder);
        stack(&mut self.decoder, base.decoder);
        for (own, base) in [
            (&mut self.vocabulary, base.vocabulary),
            (&mut self.target_vocabulary, base.target_vocabulary),
            (&mut self.experts, base.experts),
            (&mut self.start, base.start),
        ] {
            if own.is_none() {
                *own = base;
            }
        }
        if self.prefixes.is_empty() {
            self.prefixes = base.prefixes;
        }
        self.tensors.extend(base.tensors);
        if self.recorded.about.is_empty() {
            self.recorded.about = base.recorded.about;
        }
        if self.recorded.prefixes.is_empty() {
            self.recorded.prefixes = base.recorded.prefixes;
        }
        let own: BTreeSet<String> = self.recorded.names.iter().map(|n| n.name.clone()).collect();
        let others = base.recorded.names.into_iter().filter(|n| !own.contains(&n.name));
        self.recorded.names.extend(others);
        under(&mut self.ignore, base.ignore);
    }
}

/// Families that are like one another, in a row.
const DEEPEST: usize = 8;

/// The families that come with the program.
///
/// # Panics
/// Where one of them is broken, which the tests would have said.
pub fn embedded() -> impl Iterator<Item = &'static Family> {
    static MADE: OnceLock<Vec<Family>> = OnceLock::new();
    let read = |(file, text): &(&str, &str)| Family::read(file, text).unwrap_or_else(|e| panic!("{file}: {e:?}"));
    MADE.get_or_init(|| FILES.iter().map(read).collect()).iter()
}
