//! Everything the application can do.
//!
//! One enum; a key, a `:` command, the palette and a recorded session all end here and share its names. The
//! order of variants is the order of help. What an action needs beyond its name is its argument ([`Arg`]).

use super::args::{
    Arg, BreakSpec, Change, Choice, CompareArgs, Completes, ExportArgs, Expression, FileName, Mode, Place, RunName,
    Sentence, Setting, Sides, SourceLine, Speed, StepTarget, Text, Train, TreeArgs, UpdateNumber,
};
use super::grammar::{self, Slip};
use super::view::View;
use crate::text::{Lang, Msg, tr};

/// How an action is grouped in help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Group {
    /// Walking through the steps.
    Walk,
    /// Moving inside tables.
    Move,
    /// Where a number came from.
    Why,
    /// What is shown, and how.
    View,
    /// Finding.
    Find,
    /// Taking out.
    Export,
    /// Breakpoints, watches, what-if, compare.
    Debug,
    /// The application itself.
    App,
}

impl Group {
    /// All groups, in the order of help.
    pub const ALL: &[Group] = <Self as strum::VariantArray>::VARIANTS;

    /// Catalogue key of its title.
    pub fn key(self) -> &'static str {
        match self {
            Group::Walk => "tui.group.walk",
            Group::Move => "tui.group.move",
            Group::Why => "tui.group.why",
            Group::View => "tui.group.view",
            Group::Find => "tui.group.find",
            Group::Export => "tui.group.export",
            Group::Debug => "tui.group.debug",
            Group::App => "tui.group.app",
        }
    }
}

/// What is known of an action before its argument.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name used in keymaps and on the command line.
    pub name: &'static str,
    /// Catalogue key of its one-line description.
    pub key: &'static str,
    /// Group in help.
    pub group: Group,
    /// How the argument is written; empty for none.
    pub usage: &'static str,
    /// Whether the argument may be left out.
    pub optional: bool,
    /// Fixed words that the argument may be; empty where anything goes.
    pub words: fn() -> Vec<String>,
    /// What completes the argument besides its words.
    pub completes: Completes,
    parse: fn(&str) -> Result<Action, Slip>,
}

