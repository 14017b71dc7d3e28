//! Which keys do what: data (`assets/keymap.ron`, then the user's `keys`). Help, footer hints, the key table of
//! the documentation and the conflict check all come from here.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::action::Action;
use super::key::{Key, KeySeq};
use super::view::View;
use crate::text::{Lang, Msg, nearest, tr};

/// Where keys are pressed.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::VariantArray,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[strum(serialize_all = "snake_case")]
pub enum Context {
    /// Everywhere outside overlays.
    Global,
    /// The step list has the focus.
    Steps,
    /// The tables have the focus.
    Stage,
    /// The derivation and the note have the focus.
    Text,
    /// A list or text lies over the screen.
    Popup,
    /// A line is being typed.
    Prompt,
}

impl Context {
    /// All contexts, in the order of help.
    pub const ALL: &[Context] = <Self as strum::VariantArray>::VARIANTS;

    /// Its name in a keymap.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Catalogue key of its title.
    pub fn key(self) -> &'static str {
        match self {
            Context::Global => "tui.context.global",
            Context::Steps => "tui.context.steps",
            Context::Stage => "tui.context.stage",
            Context::Text => "tui.context.text",
            Context::Popup => "tui.context.popup",
            Context::Prompt => "tui.context.prompt",
        }
    }

    /// Contexts in which a key is looked up, nearest first. Overlays hide the global keys.
    pub fn chain(self) -> &'static [Context] {
        match self {
            Context::Global => &[Context::Global],
            Context::Steps => &[Context::Steps, Context::Global],
            Context::Stage => &[Context::Stage, Context::Global],
            Context::Text => &[Context::Text, Context::Global],
            Context::Popup => &[Context::Popup],
            Context::Prompt => &[Context::Prompt],
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One binding.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Where.
    pub context: Context,
    /// Which keys.
    pub keys: KeySeq,
    /// What they do.
    pub action: Action,
}

/// What the keys pressed so far mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// This.
    Action(Action),
    /// The beginning of longer sequences.
    Prefix,
    /// Nothing.
    None,
}

/// All bindings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keymap {
    bindings: Vec<Binding>,
}

const DEFAULT: &str = include_str!("../../assets/keymap.ron");

type Table = BTreeMap<String, BTreeMap<String, String>>;

/// One line of help or of the key table: an action and its keys in one context.
#[derive(Clone, Debug, PartialEq)]
pub struct HelpLine {
    /// Where the keys work.
    pub context: Context,
    /// The keys, most convenient first.
    pub keys: Vec<KeySeq>,
    /// The action.
    pub action: Action,
}

impl Keymap {
    /// The keymap that comes with the program.
    ///
    /// # Panics
    /// Where `assets/keymap.ron` is wrong, which a test excludes.
    pub fn builtin() -> Self {
        // Entries are lists so that their order in the file is the order of help.
        let table: Vec<(String, Vec<(String, String)>)> =
            ron::from_str(DEFAULT).unwrap_or_else(|e| panic!("assets/keymap.ron: {e}"));
        let mut map = Self::default();
        for (context, entries) in table {
            for (keys, line) in entries {
                let warning = map.bind(&context, &keys, &line).err();
                assert!(warning.is_none(), "assets/keymap.ron: {warning:?}");
            }
        }
        // Views come with their keys.
        for &view in View::ALL {
            for keys in view.keys() {
                let bound = map.bind(Context::Global.name(), keys, &Action::View(view).line());
                assert!(bound.is_ok(), "{}: {bound:?}", view.name());
            }
        }
        map
    }

    /// The built-in keymap with a user's changes on top; entries that cannot be used come back as warnings.
    pub fn with_user(table: &Table) -> (Self, Vec<Msg>) {
        let mut map = Self::builtin();
        let mut warnings = Vec::new();
        for (name, entries) in table {
            // An unknown context is reported once, not for each of its keys.
            if let Err(warning) = context(name) {
                warnings.push(warning);
                continue;
            }
            let bound = entries.iter().map(|(keys, line)| map.bind(name, keys, line));
            warnings.extend(bound.filter_map(Result::err));
        }
        warnings.extend(map.conflicts());
        (map, warnings)
    }

