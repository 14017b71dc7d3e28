//! Arguments whose own grammar is read where they are used: expressions, breakpoints, changes; names.

use super::{Arg, Completes};
use crate::app::grammar::{self, Slip};
use crate::text::{Msg, escape};

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident $usage:literal $completes:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub String);

        impl Arg for $name {
            const USAGE: &'static str = $usage;
            const OPTIONAL: bool = true;
            const COMPLETES: Completes = Completes::$completes;
            fn parse(text: &str) -> Result<Self, Slip> {
                Ok(Self(text.to_owned()))
            }
            fn print(&self) -> String {
                self.0.clone()
            }
        }
    )*};
}

texts! {
    /// Any text, up to the end of the line.
    Text "TEXT" Places;
    /// An expression; empty: what is under the cursor.
    Expression "[EXPRESSION]" Expression;
    /// Where to stop; empty: at the step one is in.
    BreakSpec "[STEP | NAME | EXPRESSION | op:NAME] [if CONDITION]" Expression;
    /// What is changed, or ablated; empty: the list, or what is under the cursor.
    Change "[NAME[I,J] = VALUE | head NAME.I | layer NAME | token …]" Places;
    /// A text that the model reads; empty: the one that it reads now.
    Sentence "[TEXT]" Words;
    /// A run; empty: the next one, or the one looked at.
    RunName "[RUN]" Runs;
    /// A source and its inputs, as on the command line.
    SourceLine "SOURCE [--text TEXT …]" Words;
    /// A file; empty: a name is proposed.
    FileName "[FILE]" Words;
}

/// A cell, and how much of its tree: `A1[0,2] depth 3 most all`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeArgs {
    /// The cell; empty: the one under the cursor.
    pub cell: String,
    /// Levels.
    pub depth: Option<usize>,
    /// Branches of a cell; 0: all.
    pub most: Option<usize>,
}

impl Arg for TreeArgs {
    const USAGE: &'static str = "[CELL] [depth N] [most K|all]";
    const OPTIONAL: bool = true;
    const COMPLETES: Completes = Completes::Expression;
    fn parse(text: &str) -> Result<Self, Slip> {
        let (cell, options) = grammar::options(text, &["depth", "most"]);
        let mut args = Self { cell: cell.to_owned(), ..Self::default() };
        for (option, value, at) in options {
            let wrong =
                || Slip::new(at.clone(), Msg::new("tree.bad_number").arg("option", option).arg("text", escape(value)));
            let number = || value.parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(wrong);
            match (option, value) {
                ("depth", _) => args.depth = Some(number()?),
                (_, "all") => args.most = Some(0),
                _ => args.most = Some(number()?),
            }
        }
        Ok(args)
    }
    fn print(&self) -> String {
        let mut parts = Vec::new();
        if !self.cell.is_empty() {
            parts.push(self.cell.clone());
        }
        parts.extend(self.depth.map(|n| format!("depth {n}")));
        parts.extend(self.most.map(|n| if n == 0 { "most all".to_owned() } else { format!("most {n}") }));
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_last() {
        let args = TreeArgs::parse("max(Q1 - K1) depth 3 most all").unwrap();
        assert_eq!(args, TreeArgs { cell: "max(Q1 - K1)".to_owned(), depth: Some(3), most: Some(0) });
        assert_eq!(args.print(), "max(Q1 - K1) depth 3 most all");
        assert_eq!(TreeArgs::parse("depth 2").unwrap().print(), "depth 2");
        assert_eq!(TreeArgs::parse("").unwrap(), TreeArgs::default());
        let slip = TreeArgs::parse("Q1[0,0] depth x").unwrap_err();
        assert_eq!((slip.at, slip.msg.key), (14..15, "tree.bad_number"));
    }
}
