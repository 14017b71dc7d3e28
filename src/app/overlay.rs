//! What lies over the screen: a stack. Keys go to the top one; Esc takes one away.

use super::action::{Action, SPECS, Spec};
use super::args::{Arg, ExportArgs, FORMATS, Place, StepTarget, Text};
use super::command::{self, Completion, History, Names};
use super::edit::Editor;
use super::effect::Effect;
use super::key::Key;
use super::keymap::Context;
use super::messages::Level;
use crate::text::{Lang, Msg, tr};

/// What a line is typed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// `:` commands.
    Command,
    /// `/` search.
    Search,
    /// Search towards the beginning.
    SearchBack,
    /// A step number or a name.
    Goto,
}

impl PromptKind {
    /// What is shown before the line.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Command => ":",
            Self::Search => "/",
            Self::SearchBack => "?",
            Self::Goto => "#",
        }
    }
}

/// A line being typed, with ways to complete it.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// What for.
    pub kind: PromptKind,
    /// The line.
    pub editor: Editor,
    /// Ways to complete it.
    pub completions: Vec<Completion>,
    /// The completion in the line, while one pages through them.
    pub selected: Option<usize>,
    /// How many places a search finds; `None` where that is not known.
    pub found: Option<usize>,
    lang: Lang,
}

/// Places of a search that are listed while it is typed.
const MAX_HITS: usize = 10;

impl Prompt {
    /// A prompt that holds `text`.
    pub fn new(kind: PromptKind, text: &str, lang: Lang, names: &dyn Names) -> Self {
        let editor = Editor::new(text);
        let mut prompt = Self { kind, editor, completions: Vec::new(), selected: None, found: None, lang };
        prompt.refresh(names);
        prompt
    }

    /// The line changed: other completions fit.
    pub fn refresh(&mut self, names: &dyn Names) {
        self.selected = None;
        let text = self.editor.text();
        let searches = matches!(self.kind, PromptKind::Search | PromptKind::SearchBack);
        let hits = if searches { names.hits(text, self.lang, MAX_HITS) } else { None };
        self.found = hits.as_ref().map(|h| h.0);
        self.completions = match self.kind {
            PromptKind::Command => command::complete(text, names),
            PromptKind::Goto => names
                .places(text, 32)
                .into_iter()
                .map(|p| Completion { line: p.clone(), label: p, about: "" })
                .collect(),
            PromptKind::Search | PromptKind::SearchBack => {
                let hits = hits.map(|h| h.1).unwrap_or_default();
                hits.into_iter().map(|(label, line)| Completion { line, label, about: "" }).collect()
            }
        };
    }

    /// Puts the next (or previous) completion into the line.
    pub fn cycle(&mut self, forward: bool, names: &dyn Names) {
        let n = self.completions.len();
        if n == 0 {
            return;
        }
        let at = match self.selected {
            Some(at) if forward => (at + 1) % n,
            Some(at) => (at + n - 1) % n,
            None if forward => 0,
            None => n - 1,
        };
        let line = self.completions[at].line.clone();
        self.editor.set(&line);
        if n == 1 {
            self.refresh(names);
        } else {
            self.selected = Some(at);
        }
    }

    fn page(&mut self, back: bool, history: &mut History, names: &dyn Names) {
        if let Some(line) = history.page(back, self.editor.text()) {
            self.editor.set(line);
            self.refresh(names);
        }
    }
}

/// The palette: actions that hold the words typed.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    /// The words.
    pub editor: Editor,
    /// Which of the found actions is chosen.
    pub selected: usize,
}

impl Palette {
    /// The actions found, in the order of help.
    pub fn found(&self, lang: Lang) -> Vec<&'static Spec> {
        let words: Vec<_> = self.editor.text().split_whitespace().map(str::to_lowercase).collect();
        SPECS
            .iter()
            .filter(|s| !matches!(s.name, "accept" | "cancel" | "palette"))
            .filter(|s| {
                let about = tr(lang, s.key).to_lowercase();
                words.iter().all(|w| s.name.contains(w.as_str()) || about.contains(w.as_str()))
            })
            .collect()
    }
}

/// The form of `export`.
#[derive(Clone, Debug)]
pub struct ExportForm {
    /// Index into [`FORMATS`].
    pub format: usize,
    /// Steps: a number, `A..B`, `all`.
    pub range: Editor,
    /// Where to.
    pub path: Editor,
    /// Which field has the focus: 0 format, 1 range, 2 path.
    pub field: usize,
    /// What is wrong with that field, once it was tried.
    pub wrong: Option<Msg>,
    /// Path without extension, as proposed; an edited path is not touched any more.
    stem: String,
}

/// File extension of a format.
pub fn extension(format: &str) -> &str {
    match format {
        "text" => "txt",
        "latex" => "tex",
        other => other,
    }
}

impl ExportForm {
    /// A form filled in with what is known.
    pub fn new(args: &ExportArgs, step: &str, stem: &str) -> Self {
        let format = args.format.as_deref().and_then(|f| FORMATS.iter().position(|x| *x == f)).unwrap_or(1);
        let mut form = Self {
            format,
            range: Editor::new(args.range.as_deref().unwrap_or(step)),
            path: Editor::default(),
            field: 0,
            wrong: None,
            stem: stem.to_owned(),
        };
        let path = args.path.clone().unwrap_or_else(|| form.proposed());
        form.path.set(&path);
        form
    }

