//! Few semantic styles, as data in `assets/themes`, in the colours that a terminal has.

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

use crate::app::settings::ColorMode;

/// How many colours a terminal shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// None: attributes only.
    None,
    /// The 16 of its palette.
    Ansi16,
    /// The 256 of xterm.
    Ansi256,
    /// 24 bit.
    #[default]
    True,
}

/// What the environment says of colours, read once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment {
    /// `NO_COLOR` is set to something.
    pub no_color: bool,
    /// What standard output supports.
    pub detected: Depth,
}

impl Environment {
    /// Reads `NO_COLOR`, `COLORTERM`, `TERM` and the like.
    pub fn read() -> Self {
        let detected = match supports_color::on(supports_color::Stream::Stdout) {
            Some(level) if level.has_16m => Depth::True,
            Some(level) if level.has_256 => Depth::Ansi256,
            Some(_) => Depth::Ansi16,
            None => Depth::None,
        };
        Self { no_color: std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()), detected }
    }
}

impl Depth {
    /// The depth to use: what a user asked for, else what the environment says.
    pub fn resolve(mode: ColorMode, environment: Environment) -> Self {
        match mode {
            ColorMode::Auto if environment.no_color => Self::None,
            ColorMode::Auto => environment.detected,
            ColorMode::Never => Self::None,
            ColorMode::Ansi16 => Self::Ansi16,
            ColorMode::Ansi256 => Self::Ansi256,
            ColorMode::Truecolor => Self::True,
        }
    }

    /// The nearest colour that the terminal has; `None` where it has no colours.
    pub fn color(self, color: Color) -> Option<Color> {
        match (self, color) {
            (Depth::None, _) => None,
            (Depth::Ansi256, Color::Rgb(r, g, b)) => Some(Color::Indexed(nearest(16..=255, [r, g, b]))),
            (Depth::Ansi16, Color::Rgb(r, g, b)) => Some(ansi(nearest(0..=15, [r, g, b]))),
            (Depth::Ansi16, Color::Indexed(n)) if n >= 16 => Some(ansi(nearest(0..=15, xterm(n)))),
            (_, c) => Some(c),
        }
    }

    /// `style` in the colours that the terminal has.
    pub fn style(self, style: Style) -> Style {
        Style { fg: style.fg.and_then(|c| self.color(c)), bg: style.bg.and_then(|c| self.color(c)), ..style }
    }
}

