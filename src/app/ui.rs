//! The part of the application's state that knows nothing of traces: settings, focus, overlays, messages, keys
//! pressed so far. [`Ui::update`] takes what concerns it and hands the rest on.

use super::action::Action;
use super::answer::Answer;
use super::args::{Arg, ExportArgs, Setting, Text};
use super::command::{History, Names};
use super::config::{ColorMode, Config, GlyphSet, ScaleMode, THEMES};
use super::effect::{Effect, Report};
use super::input::Input;
use super::key::Key;
use super::keymap::{Context, Keymap, Lookup};
use super::messages::{Level, Messages};
use super::overlay::{ExportForm, Overlay, Palette, Prompt, PromptKind, Scrolling, Taken};
use super::play::Play;
use super::view::View;
use crate::text::{Lang, Msg, NumberFormat};

/// Which part of the screen the arrows move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// The step list.
    #[default]
    Steps,
    /// The tables.
    Stage,
    /// Derivation and note.
    Text,
}

impl Focus {
    /// The next (or previous) part, around.
    #[must_use]
    pub fn step(self, forward: bool) -> Self {
        match (self, forward) {
            (Self::Steps, true) | (Self::Text, false) => Self::Stage,
            (Self::Stage, true) | (Self::Steps, false) => Self::Text,
            (Self::Text, true) | (Self::Stage, false) => Self::Steps,
        }
    }

    /// Where its keys are looked up.
    pub fn context(self) -> Context {
        match self {
            Self::Steps => Context::Steps,
            Self::Stage => Context::Stage,
            Self::Text => Context::Text,
        }
    }
}

/// What a person has set.
// Each switch is set on its own; grouping them would only rename them.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Language of all text.
    pub lang: Lang,
    /// Theme, by name.
    pub theme: String,
    /// Glyph set.
    pub glyphs: GlyphSet,
    /// How numbers print.
    pub digits: NumberFormat,
    /// Round as you go.
    pub rounding: bool,
    /// Range of the colour scale.
    pub scale: ScaleMode,
    /// Logarithmic colours.
    pub log_scale: bool,
    /// Colours the terminal is given.
    pub color: ColorMode,
    /// Mouse capture.
    pub mouse: bool,
    /// All terms of a long sum, in order of computation.
    pub full_sum: bool,
    /// The derivations of all cells of the plane.
    pub derivations: bool,
    /// Big tensors as blocks even where cells would fit.
    pub blocks: bool,
    /// The step list is shown.
    pub sidebar: bool,
    /// Note and facts are shown.
    pub notes: bool,
    /// Bars of probabilities stand in order of size.
    pub sorted: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lang: Lang::En,
            theme: THEMES[0].to_owned(),
            glyphs: GlyphSet::default(),
            digits: NumberFormat::default(),
            rounding: false,
            scale: ScaleMode::default(),
            log_scale: false,
            color: ColorMode::default(),
            mouse: false,
            full_sum: false,
            derivations: false,
            blocks: false,
            sidebar: true,
            notes: true,
            sorted: false,
        }
    }
}

impl Settings {
    /// Takes over what a configuration file says.
    pub fn apply(&mut self, config: &Config) {
        self.lang = config.language.unwrap_or(self.lang);
        self.theme = config.theme.clone().unwrap_or_else(|| self.theme.clone());
        self.glyphs = config.glyphs.unwrap_or(self.glyphs);
        self.digits = config.digits.unwrap_or(self.digits);
        self.scale = config.scale.unwrap_or(self.scale);
        self.color = config.color.unwrap_or(self.color);
        self.mouse = config.mouse.unwrap_or(self.mouse);
    }

    /// The setting of this name as it is.
    fn value(&self, name: &str) -> Setting {
        match name {
            "lang" => Setting::Lang(self.lang),
            "theme" => Setting::Theme(self.theme.clone()),
            "glyphs" => Setting::Glyphs(self.glyphs),
            "digits" => Setting::Digits(self.digits),
            "scale" => Setting::Scale(self.scale),
            "color" => Setting::Color(self.color),
            "mouse" => Setting::Mouse(self.mouse),
            "log" => Setting::Log(self.log_scale),
            _ => Setting::Rounding(self.rounding),
        }
    }
}

/// What a setting may be.
fn choices(name: &str) -> String {
    if name == "digits" {
        return format!("0–{} | sciN | full | hex", crate::text::number::MAX_DIGITS);
    }
    let words = Setting::words();
    let values = words.iter().filter_map(|w| w.split_once(' '));
    let values = values.filter(|(setting, _)| *setting == name);
    values.map(|(_, value)| value).collect::<Vec<_>>().join(" | ")
}