    /// Binds `keys` to the command `line` in `context`, in place of what they did; `none` unbinds.
    ///
    /// # Errors
    /// An unknown context, key or action.
    pub fn bind(&mut self, context: &str, keys: &str, line: &str) -> Result<(), Msg> {
        let context = self::context(context)?;
        let keys: KeySeq = keys.parse()?;
        let action = match line {
            "none" => None,
            _ => Some(Action::parse(line).map_err(|slip| slip.msg)?),
        };
        let old = self.bindings.iter().position(|b| b.context == context && b.keys == keys);
        match (old, action) {
            (Some(at), Some(action)) => self.bindings[at].action = action,
            (Some(at), None) => {
                self.bindings.remove(at);
            }
            (None, Some(action)) => self.bindings.push(Binding { context, keys, action }),
            (None, None) => {}
        }
        Ok(())
    }

    /// What `pressed` means in `context`.
    pub fn lookup(&self, context: Context, pressed: &[Key]) -> Lookup {
        let mut prefix = false;
        for context in context.chain() {
            for b in self.bindings.iter().filter(|b| b.context == *context) {
                if b.keys.0 == pressed {
                    return Lookup::Action(b.action.clone());
                }
                prefix |= b.keys.0.len() > pressed.len() && b.keys.0.starts_with(pressed);
            }
            if prefix {
                return Lookup::Prefix;
            }
        }
        Lookup::None
    }

    /// All bindings, in order.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The keys of an action in `context`, nearest context first.
    pub fn keys_for<'m>(&'m self, context: Context, action: &'m Action) -> impl Iterator<Item = &'m KeySeq> {
        context.chain().iter().flat_map(move |c| {
            self.bindings.iter().filter(move |b| b.context == *c && b.action == *action).map(|b| &b.keys)
        })
    }

    /// The label of the first key of an action, for footers; `None` where it has none.
    pub fn label(&self, context: Context, action: &Action, arrows: bool) -> Option<String> {
        self.keys_for(context, action).next().map(|k| k.label(arrows))
    }

    /// One line an action and context, in the order of actions.
    pub fn help(&self) -> Vec<HelpLine> {
        let mut lines: Vec<HelpLine> = Vec::new();
        for b in &self.bindings {
            if let Some(line) = lines.iter_mut().find(|l| l.context == b.context && l.action == b.action) {
                line.keys.push(b.keys.clone());
            } else {
                lines.push(HelpLine { context: b.context, keys: vec![b.keys.clone()], action: b.action.clone() });
            }
        }
        let rank = |a: &Action| super::action::SPECS.iter().position(|s| s.name == a.name());
        lines.sort_by_key(|l| (l.context, rank(&l.action)));
        lines
    }

    /// The key table of the documentation, as Markdown.
    pub fn markdown(&self, lang: Lang) -> String {
        let mut out = String::new();
        let mut context = None;
        for line in self.help() {
            if context != Some(line.context) {
                context = Some(line.context);
                let _ = write!(
                    out,
                    "\n### {}\n\n| {} | {} | {} |\n|---|---|---|\n",
                    tr(lang, line.context.key()),
                    tr(lang, "tui.help.keys"),
                    tr(lang, "tui.help.command"),
                    tr(lang, "tui.help.does"),
                );
            }
            let keys: Vec<_> = line.keys.iter().map(|k| format!("`{}`", k.label(true).replace('|', "\\|"))).collect();
            let _ = writeln!(out, "| {} | `{}` | {} |", keys.join(" "), line.action.line(), line.action.describe(lang));
        }
        out
    }

