//! Settings: what a user chooses of language, looks and numbers.

use crate::trace::RoundMode;
use std::fmt;
use std::str::FromStr;

use super::hint::not_one_of;
use crate::text::{Lang, Msg, NumberFormat};

/// Names of the themes that come with the program.
pub const THEMES: [&str; 4] = ["dark", "light", "high-contrast", "monochrome"];

/// Names of the languages.
pub const LANGS: [&str; 2] = ["en", "zh"];

macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$vmeta:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::VariantArray, strum::IntoStaticStr)]
        pub enum $type { $($(#[$vmeta])* #[strum(serialize = $name)] $variant,)* }

        impl $type {
            /// All values.
            pub const ALL: &[$type] = <Self as strum::VariantArray>::VARIANTS;

            /// Its name in files and on the command line.
            pub fn name(self) -> &'static str {
                self.into()
            }

            /// The names of all.
            pub fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|v| v.name()).collect()
            }

            /// The next value, around.
            #[must_use]
            pub fn next(self) -> Self {
                let at = Self::ALL.iter().position(|v| *v == self).unwrap_or(0);
                Self::ALL[(at + 1) % Self::ALL.len()]
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = Msg;
            fn from_str(text: &str) -> Result<Self, Msg> {
                let found = Self::ALL.iter().find(|v| v.name() == text);
                found.copied().ok_or_else(|| not_one_of(text, &Self::names()))
            }
        }
    };
}

named! {
    /// Which glyphs a terminal can be trusted with.
    GlyphSet {
        /// Box drawing, eighth blocks, braille.
        #[default]
        Unicode "unicode",
        /// Only glyphs that CJK terminals also draw one cell wide.
        CjkSafe "cjk-safe",
        /// ASCII only.
        Ascii "ascii",
    }
}

named! {
    /// Over what the colour scale runs.
    ScaleMode {
        /// Each tensor, with all its heads, has its own range.
        #[default]
        Tensor "tensor",
        /// Each head has its own range.
        Head "head",
        /// The two axes that are shown have their own range.
        Plane "plane",
        /// All tensors of a step share one range.
        Step "step",
    }
}

named! {
    /// What colours a terminal is given.
    ColorMode {
        /// What the environment says.
        #[default]
        Auto "auto",
        /// No colours (attributes stay).
        Never "never",
        /// The 16 of the palette.
        Ansi16 "16",
        /// The 256 of xterm.
        Ansi256 "256",
        /// 24 bit.
        Truecolor "truecolor",
    }
}

/// Name of a language in files and on the command line.
pub fn lang_name(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "en",
        Lang::Zh => "zh",
    }
}

/// Reads a language name; locale forms such as `zh-CN` are accepted.
///
/// # Errors
/// Neither English nor Chinese.
pub fn parse_lang(text: &str) -> Result<Lang, Msg> {
    match text.split(['-', '_', '.']).next() {
        Some("zh") => Ok(Lang::Zh),
        Some("en") => Ok(Lang::En),
        _ => Err(not_one_of(text, &LANGS)),
    }
}

/// Reads the name of a theme.
///
/// # Errors
/// There is none of that name.
pub fn parse_theme(text: &str) -> Result<String, Msg> {
    if THEMES.contains(&text) { Ok(text.to_owned()) } else { Err(not_one_of(text, &THEMES)) }
}

/// What a user has set.
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
    /// Round each step.
    pub rounding: RoundMode,
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
    /// Bars of probabilities are sorted by size.
    pub sorted: bool,
    /// Cells may be computed before one's eyes.
    pub motion: bool,
}

impl Settings {
    /// Decimals that rounding each step has: those that are shown.
    pub fn decimals(&self) -> u8 {
        match self.digits {
            NumberFormat::Decimals(d) | NumberFormat::Scientific(d) => d,
            NumberFormat::Shortest | NumberFormat::Bits => 4,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lang: Lang::En,
            theme: THEMES[0].to_owned(),
            glyphs: GlyphSet::default(),
            digits: NumberFormat::default(),
            rounding: RoundMode::Exact,
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
            motion: true,
        }
    }
}