/// State that knows nothing of traces.
#[derive(Clone, Debug, Default)]
pub struct Ui {
    /// What a person has set.
    pub settings: Settings,
    /// Which keys do what.
    pub keymap: Keymap,
    /// Which part of the screen the arrows move in.
    pub focus: Focus,
    /// What the main area shows.
    pub view: View,
    /// What lies over the screen, topmost last.
    pub overlays: Vec<Overlay>,
    /// How far the topmost of them can be scrolled; the last frame says so.
    pub scrolling: Scrolling,
    /// What happened.
    pub messages: Messages,
    /// Auto-play.
    pub play: Play,
    /// The last action was an interruption: another one leaves.
    interrupted: bool,
    /// Keys of an unfinished sequence.
    pub pending: Vec<Key>,
    /// Lines typed after `:`.
    pub commands: History,
    /// Lines typed after `/`.
    pub searches: History,
    /// The last search and whether it went forward.
    pub last_search: Option<(String, bool)>,
    /// The current step, as the export form proposes it. The session keeps it up to date.
    pub step_label: String,
    /// File name without extension that the export form proposes. The session keeps it up to date.
    pub export_stem: String,
    /// What the last command found; a script takes it from here.
    pub answers: Vec<Answer>,
    /// Commands run so far, in order, as a script that can be replayed.
    pub record: Vec<String>,
}

impl Ui {
    /// State with the built-in keymap.
    pub fn new(settings: Settings) -> Self {
        Self { settings, keymap: Keymap::builtin(), ..Self::default() }
    }

    /// Where keys are looked up now.
    pub fn context(&self) -> Context {
        self.overlays.last().map_or_else(|| self.base_context(), Overlay::context)
    }

    fn base_context(&self) -> Context {
        if self.view.takes_keys() { Context::Stage } else { self.focus.context() }
    }

    /// Shows what a command found; none found is a message.
    pub fn answer(&mut self, answer: Answer) {
        if answer.rows.is_empty() {
            self.say(Level::Info, answer.title.clone());
        } else {
            self.overlays.push(answer.overlay(self.settings.lang));
        }
        self.answers.push(answer);
    }

    /// The last recorded command was this one: what it meant where the cursor was.
    pub fn rename_last(&mut self, action: &Action) {
        if let Some(last) = self.record.last_mut() {
            *last = action.line();
        }
    }

    /// Takes the last recorded command for which `is` holds out of the record: it has no effect any more.
    pub fn forget(&mut self, is: impl Fn(&Action) -> bool) {
        let is = |line: &String| Action::parse(line).is_ok_and(|a| is(&a));
        if let Some(at) = self.record.iter().rposition(is) {
            self.record.remove(at);
        }
    }

    /// Tells what in the configuration could not be used, and how many there were.
    pub fn warn(&mut self, warnings: Vec<Msg>) {
        let count = warnings.len();
        for warning in warnings {
            self.say(Level::Warning, warning);
        }
        if count > 1 {
            let several = Msg::new("tui.config.several").arg("count", count);
            self.say(Level::Warning, several);
        }
    }

    /// Tells something.
    pub fn say(&mut self, level: Level, text: Msg) {
        self.messages.push(level, text);
    }

    /// What an event asks for. Typing goes into the open line at once and asks for nothing.
    pub fn input(&mut self, input: &Input, names: &dyn Names) -> Option<Action> {
        match input {
            Input::Key(key) => self.key(*key, names),
            Input::Paste(text) => {
                if let Some(top) = self.overlays.last_mut()
                    && let Some(editor) = top.editor()
                {
                    editor.paste(text);
                    top.edited(names);
                }
                None
            }
            Input::Tick if self.play.on => Some(Action::Next),
            // The session knows what lies under the mouse; sizes are asked for while drawing.
            Input::Tick | Input::Mouse(_) | Input::Resize(..) => None,
        }
    }

    fn key(&mut self, key: Key, names: &dyn Names) -> Option<Action> {
        self.messages.seen();
        let context = self.context();
        if context == Context::Prompt {
            // Bound keys first, unless they are text; then the line itself.
            if key.text().is_none()
                && let Lookup::Action(action) = self.keymap.lookup(context, &[key])
            {
                return Some(action);
            }
            if let Some(top) = self.overlays.last_mut() {
                top.edit(key, names);
            }
            return None;
        }
        self.pending.push(key);
        match self.keymap.lookup(context, &self.pending) {
            Lookup::Action(action) => {
                self.pending.clear();
                Some(action)
            }
            Lookup::Prefix => None,
            Lookup::None => {
                let alone = self.pending.len() == 1;
                self.pending.clear();
                // `]` then something else: the something else still counts on its own.
                if alone { None } else { self.key(key, names) }
            }
        }
    }

