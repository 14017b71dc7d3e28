//! A clock: a circle with one hand, in dots of braille; an arrow where there is no braille.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::chart::DOTS;
use crate::tui::draw::{Look, put};

/// Characters that a clock takes: columns and lines.
pub const SIZE: (u16, u16) = (8, 4);

/// Draws a clock whose hand is turned by the angle of this cosine and sine, from the right and counterclockwise.
pub fn render((cos, sin): (f64, f64), area: Rect, buf: &mut Buffer, (rim, hand): (Style, Style), look: &Look) {
    let area = Rect { width: area.width.min(SIZE.0), height: area.height.min(SIZE.1), ..area };
    if area.width < SIZE.0 || area.height < SIZE.1 || !cos.is_finite() || !sin.is_finite() {
        return;
    }
    if !look.glyphs.braille {
        // Eight directions, from the right on.
        const ARROWS: [&str; 8] = ["-->", "/^", "^", "^\\", "<--", "/v", "v", "v\\"];
        let eighth = (libm::atan2(sin, cos) / std::f64::consts::FRAC_PI_4).round().rem_euclid(8.0) as usize;
        put(buf, area, (area.x + 2, area.y + 1), ARROWS[eighth.min(7)], 4, hand, look);
        return;
    }
    let (w, h) = (usize::from(SIZE.0) * 2, usize::from(SIZE.1) * 4);
    let (mx, my) = ((w - 1) as f64 / 2.0, (h - 1) as f64 / 2.0);
    let radius = mx.min(my);
    // 1: the rim, 2: the hand.
    let mut dots = vec![0_u8; w * h];
    let mut set = |x: f64, y: f64, what: u8| {
        let (x, y) = ((mx + x).round(), (my - y).round());
        if x >= 0.0 && y >= 0.0 && (x as usize) < w && (y as usize) < h {
            let slot = &mut dots[y as usize * w + x as usize];
            *slot = what.max(*slot);
        }
    };
    for i in 0..96 {
        let angle = f64::from(i) / 96.0 * std::f64::consts::TAU;
        set(radius * libm::cos(angle), radius * libm::sin(angle), 1);
    }
    // A length other than 1 (scaled rotary positions) would leave the clock.
    let length = cos.hypot(sin).max(f64::MIN_POSITIVE);
    for i in 0..=32 {
        let r = f64::from(i) / 32.0 * (radius - 1.0);
        set(r * cos / length, r * sin / length, 2);
    }
    for y in 0..usize::from(SIZE.1) {
        for x in 0..usize::from(SIZE.0) {
            let (mut glyph, mut most) = (0_u8, 0);
            for (i, column) in DOTS.iter().enumerate() {
                for (j, dot) in column.iter().enumerate() {
                    let what = dots[(4 * y + j) * w + 2 * x + i];
                    if what > 0 {
                        glyph |= dot;
                        most = most.max(what);
                    }
                }
            }
            if let Some(c) = char::from_u32(0x2800 + u32::from(glyph)).filter(|_| glyph != 0) {
                let style = if most == 2 { hand } else { rim };
                put(buf, area, (area.x + x as u16, area.y + y as u16), &c.to_string(), 1, style, look);
            }
        }
    }
}