/// Hands the table of commands to macro `$then`. One row a command: variant, type of its argument if it takes one, its
/// name, and the function in `commands` that does it (given the application and the argument). Rows without a
/// function are the interface's own ([`super::ui::Ui::update`]).
macro_rules! action_table {
    ($then:ident) => {
        $then! {
            Walk {
                Next "next" => walk::next;
                Prev "prev" => walk::prev;
                StepIn "in" => walk::step_in;
                StepOver "over" => |app| { app.nav.go_by(1); };
                StepOut "out" => walk::step_out;
                NextPhase "next-phase" => |app| { app.nav.to_phase(true); };
                PrevPhase "prev-phase" => |app| { app.nav.to_phase(false); };
                NextLayer "next-layer" => |app| { app.nav.to_layer(true); };
                PrevLayer "prev-layer" => |app| { app.nav.to_layer(false); };
                First "first" => |app| app.nav.to_end(false);
                Last "last" => |app| app.nav.to_end(true);
                Step(StepTarget) "step" => walk::step;
                Go(Place) "go" => walk::go;
                Play "play";
                Speed(Speed) "speed";
                Bookmark "bookmark" => bookmarks::toggle;
                Bookmarks "bookmarks" => bookmarks::list;
                NextBookmark "next-bookmark" => |app| bookmarks::go(app, true);
                PrevBookmark "prev-bookmark" => |app| bookmarks::go(app, false);
                Run(RunName) "run" => walk::run;
                Train(Train) "train" => runs::train;
                Update(UpdateNumber) "update" => runs::update;
            }
            Move {
                Up "up" => |app| cursor::vertical(app, -1);
                Down "down" => |app| cursor::vertical(app, 1);
                Left "left" => |app| app.nav.step_cursor(0, -1);
                Right "right" => |app| app.nav.step_cursor(0, 1);
                RowStart "row-start" => |app| app.nav.move_cursor(0, i64::MIN / 2);
                RowEnd "row-end" => |app| app.nav.move_cursor(0, i64::MAX / 2);
                PageUp "page-up" => |app| cursor::page(app, false, false);
                PageDown "page-down" => |app| cursor::page(app, true, false);
                HalfUp "half-up" => |app| cursor::page(app, false, true);
                HalfDown "half-down" => |app| cursor::page(app, true, true);
                PageLeft "page-left" => |app| cursor::page_columns(app, false);
                PageRight "page-right" => |app| cursor::page_columns(app, true);
                Top "top" => |app| cursor::end(app, false);
                Bottom "bottom" => |app| cursor::end(app, true);
                FocusNext "focus-next";
                FocusPrev "focus-prev";
                NextTable "next-table" => |app| app.nav.to_table(true);
                PrevTable "prev-table" => |app| app.nav.to_table(false);
                AxisNext "axis-next" => |app| app.nav.turn_axis(1);
                AxisPrev "axis-prev" => |app| app.nav.turn_axis(-1);
                AxisPick(Text) "axis-pick" => cursor::pick_axis;
                Toggle "toggle" => |app| app.nav.toggle_fold();
                FoldAll "fold-all" => |app| app.nav.fold_all(true);
                UnfoldAll "unfold-all" => |app| app.nav.fold_all(false);
            }
            Why {
                Follow "follow" => walk::follow;
                Back "back" => walk::back;
                Forward "forward" => walk::forward;
                NextTerm "next-term" => |app| walk::turn_term(app, true);
                PrevTerm "prev-term" => |app| walk::turn_term(app, false);
                Why(TreeArgs) "why" => why::why;
                WhereTo(TreeArgs) "where-to" => why::where_to;
            }
            View {
                View(View) "view";
                NextView "next-view";
                PrevView "prev-view";
                Sidebar "sidebar";
                Notes "notes";
                Rounding "rounding";
                Round(Mode) "round";
                MoreDigits "more-digits";
                FewerDigits "fewer-digits";
                ScaleMode "scale";
                LogScale "log-scale";
                Blocks "blocks";
                FullSum "full-sum";
                Animate "animate";
                Derivations "derivations";
                SortBars "sort";
                Counts "counts" => tables::counts;
                Heads "heads" => tables::heads;
                Depth "depth" => tables::depth;
                Batch(Choice) "batch" => |app, choice| cursor::choose(app, Part::Batch, *choice);
                Head(Choice) "head" => |app, choice| cursor::choose(app, Part::Head, *choice);
                Layer(Choice) "layer" => |app, choice| cursor::choose(app, Part::Layer, *choice);
            }
            Find {
                Search(Text) "search" => |app, text| search::search(app, text, true);
                SearchBack(Text) "search-back" => |app, text| search::search(app, text, false);
                SearchNext "search-next" => |app| search::again(app, true);
                SearchPrev "search-prev" => |app| search::again(app, false);
                Goto "goto";
                Palette "palette";
                Command "command";
            }
            Export {
                Export(ExportArgs) "export" => export::export;
                CopyCell "copy-cell" => copy::cell;
                CopyLine "copy-line" => copy::line;
                CopyTable "copy-table" => copy::table;
            }
            Debug {
                Break(BreakSpec) "break" => |app, spec| breakpoints::set(app, spec, false);
                TBreak(BreakSpec) "tbreak" => |app, spec| breakpoints::set(app, spec, true);
                Breaks "breaks" => |app| {
                    let list = list(&app.nav, &app.breaks, app.ui.settings.digits);
                    app.ui.answer(list);
                };
                Delete(Text) "delete" => |app, text| breakpoints::remove(app, &text.0, false);
                Continue "continue" => |app| breakpoints::run_on(app, Direction::Forward);
                ReverseContinue "reverse-continue" => |app| breakpoints::run_on(app, Direction::Back);
                Watch(Expression) "watch" => breakpoints::watch;
                Unwatch(Expression) "unwatch" => |app, text| breakpoints::remove(app, &text.0, true);
                Print(Expression) "print" => print::print;
                Grammar "grammar" => print::grammar;
                Quiz(Text) "quiz" => quiz::quiz;
                Answer(Text) "answer" => quiz::answer;
                Edit(Change) "edit" => what_if::edit;
                Input(Sentence) "input" => what_if::input;
                EditCell "edit-cell" => what_if::begin_edit;
                Ablate(Change) "ablate" => what_if::ablate;
                Undo "undo" => what_if::undo;
                Redo "redo" => what_if::redo;
                Flip "flip" => what_if::flip;
                SaveAs(FileName) "save" => what_if::save;
                SaveSession(FileName) "save-session" => session::save;
                Reload "reload" => source::reload;
                AutoReload "auto-reload" => source::auto;
                Open(SourceLine) "open" => source::open;
                Record(FileName) "record" => record::record;
                Checks "checks" => |app| app.checks.list(&app.nav, &mut app.ui);
                NextFailed "next-failed" => |app| app.checks.go(true, &mut app.nav, &mut app.ui);
                PrevFailed "prev-failed" => |app| app.checks.go(false, &mut app.nav, &mut app.ui);
                Compare(CompareArgs) "compare" => compare::compare;
                Terms(Expression) "terms" => terms::terms;
                NextDiff "next-diff" => |app| compare::go_to_difference(app, true);
                PrevDiff "prev-diff" => |app| compare::go_to_difference(app, false);
                FirstNan(RunName) "first-nan" => why::first_nan;
                FirstInf(RunName) "first-inf" => why::first_inf;
                SideBySide(Sides) "side-by-side" => runs::side_by_side;
                Numerics(Mode) "numerics" => |app, mode| numerics::numerics(app, *mode);
            }
            App {
                Accept "accept";
                Cancel "cancel";
                Set(Setting) "set";
                Language "language";
                Theme "theme";
                Glyphs "glyphs";
                Mouse "mouse";
                Messages "messages";
                Help "help";
                Tour "tour" => quiz::tour;
                Redraw "redraw";
                Suspend "suspend";
                Interrupt "interrupt";
                Quit "quit";
                QuitNow "quit-now";
            }
        }
    };
}
pub(crate) use action_table;