    fn proposed(&self) -> String {
        format!("{}.{}", self.stem, extension(FORMATS[self.format]))
    }

    /// Chooses the next (or previous) format; a proposed path follows.
    pub fn choose(&mut self, forward: bool) {
        let follows = self.path.text() == self.proposed();
        let n = FORMATS.len();
        self.format = (self.format + if forward { 1 } else { n - 1 }) % n;
        if follows {
            let path = self.proposed();
            self.path.set(&path);
        }
    }

    /// The field `field` cannot be used as it is: it is gone back to.
    pub fn refuse(&mut self, field: usize, why: Msg) {
        self.field = field;
        self.wrong = Some(why);
    }

    /// What the form says.
    pub fn args(&self) -> ExportArgs {
        ExportArgs {
            format: Some(FORMATS[self.format].to_owned()),
            range: Some(self.range.text().trim().to_owned()).filter(|r| !r.is_empty()),
            path: Some(self.path.text().trim().to_owned()).filter(|p| !p.is_empty()),
        }
    }
}

/// One entry of a list: what it shows, what it runs, what Delete runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What it shows. Untrusted text.
    pub label: String,
    /// How much it matters.
    pub level: Level,
    /// What Enter does, if anything.
    pub action: Option<Action>,
    /// What Delete does.
    pub delete: Option<Action>,
    /// A share that is drawn as a bar; below 0 in the colour of what takes away.
    pub bar: Option<f64>,
}

/// Something over the screen.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// Keys and commands.
    Help {
        /// First line shown.
        scroll: usize,
    },
    /// A line being typed.
    Prompt(Prompt),
    /// The palette.
    Palette(Palette),
    /// The form of `export`.
    Export(ExportForm),
    /// The message log.
    Messages {
        /// First line shown.
        scroll: usize,
    },
    /// A list to choose from: bookmarks, breakpoints, checks, runs.
    List {
        /// Its title.
        title: Msg,
        /// Its entries.
        items: Vec<Item>,
        /// Which one is chosen.
        selected: usize,
    },
    /// A longer text.
    Text {
        /// Its title.
        title: Msg,
        /// The text. Untrusted.
        body: String,
        /// First line shown.
        scroll: usize,
    },
    /// A question: Enter says yes.
    Confirm {
        /// The question.
        question: Msg,
        /// What yes does.
        effect: Box<Effect>,
    },
}

/// What an overlay makes of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// It is done with it and stays.
    Stay,
    /// It goes.
    Close,
    /// It goes, and this is to be done.
    Run(Action),
    /// It goes, and the command line opens with this text.
    Prompt(String),
    /// It goes, and this is to be done outside.
    Effect(Effect),
    /// It stays, and this is to be done.
    Also(Action),
    /// It goes, and this is wrong.
    Wrong(Msg),
    /// It is not for overlays.
    Pass,
}

/// How far the text that lies over the screen can be scrolled, as the last frame showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrolling {
    /// The last line that it can begin with.
    pub end: usize,
    /// Lines that are seen.
    pub page: usize,
}

impl Default for Scrolling {
    fn default() -> Self {
        Self { end: usize::MAX, page: 10 }
    }
}

fn scrolled(scroll: &mut usize, action: &Action, seen: Scrolling) -> Taken {
    let at = (*scroll).min(seen.end);
    let page = seen.page.max(1);
    let to = match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => at.saturating_add(1),
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => at.saturating_add(page),
        Action::HalfUp => at.saturating_sub(page.div_ceil(2)),
        Action::HalfDown => at.saturating_add(page.div_ceil(2)),
        Action::Top => 0,
        Action::Bottom => usize::MAX,
        Action::Accept => return Taken::Close,
        _ => at,
    };
    *scroll = to.min(seen.end);
    Taken::Stay
}

fn chosen(selected: &mut usize, n: usize, action: &Action) {
    let last = n.saturating_sub(1);
    *selected = match action {
        Action::Up => selected.checked_sub(1).unwrap_or(last),
        Action::Down if *selected >= last => 0,
        Action::Down => *selected + 1,
        Action::PageUp => selected.saturating_sub(10),
        Action::PageDown => selected.saturating_add(10).min(last),
        Action::HalfUp => selected.saturating_sub(5),
        Action::HalfDown => selected.saturating_add(5).min(last),
        Action::Top => 0,
        Action::Bottom => last,
        _ => *selected,
    }
    .min(last);
}

impl Overlay {
    /// Where its keys are looked up.
    pub fn context(&self) -> Context {
        match self {
            Overlay::Prompt(_) | Overlay::Palette(_) => Context::Prompt,
            Overlay::Export(form) if form.field > 0 => Context::Prompt,
            _ => Context::Popup,
        }
    }

