//! Opens sources for the debugger while it runs: `reload`, `open`.

use std::path::{Path, PathBuf};

use clap::Parser;

use super::{Failure, common, inputs};
use crate::app::live::{Opened, Opener};
use crate::session;
use crate::text::{Lang, Msg, escape, tr};

/// A source and its inputs, as `open` takes them.
#[derive(Debug, Parser)]
#[command(name = "open", no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
struct Line {
    source: PathBuf,
    #[command(flatten)]
    inputs: inputs::Args,
}

/// Opens sources as the command line does.
pub(super) struct Sources {
    source: PathBuf,
    inputs: inputs::Args,
    options: session::Options,
    lang: Lang,
}

impl Sources {
    /// `source` is the one that is open.
    pub(super) fn new(source: &Path, inputs: &inputs::Args, options: session::Options, lang: Lang) -> Box<Self> {
        Box::new(Self { source: source.to_owned(), inputs: inputs.clone(), options, lang })
    }

    fn lines(&self, failure: Failure) -> Vec<String> {
        match failure {
            Failure::User(msg) => vec![msg.render(self.lang)],
            Failure::Diagnostic(text) => diagnostic(&text),
            Failure::Check | Failure::Interrupted | Failure::BrokenPipe => Vec::new(),
        }
    }
}

impl Opener for Sources {
    fn open(&mut self, line: Option<&str>) -> Result<Opened, Vec<String>> {
        let (source, inputs) = match line {
            None => (self.source.clone(), self.inputs.clone()),
            Some(line) => {
                let words = shlex::split(line).ok_or_else(|| vec![tr(self.lang, "live.quotes").to_owned()])?;
                let read = Line::try_parse_from(words).map_err(|e| {
                    let text = e.to_string();
                    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
                    lines.take(1).map(|l| escape(l.trim_start_matches("error: ")).into_owned()).collect::<Vec<_>>()
                })?;
                (read.source, read.inputs)
            }
        };
        if source == Path::new("-") {
            return Err(vec![tr(self.lang, "live.standard_input").to_owned()]);
        }
        let mut notes: Vec<Msg> = Vec::new();
        let opened = common::open_noting(&source, &inputs, self.options, self.lang, &mut notes);
        let session = opened.map_err(|failure| self.lines(failure))?;
        // The command line's update was one of the source that it named.
        if line.is_some() {
            self.options.update = 0;
        }
        (self.source, self.inputs) = (source, inputs);
        Ok(Opened { name: self.source.to_string_lossy().into_owned(), session, notes })
    }
}

/// A rendered diagnostic as lines, the first with the place in it: `file:3:5: what is wrong`.
fn diagnostic(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let place = lines.get(1).and_then(|l| l.trim_start().strip_prefix("--> ")).map(str::to_owned);
    if let (Some(place), Some(first)) = (place, lines.first_mut()) {
        let what = first.split_once(": ").map_or(first.as_str(), |(_, what)| what);
        *first = format!("{place}: {what}");
        lines.remove(1);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_diagnostic_comes_first() {
        let text = "error: no such field\n  --> a.ron:3:5\n   at: model\n";
        assert_eq!(diagnostic(text), ["a.ron:3:5: no such field", "   at: model"]);
        assert_eq!(diagnostic("error: no file"), ["error: no file"]);
    }
}
