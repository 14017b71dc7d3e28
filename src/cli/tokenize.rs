//! `tokenize`: text to ids and back with the tokenizer of a checkpoint.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use serde_json::json;

use super::Failure;
use crate::checkpoint::chat::Chat;
use crate::source::Tokenizer;
use crate::text::{Align, Cells, Lang, Msg, escape, tr};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["text", "decode"]))]
pub struct Args {
    /// A folder with a `tokenizer.json`, such a file, or a GGUF file.
    #[arg(value_name = "FOLDER")]
    pub source: PathBuf,
    /// The text.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub text: Option<String>,
    /// The second text of a pair.
    #[arg(long, value_name = "TEXT", requires = "text", allow_hyphen_values = true)]
    pub pair: Option<String>,
    /// The text is what a user says: its chat template makes the text that is cut.
    #[arg(long, requires = "text", conflicts_with = "pair")]
    pub chat: bool,
    /// Instructions before it.
    #[arg(long, value_name = "TEXT", requires = "chat", allow_hyphen_values = true)]
    pub system: Option<String>,
    /// Leave out the tokens that the tokenizer adds around a text.
    #[arg(long, conflicts_with = "decode")]
    pub no_special_tokens: bool,
    /// Ids to turn into text, separated by spaces or commas.
    #[arg(long, value_name = "IDS")]
    pub decode: Option<String>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// Prints the tokens of a text, or the text of ids.
///
/// # Errors
/// A tokenizer that cannot be read, ids that are no numbers, standard output.
pub fn run(args: &Args, lang: Lang) -> Result<(), Failure> {
    let tokenizer = Tokenizer::open(&args.source)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if let Some(ids) = &args.decode {
        let text = tokenizer.decode(&parse_ids(ids)?)?;
        if args.json {
            writeln!(out, "{}", json!({ "text": text }))?;
        } else {
            writeln!(out, "{}", escape(&text))?;
        }
    } else {
        let text = args.text.as_deref().unwrap_or_default();
        let e = if args.chat {
            // The template writes special tokens itself.
            let said = Chat::open(&args.source)?.render(args.system.as_deref(), text)?;
            tokenizer.encode(&said, None, false)?
        } else {
            tokenizer.encode(text, args.pair.as_deref(), !args.no_special_tokens)?
        };
        if args.json {
            let json = json!({"ids": e.ids, "tokens": e.tokens, "offsets": e.offsets, "type_ids": e.type_ids});
            writeln!(out, "{json}")?;
        } else {
            let cells = Cells::NARROW;
            let head = ["tokenize.id", "tokenize.piece", "tokenize.offsets", "tokenize.readable"];
            let mut rows = vec![head.map(|key| tr(lang, key).to_owned())];
            for ((id, token), (from, to)) in e.ids.iter().zip(&e.tokens).zip(&e.offsets) {
                let readable = tokenizer.readable(*id).unwrap_or_default();
                rows.push([
                    id.to_string(),
                    escape(token).into_owned(),
                    format!("{from}–{to}"),
                    escape(&readable).into_owned(),
                ]);
            }
            let width = |c: usize| rows.iter().map(|r| cells.width(&r[c])).max().unwrap_or(0);
            let widths = [width(0), width(1), width(2)];
            for [id, token, offsets, readable] in &rows {
                let id = cells.pad(id, widths[0], Align::Right);
                let token = cells.pad(token, widths[1], Align::Left);
                let offsets = cells.pad(offsets, widths[2], Align::Left);
                writeln!(out, "{id}  {token}  {offsets}  {readable}")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// Ids separated by spaces or commas.
///
/// # Errors
/// A part that is no id.
pub(super) fn parse_ids(text: &str) -> Result<Vec<u32>, Msg> {
    let parts = text.split([',', ' ', '\t', '\n']).filter(|p| !p.is_empty());
    parts.map(|p| p.parse().map_err(|_| Msg::new("source.no_id").arg("text", escape(p)))).collect()
}
