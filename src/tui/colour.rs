//! Ramps: the colours that scales run through, in the depth that a terminal has.

use ratatui::style::Color;

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
pub enum Ramp {
    /// Blue below zero, red above, the ground in the middle.
    Diverging,
    /// From little to much; little is near the ground.
    Sequential,
}

type Table = [(Color, Color); 256];

/// The ramps in the colours of a terminal, each with the text colour that reads on it; made once a theme.
#[derive(Clone, Debug, PartialEq)]
pub struct Palette {
    diverging: Option<Box<Table>>,
    sequential: Option<Box<Table>>,
    /// Masked cells of a picture.
    pub masked: Option<Color>,
    /// Colours of the curves of a chart, the first one first.
    pub curves: [Option<Color>; 6],
}

/// Hand-picked steps of the 256 colours, from −1 over 0 to 1, on a dark ground.
const DIVERGING_256_DARK: [u8; 15] = [39, 33, 32, 26, 25, 24, 17, 235, 52, 88, 124, 160, 167, 203, 209];
/// The same on a light ground.
const DIVERGING_256_LIGHT: [u8; 15] = [20, 26, 32, 74, 110, 152, 189, 255, 224, 217, 210, 203, 167, 160, 124];
/// From 0 to 1 on a dark ground: near viridis.
const SEQUENTIAL_256_DARK: [u8; 13] = [235, 53, 54, 60, 61, 25, 31, 36, 35, 71, 113, 149, 227];
/// The same on a light ground: near yellow–green–blue.
const SEQUENTIAL_256_LIGHT: [u8; 13] = [255, 230, 229, 193, 157, 115, 79, 43, 37, 31, 25, 19, 17];

impl Palette {
    /// The colours of `theme`.
    pub fn new(theme: &Theme) -> Self {
        let (depth, dark) = (theme.depth, theme.dark);
        let table = |f: &dyn Fn(f64) -> Option<Color>| {
            (depth != Depth::None).then(|| {
                let mut table = [(Color::Reset, Color::Reset); 256];
                for (i, slot) in table.iter_mut().enumerate() {
                    if let Some(bg) = f(i as f64 / 255.0) {
                        *slot = (bg, contrasting(bg, depth));
                    }
                }
                Box::new(table)
            })
        };
        let step = |steps: &[u8], t: f64| {
            let i = (t * (steps.len() - 1) as f64).round() as usize;
            Some(Color::Indexed(steps[i.min(steps.len() - 1)]))
        };
        let (diverging, sequential) = match depth {
            // Sixteen colours are too few to be near to anything: a few clear levels, each with its sign.
            Depth::Ansi16 => (
                table(&|t| match t {
                    ..0.22 => Some(Color::Blue),
                    ..0.42 => Some(Color::Cyan),
                    ..0.58 => None,
                    ..0.78 => Some(Color::Yellow),
                    _ => Some(Color::Red),
                }),
                table(&|t| match t {
                    ..0.12 => None,
                    ..0.35 => Some(Color::Blue),
                    ..0.6 => Some(Color::Cyan),
                    ..0.82 => Some(Color::Green),
                    _ => Some(Color::Yellow),
                }),
            ),
            Depth::Ansi256 if dark => {
                (table(&|t| step(&DIVERGING_256_DARK, t)), table(&|t| step(&SEQUENTIAL_256_DARK, t)))
            }
            Depth::Ansi256 => (table(&|t| step(&DIVERGING_256_LIGHT, t)), table(&|t| step(&SEQUENTIAL_256_LIGHT, t))),
            _ => (table(&|t| depth.color(diverging(t, dark))), table(&|t| depth.color(sequential(t, dark)))),
        };
        let masked = if dark { Color::Rgb(44, 44, 50) } else { Color::Rgb(226, 226, 230) };
        let curves: [(u8, u8, u8); 6] = if dark {
            [(86, 204, 242), (255, 170, 60), (120, 220, 120), (250, 110, 130), (205, 150, 255), (235, 225, 120)]
        } else {
            [(0, 105, 190), (205, 85, 0), (20, 130, 50), (190, 20, 60), (120, 50, 180), (130, 110, 0)]
        };
        Self {
            diverging,
            sequential,
            masked: if depth == Depth::Ansi16 { None } else { depth.color(masked) },
            curves: curves.map(|(r, g, b)| depth.color(Color::Rgb(r, g, b))),
        }
    }

