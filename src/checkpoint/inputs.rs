//! What a checkpoint is run on: text, ids, or the inputs of a recording.

use std::path::{Path, PathBuf};

use crate::model::Sequences;
use crate::scenario::files::Weighty;
use crate::scenario::schema::Input;
use crate::text::{Msg, escape};

/// What the command line gives. Nothing: a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Text of the encoder, or of a decoder without one.
    pub text: Option<String>,
    /// The second text of a pair.
    pub pair: Option<String>,
    /// Text of the decoder of an encoder-decoder.
    pub target_text: Option<String>,
    /// Ids instead of the text, as they are.
    pub ids: Option<Vec<i64>>,
    /// Ids instead of the target's text.
    pub target_ids: Option<Vec<i64>>,
    /// 1 where a token may be seen, 0 where it is hidden.
    pub mask: Option<Vec<i64>>,
    /// Types of the tokens.
    pub types: Option<Vec<i64>>,
    /// A file of tensors whose `input_ids`, `attention_mask`, `token_type_ids` and `decoder_input_ids` are read.
    pub file: Option<PathBuf>,
    /// The text is what a user says, and the model reads what its chat template makes of it.
    pub chat: bool,
    /// Instructions before what the user says.
    pub system: Option<String>,
    /// What another run reads, as ids, where nothing else is given.
    pub rows: Option<Sides>,
    /// A family file of the user's own.
    pub family: Option<PathBuf>,
}

impl Given {
    /// Whether no input is given.
    pub fn is_empty(&self) -> bool {
        let how = Self { family: self.family.clone(), chat: self.chat, system: self.system.clone(), ..Self::default() };
        *self == how
    }
}

/// Ids as the command line takes them: separated by spaces or commas.
///
/// # Errors
/// What is no whole number.
pub fn numbers(text: &str) -> Result<Vec<i64>, Msg> {
    let parts = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|part| !part.is_empty());
    let one = |part: &str| {
        part.parse().map_err(|_| Msg::new("input.not_an_id").arg("text", escape(part)).arg("all", escape(text)))
    };
    parts.map(one).collect()
}

/// Rows of ids, one a sequence.
type Rows = Vec<Vec<i64>>;

/// What both sides read, as ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    /// Ids of the side that reads the text.
    pub ids: Rows,
    /// Ids of the decoder next to an encoder.
    pub target: Option<Rows>,
    /// Which of `ids` may be seen.
    pub mask: Option<Vec<Vec<bool>>>,
    /// Types of `ids`.
    pub types: Option<Rows>,
}

impl Sides {
    /// What another run reads; `None` where it reads no ids.
    pub fn of(source: Option<&Sequences>, target: Option<&Sequences>) -> Option<Self> {
        let rows = |s: &Sequences| s.ids.chunks(s.tokens().max(1)).map(<[i64]>::to_vec).collect::<Rows>();
        let by_token = |s: &Sequences| s.tokens().max(1);
        let (first, second) = match source {
            Some(source) => (source, target),
            None => (target?, None),
        };
        let per = by_token(first);
        let mask = first.real.as_ref().map(|real| real.chunks(per).map(<[bool]>::to_vec).collect());
        let types = first.types.as_ref().map(|types| types.chunks(per).map(<[i64]>::to_vec).collect());
        let sides = Self { ids: rows(first), target: second.map(rows), mask, types };
        (!sides.ids.is_empty()).then_some(sides)
    }

    /// The inputs in a file of tensors.
    ///
    /// # Errors
    /// Where it cannot be read, or has none.
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let name = path.to_string_lossy();
        let file = Weighty::<f64>::open(&name, &|_| Ok(path.to_owned()), &|_| true)?;
        let rows = |key: &str| -> Result<Option<Rows>, Msg> {
            let Some(info) = file.info(key) else {
                return Ok(None);
            };
            let (batch, tokens) = match *info.dims {
                [tokens] => (1, tokens),
                [batch, tokens] => (batch, tokens),
                _ => return Err(wrong(&name, key)),
            };
            let numbers = file.numbers(key).ok_or_else(|| wrong(&name, key))?;
            if batch == 0 || tokens == 0 || numbers.iter().any(|x| x.fract() != 0.0) {
                return Err(wrong(&name, key));
            }
            let ids: Vec<i64> = numbers.iter().map(|x| *x as i64).collect();
            Ok(Some(ids.chunks(tokens).map(<[i64]>::to_vec).collect()))
        };
        let ids = rows("input_ids")?.ok_or_else(|| {
            let known: Vec<String> = file.names().take(8).map(|n| escape(n).into_owned()).collect();
            Msg::new("input.no_ids").arg("file", escape(&name)).arg("names", known.join(", "))
        })?;
        let mask = rows("attention_mask")?.map(|rows| seen(&rows));
        Ok(Self { ids, target: rows("decoder_input_ids")?, mask, types: rows("token_type_ids")? })
    }
}

fn wrong(file: &str, key: &str) -> Msg {
    Msg::new("input.no_rows").arg("file", escape(file)).arg("name", key)
}

fn seen(rows: &[Vec<i64>]) -> Vec<Vec<bool>> {
    rows.iter().map(|row| row.iter().map(|x| *x != 0).collect()).collect()
}

/// The mask and the types of one row.
pub fn flags(given: &Given, sides: &mut Sides) {
    if let Some(mask) = &given.mask {
        sides.mask = Some(seen(std::slice::from_ref(mask)));
    }
    if let Some(types) = &given.types {
        sides.types = Some(vec![types.clone()]);
    }
}

/// A side as a scenario writes it. A mask that hides nothing is none.
pub fn input(ids: Rows, mask: Option<Vec<Vec<bool>>>, types: Option<Rows>) -> Input {
    let real = mask.filter(|rows| rows.iter().flatten().any(|seen| !seen));
    Input { ids, real, types, ..Input::default() }
}
