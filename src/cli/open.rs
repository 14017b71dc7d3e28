//! Opening the debugger.

#[cfg(feature = "tui")]
use std::io::IsTerminal;
use std::path::PathBuf;
#[cfg(feature = "tui")]
use std::sync::Arc;

#[cfg(feature = "tui")]
use super::common;
use super::global::Global;
use super::{Failure, value};
#[cfg(feature = "tui")]
use crate::app::{
    app::App,
    config::{Config, Warning},
    keymap::Keymap,
    settings::{ColorMode, Settings, parse_theme},
};
use crate::export::select::Selection;
#[cfg(feature = "tui")]
use crate::scenario::guard;
use crate::text::Lang;
#[cfg(feature = "tui")]
use crate::text::{Msg, escape};
#[cfg(feature = "tui")]
use crate::tui;

/// The scenario that is opened where none is named.
pub const DEFAULT_SCENARIO: &str = "water_class";

/// Arguments.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    #[arg(value_name = "SCENARIO")]
    pub(super) scenario: Option<PathBuf>,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// The run to show first; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// The step to show first.
    #[arg(long, value_name = "N", value_parser = value::step)]
    pub step: Option<Selection>,
    /// Colour theme.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Glyph set: `unicode`, `cjk-safe` or `ascii`.
    #[arg(long, value_name = "SET")]
    pub glyphs: Option<String>,
    /// No cell is computed before one's eyes.
    #[arg(long)]
    pub no_motion: bool,
    /// Commands to run first, one a line.
    #[arg(long, value_name = "FILE")]
    pub play: Option<PathBuf>,
    /// Open the source again when its files change.
    #[arg(long)]
    pub watch: bool,
}

impl Args {
    /// The scenario: a path, `-`, or an embedded name.
    pub fn scenario(&self) -> PathBuf {
        self.scenario.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_SCENARIO))
    }

    /// Whether any was given: they belong to the debugger, not to a subcommand.
    pub(super) fn is_given(&self) -> bool {
        self.scenario.is_some()
            || self.inputs.is_given()
            || self.run.is_some()
            || self.step.is_some()
            || self.theme.is_some()
            || self.glyphs.is_some()
            || self.no_motion
            || self.play.is_some()
            || self.watch
    }
}

/// What a person has chosen: the configuration file's settings and keys, then what the command line says.
#[cfg(feature = "tui")]
pub(super) struct Chosen {
    pub(super) settings: Settings,
    pub(super) keymap: Keymap,
    /// What in the configuration file could not be used.
    pub(super) warnings: Vec<Msg>,
}

/// Reads what a person has chosen.
///
/// # Errors
/// A configuration file that is none, a theme or glyph set that is not there.
#[cfg(feature = "tui")]
pub(super) fn chosen(
    global: &Global,
    theme: Option<&str>,
    glyphs: Option<&str>,
    lang: Lang,
) -> Result<Chosen, Failure> {
    let mut chosen = configured(global, lang)?;
    let settings = &mut chosen.settings;
    if let Some(number) = global.number() {
        settings.digits = number;
    }
    settings.rounding = global.round();
    if let Some(name) = theme {
        settings.theme = parse_theme(name)?;
    }
    if let Some(name) = glyphs {
        settings.glyphs = name.parse()?;
    }
    match global.color {
        value::ColorWhen::Auto => {}
        value::ColorWhen::Always => settings.color = ColorMode::Truecolor,
        value::ColorWhen::Never => settings.color = ColorMode::Never,
    }
    Ok(chosen)
}

/// What the configuration file says, in the language of the command line where that names one.
#[cfg(feature = "tui")]
fn configured(global: &Global, lang: Lang) -> Result<Chosen, Failure> {
    let mut chosen =
        Chosen { settings: Settings { lang, ..Settings::default() }, keymap: Keymap::builtin(), warnings: Vec::new() };
    let Some(path) = Config::path() else {
        return Ok(chosen);
    };
    let file = path.to_string_lossy();
    if matches!(std::fs::metadata(&path), Err(e) if e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(chosen);
    }
    let source = match guard::read_text(&path) {
        Ok(source) => source,
        Err(unread) => {
            chosen.warnings.push(unread);
            return Ok(chosen);
        }
    };
    let wrong = |warning: Warning, lang| warning.msg(&file, lang);
    let (config, mut warnings) = Config::parse(&source).map_err(|why| wrong(Warning { entry: None, why }, lang))?;
    let (keymap, of_keys) = config.keymap();
    warnings.extend(of_keys);
    chosen.keymap = keymap;
    config.apply(&mut chosen.settings);
    // What the command line says counts more than the file.
    let lang = global.lang().unwrap_or(chosen.settings.lang);
    chosen.settings.lang = lang;
    chosen.warnings = warnings.into_iter().map(|w| wrong(w, lang)).collect();
    Ok(chosen)
}

/// Opens the debugger.
///
/// # Errors
/// A scenario that cannot be opened, standard output that is no terminal.
#[cfg(feature = "tui")]
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let commands = args.play.as_deref().map(|file| super::play::script(file, lang)).transpose()?;
    let session = Arc::new(common::open(&args.scenario(), &args.inputs, global, None, lang)?);
    let run = args.run.as_deref().map(|name| common::run(&session, name)).transpose()?;
    let mut chosen = chosen(global, args.theme.as_deref(), args.glyphs.as_deref(), lang)?;
    if let Some(number) = global.number_of(&session) {
        chosen.settings.digits = number;
    }
    chosen.settings.motion &= !args.no_motion;
    if !std::io::stdout().is_terminal() {
        let scenario = args.scenario().display().to_string();
        return Err(Msg::new("tui.not_a_terminal").arg("scenario", escape(&scenario)).into());
    }
    let laid = super::bind::Laid::of(&args.scenario(), &args.inputs, &session, args.run.as_deref(), global, lang)?;
    // Commands of a script need numbers; without one, the first frame does not wait for the run.
    if commands.is_none() {
        session.in_background();
    }
    let mut app = App::new(session, run, chosen.settings);
    app.live = common::live(&args.scenario(), &args.inputs, global, args.watch, lang);
    if let Some(laid) = laid {
        laid.show(&mut app);
    }
    app.ui.keymap = chosen.keymap;
    app.ui.warn(chosen.warnings);
    if let Some(Selection::One(path)) = &args.step {
        common::go_to_step(&mut app, path)?;
    }
    tui::run::run(app, commands.unwrap_or_default())?;
    Ok(())
}

/// Without the terminal interface: the steps.
///
/// # Errors
/// A scenario that cannot be opened.
#[cfg(not(feature = "tui"))]
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let list = super::steps::Args {
        update: None,
        scenario: args.scenario(),
        inputs: args.inputs.clone(),
        run: args.run.clone(),
        detail: None,
        expand: false,
        json: false,
    };
    super::steps::run(&list, global, lang)
}
