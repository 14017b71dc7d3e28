//! Everything the application can be told to do.
//!
//! One enum; a key, a `:` command, the palette and a recorded session all end here and share its names. The
//! order of variants is the order of help. What an action needs beyond its name is its argument ([`Arg`]).

use super::args::{Arg, ExportArgs, Place, Setting, Speed, StepTarget, Text};
use super::asked::{Sides, Train, UpdateNumber};
use super::view::View;
use crate::text::{Lang, Msg, tr};

/// How an action is grouped in help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub const ALL: [Group; 8] =
        [Group::Walk, Group::Move, Group::Why, Group::View, Group::Find, Group::Export, Group::Debug, Group::App];

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
    parse: fn(&str) -> Result<Action, Msg>,
}

macro_rules! actions {
    ($($group:ident { $($variant:ident $(($arg:ty))? $name:literal;)* })*) => {
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
            parse: |rest| {
                if rest.is_empty() {
                    Ok(Action::$variant)
                } else {
                    Err(Msg::new("tui.error.no_argument").arg("name", $name))
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

actions! {
    Walk {
        Next "next";
        Prev "prev";
        StepIn "in";
        StepOver "over";
        StepOut "out";
        NextPhase "next-phase";
        PrevPhase "prev-phase";
        NextLayer "next-layer";
        PrevLayer "prev-layer";
        First "first";
        Last "last";
        Step(StepTarget) "step";
        Go(Place) "go";
        Play "play";
        Speed(Speed) "speed";
        Bookmark "bookmark";
        Bookmarks "bookmarks";
        NextBookmark "next-bookmark";
        PrevBookmark "prev-bookmark";
        Run(Text) "run";
        Train(Train) "train";
        Update(UpdateNumber) "update";
    }
    Move {
        Up "up";
        Down "down";
        Left "left";
        Right "right";
        RowStart "row-start";
        RowEnd "row-end";
        PageUp "page-up";
        PageDown "page-down";
        HalfUp "half-up";
        HalfDown "half-down";
        PageLeft "page-left";
        PageRight "page-right";
        Top "top";
        Bottom "bottom";
        FocusNext "focus-next";
        FocusPrev "focus-prev";
        NextTable "next-table";
        PrevTable "prev-table";
        AxisNext "axis-next";
        AxisPrev "axis-prev";
        AxisPick(Text) "axis-pick";
        Toggle "toggle";
        FoldAll "fold-all";
        UnfoldAll "unfold-all";
    }
    Why {
        Follow "follow";
        Back "back";
        Forward "forward";
        NextTerm "next-term";
        PrevTerm "prev-term";
        Why(Text) "why";
        WhereTo(Text) "where-to";
    }
    View {
        View(View) "view";
        NextView "next-view";
        PrevView "prev-view";
        Sidebar "sidebar";
        Notes "notes";
        Rounding "rounding";
        MoreDigits "more-digits";
        FewerDigits "fewer-digits";
        ScaleMode "scale";
        LogScale "log-scale";
        Blocks "blocks";
        FullSum "full-sum";
        Derivations "derivations";
        SortBars "sort";
    }
    Find {
        Search(Text) "search";
        SearchBack(Text) "search-back";
        SearchNext "search-next";
        SearchPrev "search-prev";
        Goto "goto";
        Palette "palette";
        Command "command";
    }
    Export {
        Export(ExportArgs) "export";
        CopyCell "copy-cell";
        CopyLine "copy-line";
        CopyTable "copy-table";
    }
    Debug {
        Break(Text) "break";
        TBreak(Text) "tbreak";
        Breaks "breaks";
        Delete(Text) "delete";
        Continue "continue";
        ReverseContinue "reverse-continue";
        Watch(Text) "watch";
        Unwatch(Text) "unwatch";
        Print(Text) "print";
        Grammar "grammar";
        Quiz(Text) "quiz";
        Answer(Text) "answer";
        Edit(Text) "edit";
        EditCell "edit-cell";
        Ablate(Text) "ablate";
        Undo "undo";
        Redo "redo";
        SaveAs(Text) "save";
        SaveSession(Text) "save-session";
        Checks "checks";
        NextFailed "next-failed";
        PrevFailed "prev-failed";
        Compare(Text) "compare";
        NextDiff "next-diff";
        PrevDiff "prev-diff";
        FirstNan(Text) "first-nan";
        FirstInf(Text) "first-inf";
        SideBySide(Sides) "side-by-side";
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
        Tour "tour";
        Redraw "redraw";
        Suspend "suspend";
        Interrupt "interrupt";
        Quit "quit";
        QuitNow "quit-now";
    }
}

impl Action {
    /// Parses a command line without its colon: a name, then an argument.
    ///
    /// # Errors
    /// An unknown name (with the nearest known one), or an argument that does not fit.
    pub fn parse(line: &str) -> Result<Self, Msg> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(n, r)| (n, r.trim()));
        // `:23` is `:step 23`, as in vim; `:q` and other short forms are in ALIASES.
        if name.starts_with(|c: char| c.is_ascii_digit()) && rest.is_empty() {
            return StepTarget::parse(name).map(Action::Step);
        }
        match spec(name) {
            Some(spec) => {
                if rest.is_empty() && !spec.optional {
                    return Err(Msg::new("tui.error.argument").arg("name", spec.name).arg("usage", spec.usage));
                }
                (spec.parse)(rest)
            }
            None => Err(unknown_name(name)),
        }
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

fn unknown_name(name: &str) -> Msg {
    match super::hint::nearest(name, SPECS.iter().map(|s| s.name)) {
        Some(near) => Msg::new("tui.error.action_near").arg("near", near),
        None => Msg::new("tui.error.action"),
    }
    .arg("name", name)
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
        for group in Group::ALL {
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
        assert_eq!(Action::parse(":x").unwrap_err().key, "tui.error.action");
        assert!(Action::parse("nxet").unwrap_err().to_string().contains("next"));
        assert_eq!(Action::parse("step").unwrap_err().key, "tui.error.argument");
        assert_eq!(Action::parse("next 3").unwrap_err().key, "tui.error.no_argument");
    }
}