fn nearest(indices: std::ops::RangeInclusive<u8>, rgb: [u8; 3]) -> u8 {
    let distance = |n: &u8| -> u32 {
        let other = xterm(*n);
        // The eye weighs green most: the usual cheap approximation.
        [2, 4, 3].iter().zip(rgb.iter().zip(other)).map(|(w, (a, b))| w * u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    indices.min_by_key(distance).unwrap_or(0)
}

const PALETTE: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

fn ansi(n: u8) -> Color {
    PALETTE[usize::from(n) % 16]
}

/// Red, green and blue of xterm's colour `n`.
pub fn xterm(n: u8) -> [u8; 3] {
    const BASE: [[u8; 3]; 16] = [
        [0, 0, 0],
        [205, 0, 0],
        [0, 205, 0],
        [205, 205, 0],
        [0, 0, 238],
        [205, 0, 205],
        [0, 205, 205],
        [229, 229, 229],
        [127, 127, 127],
        [255, 0, 0],
        [0, 255, 0],
        [255, 255, 0],
        [92, 92, 255],
        [255, 0, 255],
        [0, 255, 255],
        [255, 255, 255],
    ];
    match n {
        0..=15 => BASE[usize::from(n)],
        16..=231 => {
            let n = n - 16;
            let level = |v: u8| if v == 0 { 0 } else { 55 + 40 * v };
            [level(n / 36), level(n / 6 % 6), level(n % 6)]
        }
        232..=255 => [8 + 10 * (n - 232); 3],
    }
}

/// Red, green and blue of a colour, as xterm shows it; `None` for the terminal's default.
pub fn rgb(color: Color) -> Option<[u8; 3]> {
    match color {
        Color::Reset => None,
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(n) => Some(xterm(n)),
        named => index(named).map(xterm),
    }
}

/// The number of a named colour in the palette of 16.
pub fn index(named: Color) -> Option<u8> {
    let at = PALETTE.iter().position(|c| *c == named)?;
    Some(at as u8)
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    #[serde(deserialize_with = "color")]
    fg: Option<Color>,
    #[serde(deserialize_with = "color")]
    bg: Option<Color>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// A colour by name, number (`208`) or `#rrggbb`.
fn color<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Color>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let color = text.parse();
    color.map(Some).map_err(|_| serde::de::Error::custom(format!("`{text}` is no colour")))
}

impl Entry {
    fn style(&self) -> Style {
        let mut modifiers = Modifier::empty();
        for (on, modifier) in [
            (self.bold, Modifier::BOLD),
            (self.dim, Modifier::DIM),
            (self.italic, Modifier::ITALIC),
            (self.underline, Modifier::UNDERLINED),
            (self.reverse, Modifier::REVERSED),
        ] {
            modifiers.set(modifier, on);
        }
        Style { fg: self.fg, bg: self.bg, ..Style::default() }.add_modifier(modifiers)
    }
}

macro_rules! roles {
    ($($(#[$meta:meta])* $role:ident,)*) => {
        /// The styles of everything on the screen, by what it means.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Theme {
            /// Whether colours are on a dark ground.
            pub dark: bool,
            /// How many colours the terminal shows.
            pub depth: Depth,
            $($(#[$meta])* pub $role: Style,)*
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            dark: bool,
            $($role: Entry,)*
        }

        impl Theme {
            fn from_file(file: &File, depth: Depth) -> Self {
                Self { dark: file.dark, depth, $($role: depth.style(file.$role.style()),)* }
            }
        }
    };
}

roles! {
    /// Running text.
    text,
    /// What matters less.
    dim,
    /// Titles.
    title,
    /// What is current.
    accent,
    /// Frames.
    border,
    /// The frame of the part that has the focus.
    focus,
    /// Keys in hints.
    key,
    /// Row and column labels.
    label,
    /// What is as it should be.
    good,
    /// What is not quite.
    warn,
    /// What is wrong.
    bad,
    /// The cell or line under the cursor.
    cursor,
    /// Cells that the cursor cell reads.
    lit,
    /// What a search found.
    found,
    /// What a change changed.
    changed,
    /// Masked cells.
    masked,
    /// Cells that are not a number.
    nan,
    /// Infinite cells.
    inf,
}

const FILES: [(&str, &str); 4] = [
    ("dark", include_str!("../../assets/themes/dark.ron")),
    ("light", include_str!("../../assets/themes/light.ron")),
    ("high-contrast", include_str!("../../assets/themes/high-contrast.ron")),
    ("monochrome", include_str!("../../assets/themes/monochrome.ron")),
];

impl Theme {
    /// The theme called `name`, in the colours of `depth`; the first one where there is none of that name.
    ///
    /// # Panics
    /// Where a file in `assets/themes` is wrong, which a test excludes.
    pub fn new(name: &str, depth: Depth) -> Self {
        let (name, source) = FILES.iter().find(|f| f.0 == name).unwrap_or(&FILES[0]);
        let file: File = ron::from_str(source).unwrap_or_else(|e| panic!("assets/themes/{name}.ron: {e}"));
        // A theme without colours has none, whatever the terminal could show.
        let depth = if *name == "monochrome" { Depth::None } else { depth };
        Self::from_file(&file, depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::settings::THEMES;

    #[test]
    fn every_theme_loads_and_the_cursor_is_reversed() {
        assert_eq!(FILES.map(|f| f.0), THEMES);
        for name in THEMES {
            for depth in [Depth::None, Depth::Ansi16, Depth::Ansi256, Depth::True] {
                let theme = Theme::new(name, depth);
                assert!(theme.cursor.add_modifier.contains(Modifier::REVERSED));
                let special = [theme.masked, theme.nan, theme.inf, theme.text];
                for (i, a) in special.iter().enumerate() {
                    assert!(special[i + 1..].iter().all(|b| a != b), "{name} {depth:?}");
                }
            }
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        for name in THEMES {
            let theme = format!("{:?}", Theme::new(name, Depth::None));
            assert!(!theme.contains("fg: Some"), "{theme}");
        }
    }

    #[test]
    fn quantises() {
        let c = |d: Depth, r, g, b| d.color(Color::Rgb(r, g, b));
        assert_eq!(c(Depth::True, 1, 2, 3), Some(Color::Rgb(1, 2, 3)));
        assert_eq!(c(Depth::Ansi256, 255, 0, 0), Some(Color::Indexed(196)));
        assert_eq!(c(Depth::Ansi256, 128, 128, 128), Some(Color::Indexed(244)));
        assert_eq!(c(Depth::Ansi16, 250, 10, 10), Some(Color::LightRed));
        assert_eq!(c(Depth::None, 1, 2, 3), None);
        assert_eq!(Depth::Ansi16.color(Color::Indexed(196)), Some(Color::LightRed));
    }

    #[test]
    fn a_person_outranks_the_environment() {
        let env = |no_color| Environment { no_color, detected: Depth::Ansi256 };
        assert_eq!(Depth::resolve(ColorMode::Auto, env(false)), Depth::Ansi256);
        assert_eq!(Depth::resolve(ColorMode::Auto, env(true)), Depth::None);
        assert_eq!(Depth::resolve(ColorMode::Truecolor, env(true)), Depth::True);
        assert_eq!(Depth::resolve(ColorMode::Never, env(false)), Depth::None);
    }
}