    /// Ground and text colour at `t`, 0 to 1; `None` where there are no colours.
    pub fn at(&self, ramp: Ramp, t: f64) -> Option<(Color, Color)> {
        let table = match ramp {
            Ramp::Diverging => self.diverging.as_ref(),
            Ramp::Sequential => self.sequential.as_ref(),
        }?;
        Some(table[(t.clamp(0.0, 1.0) * 255.0).round() as usize])
    }
}

fn mix(a: (f64, f64, f64), b: (u8, u8, u8), t: f64) -> Color {
    let m = |a: f64, b: u8| (a + (f64::from(b) - a) * t).round() as u8;
    Color::Rgb(m(a.0, b.0), m(a.1, b.1), m(a.2, b.2))
}

/// colorous' red–blue with its middle faded into the ground, so that what is near zero is quiet.
fn diverging(t: f64, dark: bool) -> Color {
    let map = |t: f64| colorous::RED_BLUE.eval_continuous(1.0 - t).into_tuple();
    let s = (2.0 * t - 1.0).abs();
    if dark {
        let end = map(if t < 0.5 { 0.12 } else { 0.88 });
        mix((30.0, 30.0, 34.0), end, s)
    } else {
        let end = map(if t < 0.5 { 0.08 } else { 0.92 });
        mix((250.0, 250.0, 250.0), end, s)
    }
}

/// Viridis on a dark ground, yellow–green–blue on a light one; the lowest eighth comes out of the ground.
fn sequential(t: f64, dark: bool) -> Color {
    let fade = (t * 8.0).min(1.0);
    if dark {
        mix((30.0, 30.0, 34.0), colorous::VIRIDIS.eval_continuous(t).into_tuple(), fade)
    } else {
        mix((252.0, 252.0, 250.0), colorous::YELLOW_GREEN_BLUE.eval_continuous(t * 0.92).into_tuple(), fade)
    }
}

/// Black or white, whichever reads on `ground` (WCAG relative luminance).
pub(super) fn contrasting(ground: Color, depth: Depth) -> Color {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::rgb;

    #[test]
    fn text_reads_on_every_ground() {
        for name in crate::app::settings::THEMES {
            for depth in [Depth::Ansi16, Depth::Ansi256, Depth::True] {
                let p = Palette::new(&Theme::new(name, depth));
                for table in [p.diverging, p.sequential].into_iter().flatten() {
                    for (bg, fg) in table.iter() {
                        let (Some(a), Some(b)) = (rgb(*bg), rgb(*fg)) else {
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
    fn the_sign_is_seen_at_every_depth_and_zero_is_quiet() {
        for name in ["dark", "light", "high-contrast"] {
            for depth in [Depth::Ansi16, Depth::Ansi256, Depth::True] {
                let theme = Theme::new(name, depth);
                let p = Palette::new(&theme);
                let at = |t| p.at(Ramp::Diverging, t).map(|c| c.0);
                for t in [0.05, 0.2, 0.35, 0.4] {
                    assert_ne!(at(t), at(1.0 - t), "{name} {depth:?} {t}");
                }
                // Near zero the colour is near the ground: light on light, dark on dark.
                if let Some(c) = at(0.5).and_then(rgb) {
                    let sum: u32 = c.iter().map(|v| u32::from(*v)).sum();
                    assert!(if theme.dark { sum < 200 } else { sum > 650 }, "{name} {depth:?} {c:?}");
                }
            }
        }
    }
}
