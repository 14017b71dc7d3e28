//! The scenario file: what a teacher writes by hand, as plain data. Unknown fields are errors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::edit::Edit;
use super::lint::Lint;
use super::rewrite::Rewrite;
use super::unique;
use crate::model::config::ModelConfig;
use crate::tensor::Precision;
use crate::text::Lang;

mod runs;
mod steps;
mod training;

pub use crate::program::optimiser::{Optimiser, OptimiserKind, ParameterGroup, Schedule};
pub use runs::{Changes, Decode, Prefix, Run};
pub use steps::{Expected, Misprint, Place, StepSpec, ViewSpec};
pub use training::{Loss, Reduction, SquaredReduction};

/// Text in both languages; one may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Text {
    /// English.
    pub en: String,
    /// Chinese.
    pub zh: String,
}

impl Text {
    /// Whether there is none in either language.
    pub fn is_empty(&self) -> bool {
        self.en.is_empty() && self.zh.is_empty()
    }

    /// The text in `lang`; the other language where only that is given. Untrusted.
    pub fn of(&self, lang: Lang) -> &str {
        let (first, second) = if lang == Lang::Zh { (&self.zh, &self.en) } else { (&self.en, &self.zh) };
        if first.is_empty() { second } else { first }
    }
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, as it stands in exports.
    pub name: String,
    /// Title.
    #[serde(default)]
    pub title: Text,
    /// What it is about, and what is peculiar about it.
    #[serde(default)]
    pub note: Text,
    /// Number type of its runs.
    #[serde(default = "f64_precision")]
    pub precision: Precision,
    /// Decimals that its numbers are shown with, such as those of the publication that it follows; 4 unless given.
    /// `--digits` counts more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u8>,
    /// Vocabulary; of the source, where the target has one of its own. Not needed where all inputs are vectors: the
    /// model then has no embedding table and no output head.
    #[serde(default, skip_serializing_if = "Vocabulary::is_none")]
    pub vocabulary: Vocabulary,
    /// Vocabulary of the target, where it differs.
    #[serde(default)]
    pub target_vocabulary: Option<Vocabulary>,
    /// The model.
    pub model: ModelConfig,
    /// Its weights.
    #[serde(default)]
    pub weights: Weights,
    /// What the encoder reads.
    #[serde(default)]
    pub source: Option<Input>,
    /// What the decoder reads in training.
    #[serde(default)]
    pub target: Option<Input>,
    /// What each target position must predict.
    #[serde(default)]
    pub labels: Labels,
    /// Runs, in order.
    pub runs: Vec<Run>,
    /// Ids that end a generation; that of `<eos>` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Vec<i64>>,
    /// Recorded values that are edited, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// Remarks by path, which stand beside the steps of automatic plans that show it.
    #[serde(default, deserialize_with = "unique::map")]
    pub remarks: BTreeMap<String, Text>,
    /// Short names of tensors.
    #[serde(default, deserialize_with = "unique::map")]
    pub symbols: BTreeMap<String, Place>,
    /// Numbered steps; an automatic plan where there are none.
    #[serde(default)]
    pub walkthrough: Vec<StepSpec>,
    /// Values that a run must reproduce.
    #[serde(default)]
    pub expected: Vec<Expected>,
    /// Lints whose findings are meant so: `check` tells them as information.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Lint>,
}

fn f64_precision() -> Precision {
    Precision::F64
}

/// A vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Vocabulary {
    /// These words, numbered from 0. Text is cut at spaces, or else into the longest words that fit.
    Words(Vec<String>),
    /// Characters of a corpus, most frequent first.
    Characters(Characters),
    /// Ids below this number; no text.
    Size(usize),
    /// The tokenizer of a checkpoint.
    Tokenizer {
        /// A `tokenizer.json`, or a GGUF file with a vocabulary, relative to the scenario.
        file: String,
        /// Ids of the model, where they are not as many as the tokenizer's.
        #[serde(default)]
        size: Option<usize>,
    },
}

/// A character vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Characters {
    /// A text file, relative to the scenario, or the name of an embedded one.
    #[serde(default)]
    pub corpus_file: Option<String>,
    /// The corpus itself; next to `corpus_file`, what is added to it.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Most entries, special ones included.
    #[serde(default)]
    pub max_size: Option<usize>,
    /// Special entries, numbered first. Names with a meaning: `<pad>`, `<unk>`, `<sos>`, `<eos>`.
    #[serde(default = "specials")]
    pub special: Vec<String>,
    /// Whether letters are lower-cased.
    #[serde(default)]
    pub lowercase: bool,
    /// Whether spaces count as characters.
    #[serde(default)]
    pub spaces: bool,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::Size(0)
    }
}

impl Vocabulary {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Self::Size(0)
    }
}

fn specials() -> Vec<String> {
    ["<pad>", "<unk>", "<sos>", "<eos>"].map(str::to_owned).to_vec()
}

