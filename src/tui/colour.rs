//! Values as colours: a scale from the range of a tensor to 256 prepared pairs of background and text colour.

use ratatui::style::{Color, Style};

use super::theme::{Depth, Theme};

/// What a cell is, apart from its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CellKind {
    /// A number like any other.
    #[default]
    Value,
    /// A masked cell, whatever its number.
    Masked,
    /// No number.
    Nan,
    /// +∞.
    PosInf,
    /// −∞.
    NegInf,
    /// Something that has no colour: an id, a word.
    Plain,
}

impl CellKind {
    /// The kind of an unmasked number.
    pub fn of(value: f64) -> Self {
        if value.is_nan() {
            Self::Nan
        } else if value == f64::INFINITY {
            Self::PosInf
        } else if value == f64::NEG_INFINITY {
            Self::NegInf
        } else {
            Self::Value
        }
    }
}

/// Which colours a scale runs through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Map {
    /// Blue below zero, red above, the ground in the middle.
    Diverging,
    /// From little to much: viridis.
    Sequential,
}

type Table = [(Color, Color); 256];

/// A map in the colours of a terminal; made once a theme.
#[derive(Clone, Debug, PartialEq)]
pub struct Palette {
    diverging: Option<Box<Table>>,
    sequential: Option<Box<Table>>,
}

impl Palette {
    /// The colours of `theme`.
    pub fn new(theme: &Theme) -> Self {
        let table = |f: &dyn Fn(f64) -> Option<Color>| {
            (theme.depth != Depth::None).then(|| {
                let mut table = [(Color::Reset, Color::Reset); 256];
                for (i, slot) in table.iter_mut().enumerate() {
                    if let Some(bg) = f(i as f64 / 255.0) {
                        *slot = (bg, contrasting(bg, theme.depth));
                    }
                }
                Box::new(table)
            })
        };
        if theme.depth == Depth::Ansi16 {
            // Sixteen colours are too few to be near to anything: a few clear levels instead.
            return Self {
                diverging: table(&|t| match t {
                    ..0.15 => Some(Color::Blue),
                    ..0.35 => Some(Color::Cyan),
                    ..0.65 => None,
                    ..0.85 => Some(Color::Yellow),
                    _ => Some(Color::Red),
                }),
                sequential: table(&|t| match t {
                    ..0.2 => None,
                    ..0.4 => Some(Color::Blue),
                    ..0.6 => Some(Color::Cyan),
                    ..0.8 => Some(Color::Green),
                    _ => Some(Color::Yellow),
                }),
            };
        }
        let dark = theme.dark;
        Self {
            diverging: table(&|t| theme.depth.color(diverging(t, dark))),
            sequential: table(&|t| {
                let (r, g, b) = colorous::VIRIDIS.eval_continuous(t).into_tuple();
                theme.depth.color(Color::Rgb(r, g, b))
            }),
        }
    }
}

/// colorous' red–blue has a white middle, which glares on a dark ground: there its arms fade into the ground.
fn diverging(t: f64, dark: bool) -> Color {
    let map = |t| colorous::RED_BLUE.eval_continuous(1.0 - t).into_tuple();
    let (r, g, b) = if dark {
        let s = (2.0 * t - 1.0).abs();
        let end = map(if t < 0.5 { 0.12 } else { 0.88 });
        let mix = |ground: f64, end: u8| (ground + (f64::from(end) - ground) * s).round() as u8;
        (mix(30.0, end.0), mix(30.0, end.1), mix(34.0, end.2))
    } else {
        map(t)
    };
    Color::Rgb(r, g, b)
}

/// Black or white, whichever reads on `ground` (WCAG relative luminance).
fn contrasting(ground: Color, depth: Depth) -> Color {
    let Some(rgb) = super::theme::rgb(ground) else {
        return Color::Reset;
    };
    let [r, g, b] = rgb.map(|c| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    });
    let luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    let black = luminance > 0.179;
    match depth {
        Depth::Ansi16 | Depth::None if black => Color::Black,
        Depth::Ansi16 | Depth::None => Color::White,
        // Indices 16 and 231 are black and white that no palette changes.
        Depth::Ansi256 => Color::Indexed(if black { 16 } else { 231 }),
        Depth::True if black => Color::Rgb(0, 0, 0),
        Depth::True => Color::Rgb(255, 255, 255),
    }
}

/// From numbers to positions on a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Which colours.
    pub map: Map,
    /// Lower end.
    pub min: f64,
    /// Upper end.
    pub max: f64,
    /// Whether magnitudes count by their logarithm.
    pub log: bool,
}

/// Decades that a logarithmic scale spans below its largest magnitude.
const DECADES: f64 = 6.0;

impl Scale {
    /// A scale around zero that reaches the larger of the two magnitudes.
    pub fn diverging(min: f64, max: f64) -> Self {
        let reach = min.abs().max(max.abs());
        let reach = if reach.is_finite() { reach } else { f64::MAX };
        Self { map: Map::Diverging, min: -reach, max: reach, log: false }
    }

    /// A scale from `min` to `max`.
    pub fn sequential(min: f64, max: f64) -> Self {
        Self { map: Map::Sequential, min, max, log: false }
    }

