//! From numbers to places on a ramp. Whoever colours a number holds a [`Scale`], and the legend on the screen is drawn
//! from that same scale.

use ratatui::style::{Color, Style};

use super::colour::{CellKind, Palette, Ramp};
use super::theme::Theme;
pub use crate::app::measure::Kind;
use crate::trace::stats::Tally;

/// Numbers that have no place on a ramp, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// NaN.
    pub nan: u64,
    /// +∞.
    pub pos_inf: u64,
    /// −∞ that is no mask.
    pub neg_inf: u64,
    /// Masked cells.
    pub masked: u64,
}

/// A range, what its numbers are, and what is not on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scale {
    /// What the numbers are.
    pub kind: Kind,
    /// Smallest finite, unmasked number; above `max` where there is none.
    pub min: f64,
    /// Largest finite, unmasked number.
    pub max: f64,
    /// Whether magnitudes count by their logarithm.
    pub log: bool,
    /// What every probability of a row would be if all were equal.
    pub uniform: Option<f64>,
    /// What has no place on the ramp.
    pub apart: Apart,
    /// The cells are still being read: nothing is known of the range yet.
    pub pending: bool,
}

/// Decades that a logarithmic scale spans below its largest magnitude.
const DECADES: f64 = 6.0;

impl Scale {
    /// The scale of cells that were all read.
    pub fn of(kind: Kind, tally: &Tally) -> Self {
        let (min, max) = tally.range().unwrap_or((0.0, 0.0));
        let Tally { nan, pos_inf, neg_inf, masked, .. } = *tally;
        Self { kind, min, max, apart: Apart { nan, pos_inf, neg_inf, masked }, ..Self::default() }
    }

    /// A scale around 0.
    pub fn signed(min: f64, max: f64) -> Self {
        Self { kind: Kind::Signed, min, max, ..Self::default() }
    }

    /// A scale from `min` to `max`.
    pub fn positive(min: f64, max: f64) -> Self {
        Self { kind: Kind::Positive, min, max, ..Self::default() }
    }

    /// A scale whose cells are still being read.
    pub fn pending(kind: Kind) -> Self {
        Self { kind, pending: true, ..Self::default() }
    }

    /// The same scale, logarithmic or not.
    #[must_use]
    pub fn with_log(mut self, log: bool) -> Self {
        self.log = log;
        self
    }

    /// The same scale with the probability that all of `n` equal ones would have.
    #[must_use]
    pub fn with_uniform(mut self, n: usize) -> Self {
        self.uniform = (self.kind == Kind::Probability && n > 1).then(|| 1.0 / n as f64);
        self
    }

    /// The ends of the ramp.
    pub fn ends(&self) -> (f64, f64) {
        match self.kind {
            Kind::Signed => {
                let reach = self.min.abs().max(self.max.abs());
                let reach = if reach.is_finite() { reach } else { f64::MAX };
                (-reach, reach)
            }
            Kind::Probability => (0.0, self.max),
            Kind::Positive => (self.min.min(0.0), self.max),
        }
    }

    /// Which colours it runs through.
    pub fn ramp(&self) -> Ramp {
        if self.kind == Kind::Signed { Ramp::Diverging } else { Ramp::Sequential }
    }

    /// Where `value` is on the ramp, 0 to 1; 0.5 is zero on a signed scale.
    pub fn position(&self, value: f64) -> f64 {
        let (low, high) = self.ends();
        let t = match self.kind {
            Kind::Signed => 0.5 + 0.5 * self.share(value.abs(), high).copysign(value),
            _ if self.log => self.share(value, high),
            _ => {
                // Halved first: the difference of two large numbers may not be a number.
                let span = high / 2.0 - low / 2.0;
                if span > 0.0 { (value / 2.0 - low / 2.0) / span } else { 0.0 }
            }
        };
        if t.is_nan() { 0.5 } else { t.clamp(0.0, 1.0) }
    }

