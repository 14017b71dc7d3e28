//! The part of the application's state that knows nothing of traces: settings, focus, overlays, messages, keys
//! pressed so far. [`Ui::update`] takes what concerns it and hands the rest on.

use crate::trace::RoundMode;
use std::time::Duration;

use super::action::Action;
use super::answer::{Answer, Row};
use super::args::{Arg, ExportArgs, Setting, StepTarget, Text};
use super::command::{History, Names};
use super::effect::{Effect, Report};
use super::input::Input;
use super::key::Key;
use super::keymap::{Context, Keymap, Lookup};
use super::messages::{Level, Messages};
use super::motion::Motion;
use super::overlay::{ExportForm, Overlay, Palette, Prompt, PromptKind, Scrolling, Taken};
use super::play::Play;
use super::settings::{Settings, THEMES};
use super::view::View;
use crate::debug::expr::ExprError;
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

/// Half a second without a motion, and a digit was the key of a view.
const COUNT: Duration = Duration::from_millis(500);
/// Longest count.
const MAX_COUNT: usize = 6;
/// Most that an action is repeated: further than any table or list of a screen.
const MAX_REPEATED: usize = 10_000;

/// Whether a count before the key repeats the action.
fn is_motion(action: &Action) -> bool {
    matches!(
        action,
        Action::Next
            | Action::Prev
            | Action::StepOver
            | Action::NextPhase
            | Action::PrevPhase
            | Action::NextLayer
            | Action::PrevLayer
            | Action::Up
            | Action::Down
            | Action::Left
            | Action::Right
            | Action::PageUp
            | Action::PageDown
            | Action::HalfUp
            | Action::HalfDown
            | Action::PageLeft
            | Action::PageRight
            | Action::NextTable
            | Action::PrevTable
            | Action::AxisNext
            | Action::AxisPrev
            | Action::Batch(_)
            | Action::Head(_)
            | Action::Layer(_)
            | Action::NextTerm
            | Action::PrevTerm
            | Action::NextBookmark
            | Action::PrevBookmark
            | Action::SearchNext
            | Action::SearchPrev
            | Action::NextFailed
            | Action::PrevFailed
            | Action::NextDiff
            | Action::PrevDiff
            | Action::Back
            | Action::Forward
            | Action::Undo
            | Action::Redo
            | Action::Continue
            | Action::ReverseContinue
    )
}

/// State that knows nothing of traces.
#[derive(Clone, Debug, Default)]
pub struct Ui {
    /// What a user has set.
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
    /// A cell that is being computed before one's eyes.
    pub motion: Option<Motion>,
    /// The last action was an interruption: another one leaves.
    interrupted: bool,
    /// Keys of an unfinished sequence.
    pub pending: Vec<Key>,
    /// Digits typed before a motion: how often it is done, or the step that `G` goes to.
    pub count: String,
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
    pub record: Vec<Action>,
    /// What is to be done outside, in order.
    pub effects: Vec<Effect>,
    /// Whether somebody watches: then long work goes on in the background, and questions are put.
    pub interactive: bool,
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
    pub fn rename_last(&mut self, action: Action) {
        if let Some(last) = self.record.last_mut() {
            *last = action;
        }
    }

    /// Takes the last recorded command for which `is` holds out of the record: it has no effect any more.
    pub fn unrecord(&mut self, is: impl Fn(&Action) -> bool) {
        if let Some(at) = self.record.iter().rposition(is) {
            self.record.remove(at);
        }
    }

    /// Reports what in the configuration could not be used, and how many entries.
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

    /// Says what is wrong with `text`: what and how to fix it, and the text with carets.
    pub fn wrong(&mut self, text: &str, e: &ExprError) {
        let lang = self.settings.lang;
        let (line, carets) = e.marked(text);
        let first = Msg::new("expr.at_column").arg("column", e.column()).arg("what", e.msg.render(lang)).render(lang);
        let mut answer = Answer::new(Msg::new("expr.here"));
        for text in [line, carets] {
            answer.push(Row::plain(text).level(Level::Error));
        }
        self.answer(answer);
        let all = match &e.help {
            Some(help) => format!("{first} · {}", help.render(lang)),
            None => first,
        };
        self.say(Level::Error, Msg::new("report.plain").arg("text", all));
    }

    /// Says something.
    pub fn say(&mut self, level: Level, text: Msg) {
        self.messages.push(level, text);
    }