    /// The same scale, logarithmic or not.
    #[must_use]
    pub fn with_log(mut self, log: bool) -> Self {
        self.log = log;
        self
    }

    /// Where `value` stands, 0 to 1; 0.5 is zero on a diverging scale.
    pub fn position(&self, value: f64) -> f64 {
        let t = match self.map {
            Map::Diverging => 0.5 + 0.5 * self.share(value.abs(), self.max).copysign(value),
            Map::Sequential if self.log => self.share(value, self.max),
            Map::Sequential => {
                // Halved first: the difference of two large numbers may not be a number.
                let span = self.max / 2.0 - self.min / 2.0;
                if span > 0.0 { (value / 2.0 - self.min / 2.0) / span } else { 0.0 }
            }
        };
        if t.is_nan() { 0.5 } else { t.clamp(0.0, 1.0) }
    }

    /// The magnitude below which everything has one colour: 0 on a linear scale.
    pub fn least(&self) -> f64 {
        if self.log { self.max * libm::exp10(-DECADES) } else { 0.0 }
    }

    fn share(&self, magnitude: f64, most: f64) -> f64 {
        if magnitude <= 0.0 || most <= 0.0 {
            0.0
        } else if self.log {
            (1.0 + (magnitude / most).log10() / DECADES).clamp(0.0, 1.0)
        } else {
            magnitude / most
        }
    }

    /// The style of a cell.
    pub fn style(&self, value: f64, kind: CellKind, theme: &Theme, palette: &Palette) -> Style {
        match kind {
            CellKind::Masked => theme.masked,
            CellKind::Nan => theme.nan,
            CellKind::PosInf | CellKind::NegInf => theme.inf,
            CellKind::Plain => theme.text,
            CellKind::Value => {
                let table = match self.map {
                    Map::Diverging => &palette.diverging,
                    Map::Sequential => &palette.sequential,
                };
                match table {
                    None => theme.text,
                    Some(table) => {
                        let (bg, fg) = table[(self.position(value) * 255.0).round() as usize];
                        if bg == Color::Reset { theme.text } else { Style::new().fg(fg).bg(bg) }
                    }
                }
            }
        }
    }

    /// How much of the scale a value takes, 0 to 1: its magnitude on a diverging one.
    pub fn magnitude(&self, value: f64) -> f64 {
        let t = self.position(value);
        match self.map {
            Map::Diverging => (2.0 * t - 1.0).abs(),
            Map::Sequential => t,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_in_the_middle_and_ends_are_at_the_ends() {
        let s = Scale::diverging(-1.0, 4.0);
        for (value, t) in [(0.0, 0.5), (-4.0, 0.0), (4.0, 1.0), (-1.0, 0.375), (9.0, 1.0)] {
            assert!((s.position(value) - t).abs() < 1e-12, "{value}");
        }
        let s = Scale::sequential(0.0, 1.0);
        assert!((s.position(0.25) - 0.25).abs() < 1e-12);
        let s = Scale::diverging(-1.0, 1.0).with_log(true);
        assert!((s.position(1e-3) - 0.75).abs() < 1e-12);
        assert!((s.position(-1e-9) - 0.5).abs() < 1e-12);
        assert!((s.least() - 1e-6).abs() < 1e-18);
        assert!((s.position(s.least()) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn odd_ranges_do_not_break() {
        for (min, max) in
            [(0.0, 0.0), (f64::NAN, f64::NAN), (f64::NEG_INFINITY, f64::INFINITY), (-f64::MAX, f64::MAX), (1.0, -1.0)]
        {
            for log in [false, true] {
                for s in [Scale::diverging(min, max), Scale::sequential(min, max)] {
                    for v in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 5e-324] {
                        let t = s.with_log(log).position(v);
                        assert!((0.0..=1.0).contains(&t), "{s:?} {v} {t}");
                    }
                }
            }
        }
    }

    #[test]
    fn text_reads_on_every_ground() {
        for name in crate::app::config::THEMES {
            for depth in [Depth::Ansi16, Depth::Ansi256, Depth::True] {
                let p = Palette::new(&Theme::new(name, depth));
                for table in [p.diverging, p.sequential].into_iter().flatten() {
                    for (bg, fg) in table.iter() {
                        let (Some(a), Some(b)) = (super::super::theme::rgb(*bg), super::super::theme::rgb(*fg)) else {
                            assert_eq!(bg, fg, "both default");
                            continue;
                        };
                        let sum = |c: [u8; 3]| c.iter().map(|v| i32::from(*v)).sum::<i32>();
                        assert!((sum(a) - sum(b)).abs() > 150, "{bg:?} {fg:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn special_cells_have_the_themes_styles() {
        let theme = Theme::new("dark", Depth::True);
        let palette = Palette::new(&theme);
        let s = Scale::diverging(-1.0, 1.0);
        let style = |v: f64, k| s.style(v, k, &theme, &palette);
        assert_eq!(style(0.0, CellKind::Masked), theme.masked);
        assert_eq!(style(0.0, CellKind::of(f64::NAN)), theme.nan);
        assert_eq!(style(0.0, CellKind::of(f64::INFINITY)), theme.inf);
        assert_ne!(style(1.0, CellKind::Value), style(-1.0, CellKind::Value));
    }
}