    /// Does what concerns the interface and returns what does not (for the session).
    pub fn update(&mut self, action: Action, names: &dyn Names, effects: &mut Vec<Effect>) -> Option<Action> {
        if let Some(top) = self.overlays.last_mut() {
            let history = match top {
                Overlay::Prompt(p) if p.kind != PromptKind::Command => &mut self.searches,
                _ => &mut self.commands,
            };
            let seen = (self.settings.lang, self.scrolling);
            match top.act(&action, seen, history, names) {
                Taken::Stay => return None,
                Taken::Close => {
                    self.overlays.pop();
                    self.commands.rewind();
                    self.searches.rewind();
                    return None;
                }
                Taken::Run(action) => {
                    self.overlays.pop();
                    return self.base(action, names, effects);
                }
                Taken::Also(action) => return self.base(action, names, effects),
                Taken::Effect(Effect::Prompt(text)) => {
                    self.overlays.pop();
                    self.prompt(PromptKind::Command, &text, names);
                    return None;
                }
                Taken::Effect(effect) => {
                    self.overlays.pop();
                    effects.push(effect);
                    return None;
                }
                Taken::Wrong(error) => {
                    self.overlays.pop();
                    self.say(Level::Error, error);
                    return None;
                }
                Taken::Pass => {}
            }
        }
        self.base(action, names, effects)
    }

    pub(super) fn prompt(&mut self, kind: PromptKind, text: &str, names: &dyn Names) {
        let prompt = Prompt::new(kind, text, names);
        self.overlays.push(Overlay::Prompt(prompt));
    }

    /// An action that no overlay took.
    fn base(&mut self, action: Action, names: &dyn Names, effects: &mut Vec<Effect>) -> Option<Action> {
        self.answers.clear();
        let interrupted = std::mem::take(&mut self.interrupted);
        if !matches!(action, Action::Command | Action::Palette | Action::Help | Action::Cancel | Action::Accept) {
            self.record.push(action.line());
        }
        match action {
            Action::Quit | Action::QuitNow => effects.push(Effect::Quit),
            Action::Interrupt if interrupted => effects.push(Effect::Quit),
            Action::Interrupt => {
                self.interrupted = true;
                self.play.on = false;
                let keys = self.keymap.keys_for(Context::Global, &Action::Quit);
                let keys: Vec<_> = keys.map(|k| k.label(false)).collect();
                let text = Msg::new("tui.said.interrupt").arg("keys", keys.join(" / "));
                self.say(Level::Info, text);
            }
            Action::Suspend => effects.push(Effect::Suspend),
            Action::Redraw => effects.push(Effect::Redraw),
            Action::Help => self.overlays.push(Overlay::Help { scroll: 0 }),
            Action::Messages => self.overlays.push(Overlay::Messages { scroll: usize::MAX }),
            Action::Palette => self.overlays.push(Overlay::Palette(Palette::default())),
            Action::Command => self.prompt(PromptKind::Command, "", names),
            Action::Goto => self.prompt(PromptKind::Goto, "", names),
            Action::Search(Text(t)) if t.is_empty() => self.prompt(PromptKind::Search, "", names),
            Action::SearchBack(Text(t)) if t.is_empty() => {
                self.prompt(PromptKind::SearchBack, "", names);
            }
            Action::Search(Text(t)) => {
                self.last_search = Some((t.clone(), true));
                return Some(Action::Search(Text(t)));
            }
            Action::SearchBack(Text(t)) => {
                self.last_search = Some((t.clone(), false));
                return Some(Action::SearchBack(Text(t)));
            }
            Action::Export(args) if args.path.is_none() => self.open_export(&args),
            Action::View(view) => self.view = view,
            Action::NextView => self.view = self.view.step(true),
            Action::PrevView => self.view = self.view.step(false),
            Action::FocusNext => self.focus = self.focus.step(true),
            Action::FocusPrev => self.focus = self.focus.step(false),
            Action::Sidebar => self.settings.sidebar = !self.settings.sidebar,
            Action::Notes => self.settings.notes = !self.settings.notes,
            Action::SortBars => self.settings.sorted = !self.settings.sorted,
            Action::Blocks => self.settings.blocks = !self.settings.blocks,
            Action::FullSum => self.settings.full_sum = !self.settings.full_sum,
            Action::Derivations => self.settings.derivations = !self.settings.derivations,
            Action::Play => self.play.on = !self.play.on,
            Action::Speed(speed) => {
                self.play.set(speed);
                let speed = self.play.per_second();
                self.say(Level::Info, Msg::new("tui.said.speed").arg("speed", speed));
            }
            Action::Cancel => {
                // Esc at the base stops what runs, then returns to the step.
                if self.play.on {
                    self.play.on = false;
                } else if self.view == View::Step {
                    self.focus = Focus::Steps;
                } else {
                    self.view = View::Step;
                }
            }
            Action::Rounding => {
                self.set(Setting::Rounding(!self.settings.rounding), effects);
            }
            Action::LogScale => self.set(Setting::Log(!self.settings.log_scale), effects),
            Action::ScaleMode => self.set(Setting::Scale(self.settings.scale.next()), effects),
            Action::MoreDigits | Action::FewerDigits => {
                let more = action == Action::MoreDigits;
                self.set(Setting::Digits(digits(self.settings.digits, more)), effects);
            }
            Action::Language => {
                let lang = match self.settings.lang {
                    Lang::En => Lang::Zh,
                    Lang::Zh => Lang::En,
                };
                self.set(Setting::Lang(lang), effects);
            }
            Action::Theme => {
                let at = THEMES.iter().position(|t| *t == self.settings.theme);
                let next = THEMES[at.map_or(0, |a| (a + 1) % THEMES.len())];
                self.set(Setting::Theme(next.to_owned()), effects);
            }
            Action::Glyphs => self.set(Setting::Glyphs(self.settings.glyphs.next()), effects),
            Action::Mouse => self.set(Setting::Mouse(!self.settings.mouse), effects),
            Action::Set(setting) => self.set(setting, effects),
            other => return Some(other),
        }
        None
    }