/// Sequences that a stack reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    /// Sentences, as text.
    pub text: Vec<String>,
    /// Or as ids.
    pub ids: Vec<Vec<i64>>,
    /// Or as vectors, `[sentence][token][d_model]`, which enter the model instead of rows of an embedding table. With
    /// `text` or `ids` next to them, those only name the tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<Vec<Vec<f64>>>,
    /// Or as the queries, keys and values of the encoder's only attention, which then has `projections: false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qkv: Option<GivenAttention>,
    /// Put `<sos>` before each sentence.
    pub sos: bool,
    /// Put `<eos>` after each sentence.
    pub eos: bool,
    /// Pad all to this length; to the longest unless given.
    pub length: Option<usize>,
    /// Id of padding; that of `<pad>` unless given. Where it is given, tokens that have it already are padding too,
    /// wherever they are; of an id that ends sentences as well, all but the first after the text.
    pub pad: Option<i64>,
    /// Where sentences are padded.
    pub pad_side: PadSide,
    /// Which tokens are real, `(B, T)`; from the padding unless given.
    pub real: Option<Vec<Vec<bool>>>,
    /// Positions of the tokens.
    pub positions: PositionIds,
    /// A mask of one's own, true where visible.
    pub mask: Option<MaskInput>,
    /// Of a source: which of its tokens the decoder's cross-attention sees, in place of what `real` and `mask` hide
    /// from it. `Square` has a row for each token of the target, `(B, T, S)`.
    pub cross_mask: Option<MaskInput>,
    /// Token types.
    pub types: Option<Vec<Vec<i64>>>,
}

/// On which side of a sentence padding is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PadSide {
    /// After it.
    #[default]
    Right,
    /// Before it, as decoders that generate in batches need it.
    Left,
}

/// Positions of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum PositionIds {
    /// All tokens are counted, from 0.
    #[default]
    Counted,
    /// Only real tokens are counted, from 0 in each sentence: those of a sentence padded left are as those of the
    /// sentence alone.
    SkipPadding,
    /// These, `(B, T)`.
    Ids(Vec<Vec<i64>>),
}

/// Queries, keys and values as they enter an attention, `[sentence][token][heads · width]`, the heads side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GivenAttention {
    /// Queries.
    pub q: Vec<Vec<Vec<f64>>>,
    /// Keys.
    pub k: Vec<Vec<Vec<f64>>>,
    /// Values.
    pub v: Vec<Vec<Vec<f64>>>,
}

/// A mask in one of its three usual shapes, true where visible. Keys that a source hides from all alike (the first two
/// shapes) are hidden from the decoder's cross-attention too; a mask with a row for each source token is of the
/// encoder's self-attention alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum MaskInput {
    /// `(B, T)`.
    Keys(Vec<Vec<bool>>),
    /// `(B, 1, T)`.
    Row(Vec<Vec<Vec<bool>>>),
    /// `(B, T, T)`.
    Square(Vec<Vec<Vec<bool>>>),
}

/// Where labels come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Labels {
    /// There are none: no loss.
    #[default]
    None,
    /// Each position predicts the next token; the last one does not count.
    Shifted,
    /// Each position predicts the token it sees.
    Unshifted,
    /// Ids, negative where a position does not count.
    Ids(Vec<Vec<i64>>),
}

/// Weights: inline values, files, and initialisers for the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Values by parameter path.
    #[serde(deserialize_with = "unique::map")]
    pub values: BTreeMap<String, WeightValue>,
    /// Files, later ones before earlier ones.
    pub files: Vec<WeightFile>,
    /// Initialisers; the first whose pattern fits.
    pub init: Vec<InitRule>,
    /// Seed of the initialisers.
    pub seed: u64,
}

/// Values of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum WeightValue {
    /// A vector.
    Vector(Vec<f64>),
    /// A matrix `[out, in]`, as PyTorch stores it: y = x·Wᵀ.
    OutIn(Vec<Vec<f64>>),
    /// A matrix `[in, out]`: y = x·W.
    InOut(Vec<Vec<f64>>),
    /// One `[out, in]` matrix a head, stacked.
    Heads(Vec<Vec<Vec<f64>>>),
    /// One `[in, out]` matrix a head, side by side.
    HeadsInOut(Vec<Vec<Vec<f64>>>),
}

/// A file of weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WeightFile {
    /// A safetensors, npz or GGUF file, or the index of a checkpoint in shards (`….safetensors.index.json`), relative
    /// to the scenario.
    pub path: String,
    /// Put before a parameter's path to find its name in the file, such as `weights.`.
    #[serde(default)]
    pub prefix: String,
    /// Names in the file by parameter path, where they are not the path itself.
    #[serde(default, deserialize_with = "unique::map")]
    pub names: BTreeMap<String, String>,
    /// Parameters that tensors of the file become by rewrites, by parameter path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, Made>,
    /// Names in the file that no parameter needs, such as buffers: globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
}

impl WeightFile {
    /// A file whose tensors have the names of the parameters.
    pub fn of(path: &std::path::Path) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            prefix: String::new(),
            names: BTreeMap::new(),
            made: BTreeMap::new(),
            ignore: Vec::new(),
        }
    }
}

/// A parameter that is made of a file's tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// Names in the file. Several, of one shape, are stacked along a new first axis after the rewrites.
    pub from: Vec<String>,
    /// What is done with each, in order.
    #[serde(default)]
    pub with: Vec<Rewrite>,
}

/// An initialiser and where it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InitRule {
    /// Glob over parameter paths, such as `*.bias`; everything unless given.
    #[serde(default = "everything")]
    pub paths: String,
    /// How.
    pub with: Init,
}

fn everything() -> String {
    "*".to_owned()
}

/// A seeded initialiser: the same numbers on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum Init {
    /// Normal.
    Normal {
        /// Mean.
        #[serde(default)]
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Uniform.
    Uniform {
        /// From.
        low: f64,
        /// To.
        high: f64,
    },
    /// Uniform in ±√(6/(in + out)) (Glorot and Bengio 2010).
    Xavier,
    /// Uniform in ±1/√in, weights and biases, as PyTorch's Linear.
    Kaiming,
    /// All the same.
    Constant(f64),
}
