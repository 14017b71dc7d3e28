//! `snapshot`: exactly what the screen shows, as a file.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;

use super::global::Global;
use super::{Failure, common, open, play, value};
use crate::app::action::Action;
use crate::app::app::App;
use crate::app::args::Arg;
use crate::app::executor::Front;
use crate::app::view::View;
use crate::export::{file::Target, select::Selection};
use crate::text::{Lang, Msg};
use crate::tui::run::{Still, cells, still};
use crate::tui::snapshot;
use crate::tui::theme::{Depth, Environment};

/// Format of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Characters only.
    #[default]
    Text,
    /// With colours, as a terminal draws it.
    Ansi,
    /// A picture.
    Svg,
}

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// The step; the first unless given.
    #[arg(long, value_name = "N", value_parser = value::step)]
    pub step: Option<Selection>,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Before which update of the training, counted from 1.
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub update: Option<usize>,
    /// Size of the screen.
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "120x36", value_parser = value::size)]
    pub size: value::Size,
    /// The view; the step itself unless given.
    #[arg(long, value_name = "VIEW")]
    pub view: Option<String>,
    /// A command of the debugger to run first; may be given several times.
    #[arg(short = 'e', long = "execute", value_name = "COMMAND")]
    pub execute: Vec<String>,
    /// A script of commands to show one after another, as a picture that moves: an animated SVG without a script in it.
    #[arg(long, value_name = "SCRIPT")]
    pub film: Option<PathBuf>,
    /// Seconds that each screen of a film stays.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.6, requires = "film")]
    pub seconds: f64,
    /// Colour theme.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Glyph set.
    #[arg(long, value_name = "SET")]
    pub glyphs: Option<String>,
    /// Format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: FormatName,
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

impl Args {
    /// Where to.
    pub fn target(&self) -> Target {
        Target::new(self.output.as_deref())
    }
}

/// A picture has no clipboard and no mouse.
struct Picture;

impl Front for Picture {
    fn copy(&mut self, _: &str, _: Msg) -> Result<Option<Msg>, Msg> {
        Err(Msg::new("snapshot.no_clipboard"))
    }

    fn mouse(&mut self, _: bool) -> Result<(), Msg> {
        Ok(())
    }

    fn screen(&mut self, _: bool) -> Result<(), Msg> {
        Ok(())
    }
}

/// Runs a script and writes a frame for each of its commands, the first screen before them.
fn film(args: &Args, commands: Vec<Action>, app: &mut App) -> Result<(), Failure> {
    let environment = Environment { no_color: false, detected: Depth::True };
    let size = (args.size.columns, args.size.rows);
    let seconds = args.seconds.clamp(0.05, 60.0);
    let mut dark = true;
    let mut frame = |app: &App| {
        let (cells, is_dark) = cells(app, size, environment);
        dark = is_dark;
        (cells, seconds)
    };
    let mut frames = vec![frame(app)];
    for action in commands {
        let outcome = app.run(&action, &mut Picture);
        if let Some(why) = outcome.error() {
            return Err(why.clone().into());
        }
        if outcome.quit {
            break;
        }
        frames.push(frame(app));
    }
    let text = snapshot::film(&frames, dark);
    args.target().write(args.force, |out| out.write_all(text.as_bytes()))?;
    Ok(())
}

/// Prints what the screen shows.
///
/// # Errors
/// A scenario that cannot be opened, a step, run, view, theme or glyph set that is not there, the file.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let session = Arc::new(common::open_at(&args.scenario, &args.inputs, global, None, args.update, lang)?);
    let run = args.run.as_deref().map(|name| common::run(&session, name)).transpose()?;
    let mut chosen = open::chosen(global, args.theme.as_deref(), args.glyphs.as_deref(), lang)?;
    if let Some(number) = global.number_of(&session) {
        chosen.settings.digits = number;
    }
    for warning in &chosen.warnings {
        eprintln!("{}", warning.render(chosen.settings.lang));
    }
    let laid = super::bind::Laid::of(&args.scenario, &args.inputs, &session, args.run.as_deref(), global, lang)?;
    let mut app = App::new(session, run, chosen.settings);
    app.live = common::live(&args.scenario, &args.inputs, global, false, lang);
    if let Some(laid) = laid {
        laid.show(&mut app);
    }
    app.ui.keymap = chosen.keymap;
    if let Some(Selection::One(path)) = &args.step {
        common::go_to_step(&mut app, path)?;
    }
    for line in &args.execute {
        let outcome = app.run(&play::command(line, lang)?, &mut Picture);
        if let Some(why) = outcome.error() {
            return Err(why.clone().into());
        }
        if outcome.quit {
            break;
        }
    }
    if let Some(view) = &args.view {
        app.act(Action::View(View::parse(view).map_err(|slip| slip.msg)?));
    }
    if let Some(script) = &args.film {
        return film(args, play::script(script, lang)?, &mut app);
    }
    // A file has all colours, whatever this terminal has; plain text has none.
    let detected = if args.format == FormatName::Text { Depth::None } else { Depth::True };
    let environment = match global.color {
        value::ColorWhen::Auto if args.format == FormatName::Svg => Environment { no_color: false, detected },
        _ => Environment { detected, ..Environment::read() },
    };
    let format = match args.format {
        FormatName::Text => Still::Text,
        FormatName::Ansi => Still::Ansi,
        FormatName::Svg => Still::Svg,
    };
    let size = (args.size.columns, args.size.rows);
    let text = still(&app, size, environment, format);
    args.target().write(args.force, |out| out.write_all(text.as_bytes()))?;
    Ok(())
}