    /// What an event means, in order. Typing goes into the open line at once and means nothing more.
    pub fn input(&mut self, input: &Input, names: &dyn Names) -> Vec<Action> {
        match input {
            Input::Key(key) => self.key(*key, names),
            Input::Paste(text) => {
                if let Some(top) = self.overlays.last_mut()
                    && let Some(editor) = top.editor()
                {
                    editor.paste(text);
                    top.edited(names);
                }
                Vec::new()
            }
            // No motion came after the digits.
            Input::Tick => self.counted_view().into_iter().collect(),
            // The screen knows what is under the mouse; sizes are read while drawing.
            Input::Mouse(_) | Input::Resize(..) | Input::Changed => Vec::new(),
        }
    }

    /// Time until a digit is taken for the key of a view.
    pub fn count_interval(&self) -> Option<Duration> {
        (!self.count.is_empty()).then_some(COUNT)
    }

    /// Ends a count that no motion came after: one digit was the key of a view.
    fn counted_view(&mut self) -> Option<Action> {
        let count = std::mem::take(&mut self.count);
        let mut digits = count.chars();
        let (Some(digit), None) = (digits.next(), digits.next()) else { return None };
        match self.keymap.lookup(self.context(), &[Key::char(digit)]) {
            Lookup::Action(action) => Some(action),
            _ => None,
        }
    }

    /// Whether a key begins or goes on with a count: a digit that is a view's key, any digit after that.
    fn counts(&self, key: Key, context: Context) -> Option<char> {
        let digit = key.text().filter(char::is_ascii_digit)?;
        let own = || matches!(self.keymap.lookup(context, &[key]), Lookup::Action(Action::View(_)));
        let taken = context != Context::Popup && self.pending.is_empty();
        (taken && (!self.count.is_empty() || own())).then_some(digit)
    }

    fn key(&mut self, key: Key, names: &dyn Names) -> Vec<Action> {
        self.messages.seen();
        self.motion = None;
        let context = self.context();
        if context == Context::Prompt {
            // Bound keys first, unless they are text; then the line itself.
            if key.text().is_none()
                && let Lookup::Action(action) = self.keymap.lookup(context, &[key])
            {
                return vec![action];
            }
            if let Some(top) = self.overlays.last_mut() {
                top.edit(key, names);
            }
            return Vec::new();
        }
        if let Some(digit) = self.counts(key, context) {
            if self.count.len() < MAX_COUNT {
                self.count.push(digit);
            }
            return Vec::new();
        }
        self.pending.push(key);
        match self.keymap.lookup(context, &self.pending) {
            Lookup::Action(action) => {
                self.pending.clear();
                self.counted(action)
            }
            Lookup::Prefix => Vec::new(),
            Lookup::None => {
                let alone = self.pending.len() == 1;
                self.pending.clear();
                if !alone {
                    // `]` then something else: the something else still counts on its own.
                    return self.key(key, names);
                }
                if context == Context::Popup {
                    self.say(Level::Info, Msg::new("tui.said.popup_key").arg("key", key.label(false)));
                }
                self.counted_view().into_iter().collect()
            }
        }
    }

    /// An action as often as the count says; what takes no count ends it.
    fn counted(&mut self, action: Action) -> Vec<Action> {
        let Ok(count) = self.count.parse::<u32>() else {
            return vec![action];
        };
        match action {
            // As in less and vim: `23G` and `23gg` go to line 23.
            Action::First | Action::Last => {
                self.count.clear();
                vec![Action::Step(StepTarget::Number(vec![count]))]
            }
            action if is_motion(&action) => {
                self.count.clear();
                vec![action; (count as usize).min(MAX_REPEATED)]
            }
            Action::Cancel => {
                self.count.clear();
                Vec::new()
            }
            action => self.counted_view().into_iter().chain([action]).collect(),
        }
    }

    /// Does what concerns the interface and returns what does not (for the session).
    pub fn update(&mut self, action: Action, names: &dyn Names) -> Option<Action> {
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
                    return self.base(action, names);
                }
                Taken::Also(action) => return self.base(action, names),
                Taken::Prompt(text) => {
                    self.overlays.pop();
                    self.prompt(PromptKind::Command, &text, names);
                    return None;
                }
                Taken::Effect(effect) => {
                    self.overlays.pop();
                    self.effects.push(effect);
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
        self.base(action, names)
    }