    /// The line that typed text goes into.
    pub fn editor(&mut self) -> Option<&mut Editor> {
        match self {
            Overlay::Prompt(p) => Some(&mut p.editor),
            Overlay::Palette(p) => Some(&mut p.editor),
            Overlay::Export(f) => match f.field {
                1 => Some(&mut f.range),
                2 => Some(&mut f.path),
                _ => None,
            },
            _ => None,
        }
    }

    /// Gives typed text or an editing key to the overlay; false where it has no use for it.
    pub fn edit(&mut self, key: Key, names: &dyn Names) -> bool {
        let used = self.editor().is_some_and(|e| e.key(key));
        if used {
            self.edited(names);
        }
        used
    }

    /// Its line changed.
    pub fn edited(&mut self, names: &dyn Names) {
        match self {
            Overlay::Prompt(p) => p.refresh(names),
            Overlay::Palette(p) => p.selected = 0,
            Overlay::Export(form) => form.wrong = None,
            _ => {}
        }
    }

    /// Gives an action to the overlay.
    pub fn act(
        &mut self,
        action: &Action,
        (lang, seen): (Lang, Scrolling),
        history: &mut History,
        names: &dyn Names,
    ) -> Taken {
        match action {
            Action::Cancel => return Taken::Close,
            Action::Redraw | Action::Suspend | Action::Interrupt | Action::Quit | Action::QuitNow => {
                return Taken::Pass;
            }
            _ => {}
        }
        match self {
            Overlay::Help { scroll } | Overlay::Messages { scroll } | Overlay::Text { scroll, .. } => {
                scrolled(scroll, action, seen)
            }
            Overlay::Prompt(p) => match action {
                Action::Up => {
                    p.page(true, history, names);
                    Taken::Stay
                }
                Action::Down => {
                    p.page(false, history, names);
                    Taken::Stay
                }
                Action::FocusNext | Action::PageDown => {
                    p.cycle(true, names);
                    Taken::Stay
                }
                Action::FocusPrev | Action::PageUp => {
                    p.cycle(false, names);
                    Taken::Stay
                }
                Action::Accept => accept_prompt(p.kind, p.editor.text(), lang, history),
                _ => Taken::Stay,
            },
            Overlay::Palette(p) => {
                let found = p.found(lang);
                if *action == Action::Accept {
                    return match found.get(p.selected) {
                        Some(spec) if spec.optional => match Action::parse(spec.name) {
                            Ok(action) => Taken::Run(action),
                            Err(slip) => Taken::Wrong(slip.msg),
                        },
                        // An argument is missing: go on in the command line.
                        Some(spec) => Taken::Prompt(format!("{} ", spec.name)),
                        None => Taken::Stay,
                    };
                }
                chosen(&mut p.selected, found.len(), action);
                Taken::Stay
            }
            Overlay::Export(form) => {
                form.wrong = None;
                match action {
                    Action::FocusNext | Action::Down => form.field = (form.field + 1) % 3,
                    Action::FocusPrev | Action::Up => form.field = (form.field + 2) % 3,
                    Action::Right | Action::PageDown if form.field == 0 => form.choose(true),
                    Action::Left | Action::PageUp if form.field == 0 => form.choose(false),
                    Action::Accept => {
                        let args = form.args();
                        if args.path.is_none() {
                            form.refuse(2, Msg::new("tui.export.no_path"));
                            return Taken::Stay;
                        }
                        // It goes once the file is written.
                        return Taken::Also(Action::Export(args));
                    }
                    _ => {}
                }
                Taken::Stay
            }
            Overlay::List { items, selected, .. } => match action {
                Action::Accept => match items.get(*selected) {
                    Some(Item { action: Some(action), .. }) => Taken::Run(action.clone()),
                    _ => Taken::Close,
                },
                Action::Delete(_) => {
                    let Some(delete) = items.get(*selected).and_then(|i| i.delete.clone()) else {
                        return Taken::Stay;
                    };
                    items.remove(*selected);
                    *selected = (*selected).min(items.len().saturating_sub(1));
                    Taken::Also(delete)
                }
                _ => {
                    chosen(selected, items.len(), action);
                    Taken::Stay
                }
            },
            Overlay::Confirm { effect, .. } => match action {
                Action::Accept => Taken::Effect((**effect).clone()),
                _ => Taken::Stay,
            },
        }
    }
}

fn accept_prompt(kind: PromptKind, text: &str, lang: Lang, history: &mut History) -> Taken {
    let text = text.trim();
    history.push(text);
    if text.is_empty() {
        return Taken::Close;
    }
    match kind {
        PromptKind::Command => match Action::parse(text) {
            Ok(action) => Taken::Run(action),
            Err(slip) => Taken::Wrong(slip.message(text, lang)),
        },
        PromptKind::Search => Taken::Run(Action::Search(Text(text.to_owned()))),
        PromptKind::SearchBack => Taken::Run(Action::SearchBack(Text(text.to_owned()))),
        PromptKind::Goto => match StepTarget::parse(text) {
            Ok(target) => Taken::Run(Action::Step(target)),
            Err(_) => match Place::parse(text) {
                Ok(place) => Taken::Run(Action::Go(place)),
                Err(slip) => Taken::Wrong(slip.message(text, lang)),
            },
        },
    }
}