macro_rules! actions {
    ($($group:ident { $($variant:ident $(($arg:ty))? $name:literal $(=> $run:expr)?;)* })*) => {
        /// One thing to do.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Action {
            $($(
                #[doc = concat!("`", $name, "`: see `tui.action.", $name, "` in the catalogue.")]
                $variant $(($arg))?,
            )*)*
        }

        /// All actions, in the order of help.
        pub const SPECS: &[Spec] = &[$($(
            actions!(@spec $group, $variant, $name $(, $arg)?),
        )*)*];

        impl Action {
            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $($( actions!(@pat $variant $(, $arg)?) => $name, )*)*
                }
            }

            /// Its argument as written, empty for none.
            pub fn argument(&self) -> String {
                match self {
                    $($( actions!(@bind $variant, arg $(, $arg)?) => actions!(@print arg $(, $arg)?), )*)*
                }
            }
        }
    };
    (@spec $group:ident, $variant:ident, $name:literal) => {
        Spec {
            name: $name,
            key: concat!("tui.action.", $name),
            group: Group::$group,
            usage: "",
            optional: true,
            words: Vec::new,
            completes: Completes::Words,
            parse: |rest| {
                if rest.is_empty() {
                    Ok(Action::$variant)
                } else {
                    Err(Slip::new(0..rest.len(), Msg::new("tui.error.no_argument").arg("name", $name)))
                }
            },
        }
    };
    (@spec $group:ident, $variant:ident, $name:literal, $arg:ty) => {
        Spec {
            name: $name,
            key: concat!("tui.action.", $name),
            group: Group::$group,
            usage: <$arg as Arg>::USAGE,
            optional: <$arg as Arg>::OPTIONAL,
            words: <$arg as Arg>::words,
            completes: <$arg as Arg>::COMPLETES,
            parse: |rest| <$arg as Arg>::parse(rest).map(Action::$variant),
        }
    };
    (@pat $variant:ident) => { Action::$variant };
    (@pat $variant:ident, $arg:ty) => { Action::$variant(_) };
    (@bind $variant:ident, $a:ident) => { Action::$variant };
    (@bind $variant:ident, $a:ident, $arg:ty) => { Action::$variant($a) };
    (@print $a:ident) => { String::new() };
    (@print $a:ident, $arg:ty) => { $a.print() };
}
action_table!(actions);

impl Action {
    /// Parses a command line without its colon: a name, then an argument.
    ///
    /// # Errors
    /// An unknown or ambiguous name (with those it may be), or an argument that does not fit; with its place in the line.
    pub fn parse(line: &str) -> Result<Self, Slip> {
        let (name_at, argument_at) = grammar::command(line);
        let (name, argument) = (&line[name_at.clone()], &line[argument_at.clone()]);
        // `:23` is `:step 23`, as in vim; `:q` and other short forms are in ALIASES.
        if name.starts_with(|c: char| c.is_ascii_digit()) && argument.is_empty() {
            return StepTarget::parse(name).map(Action::Step).map_err(|slip| slip.after(name_at.start));
        }
        let spec = if let Some(spec) = spec(name) {
            spec
        } else {
            // A unique beginning of a name is enough.
            let whole = grammar::unique(name, SPECS.iter().map(|s| s.name));
            let whole = whole.map_err(|msg| Slip::new(name_at.clone(), msg))?;
            SPECS.iter().find(|s| s.name == whole).expect("one of the names")
        };
        if argument.is_empty() && !spec.optional {
            let msg = Msg::new("tui.error.argument").arg("name", spec.name).arg("usage", spec.usage);
            return Err(Slip::new(argument_at, msg));
        }
        (spec.parse)(argument).map_err(|slip| slip.after(argument_at.start))
    }