    /// The magnitude below which everything has one colour: 0 on a linear scale.
    pub fn least(&self) -> f64 {
        if self.log { self.ends().1 * libm::exp10(-DECADES) } else { 0.0 }
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

    /// The style of a cell with text on it.
    pub fn style(&self, value: f64, kind: CellKind, theme: &Theme, palette: &Palette) -> Style {
        match kind {
            // The ground that masked cells have in pictures.
            CellKind::Masked => palette.masked.map_or(theme.masked, |ground| theme.masked.bg(ground)),
            CellKind::Nan => theme.nan,
            CellKind::PosInf | CellKind::NegInf => theme.inf,
            CellKind::Plain => theme.text,
            CellKind::Value if self.pending => theme.text,
            CellKind::Value => match palette.at(self.ramp(), self.position(value)) {
                Some((bg, fg)) if bg != Color::Reset => Style::new().fg(fg).bg(bg),
                _ => theme.text,
            },
        }
    }

    /// The colour of a pixel; `None` for the terminal's own ground.
    pub fn pixel(&self, value: f64, kind: CellKind, theme: &Theme, palette: &Palette) -> Option<Color> {
        match kind {
            CellKind::Masked => palette.masked,
            CellKind::Nan => theme.nan.bg,
            CellKind::PosInf | CellKind::NegInf => theme.inf.bg,
            CellKind::Plain => None,
            CellKind::Value if self.pending => None,
            CellKind::Value => {
                palette.at(self.ramp(), self.position(value)).map(|c| c.0).filter(|c| *c != Color::Reset)
            }
        }
    }

    /// How much of the ramp a value takes, 0 to 1: its magnitude on a signed one.
    pub fn magnitude(&self, value: f64) -> f64 {
        let t = self.position(value);
        if self.kind == Kind::Signed { (2.0 * t - 1.0).abs() } else { t }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::Depth;

    #[test]
    fn zero_is_in_the_middle_and_ends_are_at_the_ends() {
        let s = Scale::signed(-1.0, 4.0);
        for (value, t) in [(0.0, 0.5), (-4.0, 0.0), (4.0, 1.0), (-1.0, 0.375), (9.0, 1.0)] {
            assert!((s.position(value) - t).abs() < 1e-12, "{value}");
        }
        let s = Scale::positive(0.0, 1.0);
        assert!((s.position(0.25) - 0.25).abs() < 1e-12);
        let s = Scale::signed(-1.0, 1.0).with_log(true);
        assert!((s.position(1e-3) - 0.75).abs() < 1e-12);
        assert!((s.position(-1e-9) - 0.5).abs() < 1e-12);
        assert!((s.least() - 1e-6).abs() < 1e-18);
        assert!((s.position(s.least()) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_scale_has_the_range_and_the_counts_of_its_cells() {
        let cells = [0.2, f64::NAN, 0.7, f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, 0.1];
        let mut tally = Tally::of(cells);
        tally.take(-1e9, true);
        let s = Scale::of(Kind::Probability, &tally).with_uniform(4);
        assert_eq!((s.min, s.max, s.ends(), s.uniform), (0.1, 0.7, (0.0, 0.7), Some(0.25)));
        assert_eq!(s.apart, Apart { nan: 1, pos_inf: 2, neg_inf: 1, masked: 1 });
        assert_eq!(Scale::of(Kind::Signed, &tally).with_uniform(4).uniform, None);
    }

    #[test]
    fn odd_ranges_do_not_break() {
        for (min, max) in
            [(0.0, 0.0), (f64::NAN, f64::NAN), (f64::NEG_INFINITY, f64::INFINITY), (-f64::MAX, f64::MAX), (1.0, -1.0)]
        {
            for log in [false, true] {
                for kind in [Kind::Signed, Kind::Positive, Kind::Probability] {
                    let s = Scale { kind, min, max, ..Scale::default() }.with_log(log);
                    for v in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 5e-324] {
                        let t = s.position(v);
                        assert!((0.0..=1.0).contains(&t), "{s:?} {v} {t}");
                    }
                }
            }
        }
    }

    #[test]
    fn special_cells_have_the_themes_styles() {
        let theme = Theme::new("dark", Depth::True);
        let palette = Palette::new(&theme);
        let s = Scale::signed(-1.0, 1.0);
        let style = |v: f64, k| s.style(v, k, &theme, &palette);
        let masked = style(0.0, CellKind::Masked);
        assert_eq!((masked.fg, masked.bg), (theme.masked.fg, palette.masked));
        assert_eq!(style(0.0, CellKind::of(f64::NAN)), theme.nan);
        assert_eq!(style(0.0, CellKind::of(f64::INFINITY)), theme.inf);
        assert_ne!(style(1.0, CellKind::Value), style(-1.0, CellKind::Value));
        assert_eq!(s.pixel(0.0, CellKind::Nan, &theme, &palette), theme.nan.bg);
    }
}
