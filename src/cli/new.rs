//! `new`: a scenario to start from.

use std::path::PathBuf;

use super::Failure;
use crate::checkpoint;
use crate::export::file::Target;
use crate::text::{Lang, Msg};

/// What a new scenario is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// One attention over three vectors.
    Attention,
    /// An encoder with a padded batch.
    Encoder,
    /// A decoder that generates.
    Decoder,
    /// Both, with cross-attention.
    EncoderDecoder,
    /// Pre-norm, learned positions, GELU, tied head.
    Gpt,
    /// `RMSNorm`, rotary positions, grouped queries, gated feed-forward.
    Llama,
    /// A model that learns to copy.
    Training,
    /// What the checkpoint of `--from` is.
    FromCheckpoint,
}

impl Kind {
    /// Its text, with the comments of both languages.
    /// `None` where it is no template.
    fn template(self) -> Option<&'static str> {
        Some(match self {
            Kind::Attention => include_str!("../../assets/new/attention.ron"),
            Kind::Encoder => include_str!("../../assets/new/encoder.ron"),
            Kind::Decoder => include_str!("../../assets/new/decoder.ron"),
            Kind::EncoderDecoder => include_str!("../../assets/new/encoder-decoder.ron"),
            Kind::Gpt => include_str!("../../assets/new/gpt.ron"),
            Kind::Llama => include_str!("../../assets/new/llama.ron"),
            Kind::Training => include_str!("../../assets/new/training.ron"),
            Kind::FromCheckpoint => return None,
        })
    }
}

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What it is.
    #[arg(value_name = "KIND", value_enum)]
    pub kind: Kind,
    /// The checkpoint, for `from-checkpoint`.
    #[arg(long, value_name = "FOLDER")]
    pub from: Option<PathBuf>,
    /// What the checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

/// Writes the scenario.
///
/// # Errors
/// A checkpoint that cannot be opened, a file that is there already or cannot be written.
pub fn run(args: &Args, lang: Lang) -> Result<(), Failure> {
    let text = match (args.kind.template(), &args.from) {
        (Some(template), None) if !args.inputs.is_given() => commented(template, lang),
        (Some(_), _) => return Err(Msg::new("new.from_unread").into()),
        (None, None) => return Err(Msg::new("new.from_missing").into()),
        (None, Some(source)) => {
            checkpoint::written(source, &args.inputs.given()).map_err(|d| Failure::Diagnostic(d.render(lang)))?
        }
    };
    Target::new(args.output.as_deref()).write(args.force, |out| out.write_all(text.as_bytes()))?;
    Ok(())
}

/// A template with the comments of one language: `… //en: width //zh: 宽度` is `… // width`.
fn commented(template: &str, lang: Lang) -> String {
    let mut out = String::new();
    for line in template.lines() {
        let (code, comments) = line.split_once("//en:").unwrap_or((line, ""));
        let (en, zh) = comments.split_once("//zh:").unwrap_or((comments, comments));
        let comment = match lang {
            Lang::En => en,
            Lang::Zh => zh,
        };
        out.push_str(code);
        if !comment.trim().is_empty() {
            out.push_str("// ");
            out.push_str(comment.trim());
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::scenario::syntax;
    use crate::session;

    #[test]
    fn every_kind_opens_in_both_languages_and_begins_a_line_with_its_bracket() {
        for kind in Kind::value_variants() {
            let Some(template) = kind.template() else {
                continue;
            };
            let texts = [Lang::En, Lang::Zh].map(|lang| commented(template, lang));
            for text in &texts {
                assert!(text.lines().any(|l| l.starts_with('(')), "{kind:?}");
                assert!(!text.contains("//en") && !text.contains("//zh"), "{kind:?}");
                let scenario =
                    syntax::read("new.ron", text).unwrap_or_else(|d| panic!("{kind:?}: {}", d.render(Lang::En)));
                let s = session::open(scenario, None, session::Options::default()).expect("opens");
                for run in 0..s.runs.len() {
                    s.trace(run).expect("runs");
                }
            }
            assert_ne!(texts[0], texts[1], "{kind:?}: its comments are in both languages");
        }
    }
}