    fn open_export(&mut self, args: &ExportArgs) {
        let form = ExportForm::new(args, &self.step_label, &self.export_stem);
        self.overlays.push(Overlay::Export(form));
    }

    fn set(&mut self, setting: Setting, effects: &mut Vec<Effect>) {
        let s = &mut self.settings;
        let said = setting.print();
        match setting {
            Setting::Lang(lang) => s.lang = lang,
            Setting::Theme(theme) => s.theme = theme,
            Setting::Glyphs(glyphs) => s.glyphs = glyphs,
            Setting::Digits(digits) => s.digits = digits,
            Setting::Scale(scale) => s.scale = scale,
            Setting::Color(color) => s.color = color,
            Setting::Mouse(on) => {
                s.mouse = on;
                effects.push(Effect::Mouse(on));
            }
            Setting::Log(on) => s.log_scale = on,
            Setting::Rounding(on) => s.rounding = on,
            Setting::Show(name) => {
                let now = self.settings.value(name);
                let text = Msg::new("tui.said.setting").arg("setting", now.print());
                self.say(Level::Info, text.arg("all", choices(name)));
                return;
            }
        }
        self.say(Level::Done, Msg::new("tui.said.set").arg("setting", said));
    }

    /// Says what went wrong; the form of `export`, where it asked for it, goes back to the field that is at fault.
    pub(super) fn refuse_export(&mut self, field: usize, why: Msg) {
        if let Some(Overlay::Export(form)) = self.overlays.last_mut() {
            form.refuse(field, why.clone());
        }
        self.say(Level::Error, why);
    }

    /// Takes in what became of an effect.
    pub fn report(&mut self, report: Report) {
        match report {
            Report::Done(text) => {
                if matches!(self.overlays.last(), Some(Overlay::Export(_))) {
                    self.overlays.pop();
                }
                self.say(Level::Done, text);
            }
            Report::Failed(text) => self.refuse_export(2, text),
            Report::Exists(path, effect) => self.overlays.push(Overlay::Confirm {
                question: Msg::new("tui.ask.overwrite").arg("path", path.display()),
                effect: Box::new(effect),
            }),
            // The debugger's.
            Report::Reference(_) => {}
        }
    }
}

fn digits(format: NumberFormat, more: bool) -> NumberFormat {
    let step = |n: u8| {
        if more { (n + 1).min(crate::text::number::MAX_DIGITS) } else { n.saturating_sub(1) }
    };
    match format {
        NumberFormat::Decimals(n) => NumberFormat::Decimals(step(n)),
        NumberFormat::Scientific(n) => NumberFormat::Scientific(step(n)),
        NumberFormat::Shortest | NumberFormat::Bits => NumberFormat::default(),
    }
}
