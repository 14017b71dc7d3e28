//! What a checkpoint is run on, as every command that opens one takes it.

use std::path::PathBuf;

use crate::checkpoint::inputs::{Given, numbers};
use crate::text::{Lang, Msg, tr};

/// Ids on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids(pub Vec<i64>);

fn ids(text: &str) -> Result<Ids, String> {
    let found = numbers(text).map_err(|msg| msg.to_string())?;
    if found.is_empty() { Err(tr(Lang::En, "input.empty").to_owned()) } else { Ok(Ids(found)) }
}

/// Inputs of a checkpoint, and its family.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Text that is read.
    #[arg(id = "input_text", long = "text", value_name = "TEXT", conflicts_with = "input_ids")]
    pub text: Option<String>,
    /// Second text of a pair.
    #[arg(id = "input_pair", long = "pair", value_name = "TEXT", requires = "input_text")]
    pub pair: Option<String>,
    /// Text of the decoder.
    #[arg(id = "input_target_text", long = "target-text", value_name = "TEXT", conflicts_with = "input_target_ids")]
    pub target_text: Option<String>,
    /// Ids that are read.
    #[arg(id = "input_ids", long = "ids", value_name = "IDS", value_parser = ids)]
    pub ids: Option<Ids>,
    /// Ids of the decoder.
    #[arg(id = "input_target_ids", long = "target-ids", value_name = "IDS", value_parser = ids)]
    pub target_ids: Option<Ids>,
    /// Which tokens are seen.
    #[arg(id = "input_mask", long = "mask", value_name = "FLAGS", value_parser = ids)]
    pub mask: Option<Ids>,
    /// Types of the tokens.
    #[arg(id = "input_types", long = "types", value_name = "IDS", value_parser = ids)]
    pub types: Option<Ids>,
    /// A recording whose inputs are read.
    #[arg(id = "input_file", long = "inputs", value_name = "FILE")]
    pub inputs: Option<PathBuf>,
    /// Whether the text goes through the chat template.
    #[arg(id = "input_chat", long = "chat", conflicts_with_all = ["input_pair", "input_ids", "input_file"])]
    pub chat: bool,
    /// Instructions before the text.
    #[arg(id = "input_system", long = "system", value_name = "TEXT", requires = "input_chat")]
    pub system: Option<String>,
    /// The model that a recording is laid over.
    #[arg(id = "input_model", long = "model", value_name = "FOLDER|SCENARIO")]
    pub model: Option<PathBuf>,
    /// Names the tokens of a recording.
    #[arg(id = "input_tokenizer", long = "tokenizer", value_name = "FOLDER|FILE")]
    pub tokenizer: Option<PathBuf>,
    /// A family file.
    #[arg(id = "input_family", long = "family", value_name = "FILE")]
    pub family: Option<PathBuf>,
}

impl Args {
    /// The same without the command line.
    pub fn given(&self) -> Given {
        let ids = |ids: &Option<Ids>| ids.as_ref().map(|ids| ids.0.clone());
        Given {
            text: self.text.clone(),
            pair: self.pair.clone(),
            target_text: self.target_text.clone(),
            ids: ids(&self.ids),
            target_ids: ids(&self.target_ids),
            mask: ids(&self.mask),
            types: ids(&self.types),
            chat: self.chat,
            system: self.system.clone(),
            rows: None,
            file: self.inputs.clone(),
            family: self.family.clone(),
        }
    }

    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        self.given() != Given::default() || self.model.is_some() || self.tokenizer.is_some()
    }
}

/// What is wrong where inputs are given to a source that has its own.
pub(super) fn refused(source: &std::path::Path) -> Msg {
    Msg::new("input.no_checkpoint").arg("source", crate::text::escape(&source.to_string_lossy()))
}
