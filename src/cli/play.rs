//! `play`: the debugger's commands without its screen, for scripts. What they say and find goes to standard output.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::bind::Laid;
use super::global::Global;
use super::{Failure, common, value};
use crate::app::action::Action;
use crate::app::app::App;
use crate::app::command;
use crate::app::executor::{Front, Outcome};
use crate::app::messages::Level;
use crate::app::settings::Settings;
use crate::export::select::Selection;
use crate::scenario::guard;
use crate::text::{Lang, Msg, escape};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// Commands, one a line; `-` for standard input.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// One command; run after those of the file.
    #[arg(short = 'e', long = "execute", value_name = "COMMAND")]
    pub execute: Vec<String>,
    /// The run to begin in.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// The step to begin at.
    #[arg(long, value_name = "N", value_parser = value::step)]
    pub step: Option<Selection>,
    /// One JSON object a command.
    #[arg(long)]
    pub json: bool,
}

/// Commands of a file, `-` for standard input.
///
/// # Errors
/// A file that cannot be read, or a line that is no command: which, and why.
pub(super) fn script(path: &Path, lang: Lang) -> Result<Vec<Action>, Failure> {
    let name = escape(&path.display().to_string()).into_owned();
    let text =
        if path == Path::new("-") { guard::text_of(io::stdin().lock(), &name)? } else { guard::read_text(path)? };
    Ok(command::script(&text, lang)
        .map_err(|(line, why)| (Msg::new("play.bad_line"), line, why))
        .map_err(|(msg, line, why)| msg.arg("file", &name).arg("line", line).arg("why", why.render(lang)))?)
}

/// One command, with or without its colon.
///
/// # Errors
/// What it cannot be read for.
pub(super) fn command(line: &str, lang: Lang) -> Result<Action, Failure> {
    let line = line.trim().trim_start_matches(':');
    Ok(Action::parse(line).map_err(|slip| slip.message(line, lang))?)
}

/// Copied text is printed; there is no screen.
#[derive(Default)]
struct Script {
    texts: Vec<String>,
}

impl Front for Script {
    fn copy(&mut self, text: &str, _: Msg) -> Result<Option<Msg>, Msg> {
        self.texts.push(text.to_owned());
        Ok(None)
    }

    fn mouse(&mut self, _: bool) -> Result<(), Msg> {
        Ok(())
    }

    fn screen(&mut self, _: bool) -> Result<(), Msg> {
        Ok(())
    }
}

/// Runs the commands; stops at the first that cannot be done.
///
/// # Errors
/// A scenario that cannot be opened, a line that is no command, a command that cannot be done.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let mut commands = args.file.as_deref().map_or(Ok(Vec::new()), |file| script(file, lang))?;
    for line in &args.execute {
        commands.push(command(line, lang)?);
    }
    let session = Arc::new(common::open(&args.scenario, &args.inputs, global, None, lang)?);
    let run = args.run.as_deref().map(|name| common::run(&session, name)).transpose()?;
    let digits = global.number_of(&session).unwrap_or_default();
    let settings = Settings { lang, digits, rounding: global.round(), ..Settings::default() };
    let laid = Laid::of(&args.scenario, &args.inputs, &session, args.run.as_deref(), global, lang)?;
    let mut app = App::new(session, run, settings);
    app.live = common::live(&args.scenario, &args.inputs, global, false, lang);
    if let Some(laid) = laid {
        laid.show(&mut app);
    }
    if let Some(Selection::One(path)) = &args.step {
        common::go_to_step(&mut app, path)?;
    }
    play(&mut app, commands, args.json, &mut io::stdout().lock())
}

/// Runs `commands` on `app` and prints what became of each.
fn play(app: &mut App, commands: Vec<Action>, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    for action in commands {
        let command = action.line();
        let mut front = Script::default();
        let outcome = app.run(&action, &mut front);
        let Outcome { messages, answers, moved, quit } = &outcome;
        let texts = front.texts;
        let settings = &app.ui.settings;
        let line = moved.then(|| app.nav.line(settings.lang, settings.digits, usize::MAX)).flatten();
        let line = line.map(|l| l.text());
        let lang = app.ui.settings.lang;
        if json {
            let rows = |a: &crate::app::answer::Answer| -> Vec<_> {
                a.rows
                    .iter()
                    .map(|r| {
                        json!({
                            "level": level(r.level),
                            "text": r.text.render(lang),
                            "command": r.action.as_ref().map(Action::line),
                        })
                    })
                    .collect()
            };
            let object = json!({
                "command": command,
                "step": app.nav.step().map(crate::walkthrough::Step::label),
                "cell": line,
                "messages": messages.iter().map(|m| json!({"level": level(m.level), "text": m.text.render(lang)})).collect::<Vec<_>>(),
                "answers": answers.iter().map(|a| json!({"title": a.title.render(lang), "rows": rows(a)})).collect::<Vec<_>>(),
                "text": texts,
            });
            writeln!(out, "{object}")?;
        } else {
            writeln!(out, "> {}", escape(&command))?;
            for message in messages {
                writeln!(out, "{}", escape(&message.text.render(lang)))?;
            }
            // An answer without lines may have been said.
            let said = |title: &Msg| messages.iter().any(|m| m.text == *title);
            for answer in answers.iter().filter(|a| !a.rows.is_empty() || !said(&a.title)) {
                writeln!(out, "{}", escape(&answer.title.render(lang)))?;
                for row in &answer.rows {
                    writeln!(out, "  {}", escape(&row.text.render(lang)))?;
                }
            }
            for text in &texts {
                writeln!(out, "{text}")?;
            }
            if *moved {
                if let Some(place) = app.nav.place(lang) {
                    writeln!(out, "{}", escape(&place))?;
                }
                if let Some(line) = &line {
                    writeln!(out, "  {}", escape(line))?;
                }
            }
        }
        out.flush()?;
        if outcome.error().is_some() {
            return Err(Failure::Check);
        }
        if *quit {
            break;
        }
    }
    Ok(())
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Info => "info",
        Level::Done => "done",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}