    /// Bindings that hide each other: in one context, a sequence that begins another one.
    pub fn conflicts(&self) -> Vec<Msg> {
        let mut found = Vec::new();
        for (i, a) in self.bindings.iter().enumerate() {
            for b in &self.bindings[i + 1..] {
                let (a_keys, b_keys) = (&a.keys.0, &b.keys.0);
                if a.context == b.context && (a_keys.starts_with(b_keys) || b_keys.starts_with(a_keys)) {
                    found.push(
                        Msg::new("tui.keymap.conflict")
                            .arg("context", a.context)
                            .arg("a", &a.keys)
                            .arg("a_action", a.action.line())
                            .arg("b", &b.keys)
                            .arg("b_action", b.action.line()),
                    );
                }
            }
        }
        found
    }
}

/// The context of this name.
fn context(name: &str) -> Result<Context, Msg> {
    name.parse().map_err(|_| {
        let names: Vec<_> = Context::ALL.iter().map(|c| c.name()).collect();
        match nearest(name, names.iter().copied()) {
            Some(near) => Msg::new("tui.keymap.context_near").arg("near", near),
            None => Msg::new("tui.keymap.context").arg("all", names.join(", ")),
        }
        .arg("name", name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(text: &str) -> Vec<Key> {
        text.parse::<KeySeq>().unwrap().0
    }

    #[test]
    fn the_builtin_keymap_has_no_conflict() {
        assert_eq!(Keymap::builtin().conflicts(), []);
    }

    #[test]
    fn every_bound_action_has_a_key_that_is_no_letter() {
        // Debugging commands and rare ones may be letters: they are also `:` commands and in the palette.
        let map = Keymap::builtin();
        for b in map.bindings() {
            use super::super::action::Group;
            if !matches!(b.action.spec().group, Group::Walk | Group::Move | Group::Why | Group::Find)
                && !matches!(b.action.name(), "view" | "export" | "help" | "quit" | "cancel" | "accept")
            {
                continue;
            }
            let reachable = Context::ALL
                .iter()
                .any(|&c| c.chain().contains(&b.context) && map.keys_for(c, &b.action).any(KeySeq::has_no_letter));
            assert!(reachable, "`{}` has letters only", b.action.line());
        }
    }

    #[test]
    fn sequences() {
        let map = Keymap::builtin();
        assert_eq!(map.lookup(Context::Stage, &seq("]d")), Lookup::Action(Action::NextDiff));
        assert_eq!(map.lookup(Context::Stage, &seq("]")), Lookup::Prefix);
        assert_eq!(map.lookup(Context::Stage, &seq("]?")), Lookup::None);
        assert_eq!(map.lookup(Context::Popup, &seq("]d")), Lookup::None);
    }

    #[test]
    fn user_keys_replace_add_and_unbind() {
        let table: Table = ron::from_str(
            r#"{"global": {"ctrl-n": "next", "q": "none", "entr": "next", "x": "nxet"},
                "stag": {"a": "next"}}"#,
        )
        .unwrap();
        let (map, warnings) = Keymap::with_user(&table);
        assert_eq!(map.lookup(Context::Stage, &seq("ctrl-n")), Lookup::Action(Action::Next));
        assert_eq!(map.lookup(Context::Stage, &seq("q")), Lookup::None);
        let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        for (text, near) in texts.iter().zip(["enter", "next", "stage"]) {
            assert!(text.contains(near), "{text}");
        }
        let table: Table = ron::from_str(r#"{"global": {"] d x": "next"}}"#).unwrap();
        assert_eq!(Keymap::with_user(&table).1.len(), 1);
    }

    #[test]
    fn help_has_every_binding() {
        let map = Keymap::builtin();
        let n: usize = map.help().iter().map(|l| l.keys.len()).sum();
        assert_eq!(n, map.bindings().len());
        for lang in [Lang::En, Lang::Zh] {
            assert!(map.markdown(lang).contains("`next`"));
        }
    }
}