    /// The spec of this action.
    ///
    /// # Panics
    /// Never: every action has one.
    pub fn spec(&self) -> &'static Spec {
        let name = self.name();
        SPECS.iter().find(|s| s.name == name).expect("every action has a spec")
    }

    /// The command line that gives this action.
    pub fn line(&self) -> String {
        let argument = self.argument();
        if argument.is_empty() { self.name().to_owned() } else { format!("{} {argument}", self.name()) }
    }

    /// One line on what it does.
    pub fn describe(&self, lang: Lang) -> String {
        let text = tr(lang, self.spec().key);
        let argument = self.argument();
        if argument.is_empty() { text.to_owned() } else { format!("{text}: {argument}") }
    }
}

/// Short names that people of vim, less and gdb type.
pub const ALIASES: &[(&str, &str)] = &[
    ("q", "quit"),
    ("q!", "quit-now"),
    ("exit", "quit"),
    ("x", "quit"),
    ("wq", "quit"),
    ("qa", "quit"),
    ("n", "next"),
    ("p", "prev"),
    ("s", "in"),
    ("finish", "out"),
    ("c", "continue"),
    ("rc", "reverse-continue"),
    ("b", "break"),
    ("tb", "tbreak"),
    ("eval", "print"),
    ("display", "watch"),
    ("h", "help"),
    ("w", "export"),
    ("goto", "go"),
    ("lang", "language"),
];

/// The spec of a name or alias.
pub fn spec(name: &str) -> Option<&'static Spec> {
    let find = |n: &str| SPECS.iter().find(|s| s.name == n);
    find(name).or_else(|| ALIASES.iter().find(|a| a.0 == name).and_then(|a| find(a.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_described_once() {
        let mut names: Vec<_> = SPECS.iter().map(|s| s.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SPECS.len());
        for spec in SPECS {
            assert!(crate::text::catalogue::has(spec.key), "{}", spec.key);
        }
        for &group in Group::ALL {
            assert!(crate::text::catalogue::has(group.key()));
            assert!(SPECS.iter().any(|s| s.group == group));
        }
    }

    #[test]
    fn aliases_name_actions() {
        for (alias, name) in ALIASES {
            assert!(spec(name).is_some(), "{alias} → {name}");
        }
    }

    #[test]
    fn lines_parse_back() {
        for line in [
            "next",
            "step 23",
            "step +2",
            "go Q1[2,0]",
            "view heads",
            "export md 1..5 out.md",
            "set lang zh",
            "speed 4",
            "search Q1 / 水",
            "play",
        ] {
            let action = Action::parse(line).unwrap();
            assert_eq!(action.line(), line);
            assert_eq!(Action::parse(&action.line()).unwrap(), action);
        }
        assert_eq!(Action::parse("23").unwrap().line(), "step 23");
        assert_eq!(Action::parse("bookmarks-").unwrap_err().msg.key, "tui.error.action_near");
        assert_eq!(Action::parse("palet").unwrap(), Action::Palette, "a beginning that is one name's only");
        for (line, key, column) in [
            (":x", "tui.error.action", 1),
            ("  nxet", "tui.error.action_near", 3),
            ("next-", "tui.error.action_ambiguous", 1),
            ("step", "tui.error.argument", 5),
            ("next 3", "tui.error.no_argument", 6),
            ("step 4.x", "tui.error.value", 7),
            ("go Q1[0,a]", "tui.error.value", 8),
            ("set theme drak", "tui.error.value_near", 11),
            ("compare r.npz --rtol x", "compare.flag_value", 22),
            ("why Q1[0,0] depth 0", "tree.bad_number", 19),
        ] {
            let slip = Action::parse(line).unwrap_err();
            assert_eq!((slip.msg.key, slip.column(line)), (key, column), "{line}");
        }
    }
}