    pub(super) fn prompt(&mut self, kind: PromptKind, text: &str, names: &dyn Names) {
        let prompt = Prompt::new(kind, text, self.settings.lang, names);
        self.overlays.push(Overlay::Prompt(prompt));
    }

    /// An action that no overlay took.
    fn base(&mut self, action: Action, names: &dyn Names) -> Option<Action> {
        self.answers.clear();
        let interrupted = std::mem::take(&mut self.interrupted);
        if !matches!(action, Action::Command | Action::Palette | Action::Help | Action::Cancel | Action::Accept) {
            self.record.push(action.clone());
        }
        match action {
            Action::Quit | Action::QuitNow => self.effects.push(Effect::Quit),
            Action::Interrupt if interrupted => self.effects.push(Effect::Quit),
            Action::Interrupt => {
                self.interrupted = true;
                self.play.on = false;
                let keys = self.keymap.keys_for(Context::Global, &Action::Quit);
                let keys: Vec<_> = keys.map(|k| k.label(false)).collect();
                let text = Msg::new("tui.said.interrupt").arg("keys", keys.join(" / "));
                self.say(Level::Info, text);
            }
            Action::Suspend => self.effects.push(Effect::Suspend),
            Action::Redraw => self.effects.push(Effect::Redraw),
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
            Action::Animate if self.interactive && self.settings.motion => {
                self.view = View::Step;
                self.motion = Some(Motion::default());
            }
            Action::Animate => {
                let key = if self.interactive { "tui.said.no_motion" } else { "tui.said.motion_on_screen" };
                self.say(Level::Info, Msg::new(key));
            }
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
                let mode = match self.settings.rounding {
                    RoundMode::Exact => RoundMode::Steps,
                    _ => RoundMode::Exact,
                };
                self.set(Setting::Rounding(mode));
            }
            Action::Round(mode) => self.set(Setting::Rounding(mode.0)),
            Action::LogScale => self.set(Setting::Log(!self.settings.log_scale)),
            Action::ScaleMode => self.set(Setting::Scale(self.settings.scale.next())),
            Action::MoreDigits | Action::FewerDigits => {
                let more = action == Action::MoreDigits;
                self.set(Setting::Digits(digits(self.settings.digits, more)));
            }
            Action::Language => {
                let lang = match self.settings.lang {
                    Lang::En => Lang::Zh,
                    Lang::Zh => Lang::En,
                };
                self.set(Setting::Lang(lang));
            }
            Action::Theme => {
                let at = THEMES.iter().position(|t| *t == self.settings.theme);
                let next = THEMES[at.map_or(0, |a| (a + 1) % THEMES.len())];
                self.set(Setting::Theme(next.to_owned()));
            }
            Action::Glyphs => self.set(Setting::Glyphs(self.settings.glyphs.next())),
            Action::Mouse => self.set(Setting::Mouse(!self.settings.mouse)),
            Action::Set(setting) => self.set(setting),
            other => return Some(other),
        }
        None
    }

    fn open_export(&mut self, args: &ExportArgs) {
        let form = ExportForm::new(args, &self.step_label, &self.export_stem);
        self.overlays.push(Overlay::Export(form));
    }

    fn set(&mut self, setting: Setting) {
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
                self.effects.push(Effect::Mouse(on));
            }
            Setting::Log(on) => s.log_scale = on,
            Setting::Rounding(on) => s.rounding = on,
            Setting::Motion(on) => s.motion = on,
            Setting::Show(name) => {
                let now = Setting::now(name, &self.settings);
                let text = Msg::new("tui.said.setting").arg("setting", now.print());
                self.say(Level::Info, text.arg("all", Setting::choices(name)));
                return;
            }
        }
        self.say(Level::Done, Msg::new("tui.said.set").arg("setting", said));
    }

    /// Says what went wrong; the form of `export`, where it is open, goes back to the field that is at fault.
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
            Report::Exists { again, .. } => {
                let path = match &again {
                    Effect::Write { path, .. } => path.display().to_string(),
                    _ => String::new(),
                };
                self.overlays.push(Overlay::Confirm {
                    question: Msg::new("tui.ask.overwrite").arg("path", path),
                    effect: Box::new(again),
                });
            }
            Report::Silent | Report::Reference(_) => {}
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
