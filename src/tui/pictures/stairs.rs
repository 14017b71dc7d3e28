//! Staircases: a line for each call or position, a cell for each token that it reads.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::grid;
use crate::app::views::words::Stair;
use crate::text::Align;
use crate::tui::colour::Ramp;
use crate::tui::draw::{Look, follow, put};
use crate::tui::theme::Depth;

/// Widest token.
const TOKEN: u16 = 12;
/// Least width of each of two staircases side by side.
const SIDE: u16 = 56;

fn is_beside(stairs: &[(String, Vec<Stair>)], width: u16) -> bool {
    stairs.len() == 2 && width >= 2 * SIDE
}

/// Lines that they would like, an empty one above included.
pub(super) fn wanted(stairs: &[(String, Vec<Stair>)], width: u16) -> u16 {
    let heights = stairs.iter().filter(|(_, steps)| !steps.is_empty()).map(|(_, steps)| steps.len() + 2);
    let lines = if is_beside(stairs, width) { heights.max() } else { heights.reduce(|a, b| a + b) };
    u16::try_from(lines.unwrap_or(0)).unwrap_or(u16::MAX)
}

/// Draws them, side by side where there is room; `here` is the step pointed out.
pub(super) fn draw(stairs: &[(String, Vec<Stair>)], here: Option<usize>, area: Rect, buf: &mut Buffer, look: &Look) {
    if is_beside(stairs, area.width) {
        let half = area.width / 2;
        for (i, (title, steps)) in stairs.iter().enumerate() {
            let place = Rect { x: area.x + i as u16 * half, width: half - 2, ..area };
            one(title, steps, here, place, buf, look);
        }
        return;
    }
    let mut y = area.y;
    for (i, (title, steps)) in stairs.iter().enumerate().filter(|(_, s)| !s.1.is_empty()) {
        let left = area.bottom().saturating_sub(y);
        // What is left is shared with those below.
        let share = left / (stairs.len() - i).max(1) as u16;
        let below = wanted(&stairs[i + 1..], area.width);
        let height = (steps.len() as u16 + 2).min(share.max(left.saturating_sub(below)));
        one(title, steps, here, Rect { y, height, ..area }, buf, look);
        y += height;
    }
}

fn one(title: &str, steps: &[Stair], here: Option<usize>, area: Rect, buf: &mut Buffer, look: &Look) {
    if area.height < 3 || steps.is_empty() {
        return;
    }
    put(buf, area, (area.x, area.y + 1), title, area.width, look.theme.title, look);
    let height = usize::from(area.height - 2).min(steps.len());
    let at = here.unwrap_or(0).min(steps.len() - 1);
    let first = follow(at.saturating_sub(height / 2), at, height, steps.len());
    let all = || steps.iter().flat_map(|s| s.tokens.iter().chain(s.next.iter().map(|n| &n.0)));
    let width = all().map(|t| look.width(t)).max().unwrap_or(1).clamp(1, TOKEN) + 3;
    let label = steps.iter().map(|s| look.width(&s.label)).max().unwrap_or(1) + 1;
    let note = steps.iter().map(|s| look.width(&s.note)).max().unwrap_or(0);
    let has_next = steps.iter().any(|s| !s.next.is_empty());
    // The places of the tokens; of more than fit, the last ones.
    let room = area.width.saturating_sub(label + note + 2 + if has_next { width + 1 } else { 0 });
    let fit = usize::from(room / width).max(1);
    for (y, (i, step)) in (area.y + 2..).zip(steps.iter().enumerate().skip(first).take(height)) {
        let line = Rect { y, height: 1, ..area };
        let style = if here == Some(i) { look.theme.accent } else { look.theme.label };
        put(buf, line, (line.x, y), &look.fit(&step.label, label - 1, Align::Right), label, style, look);
        let skipped = step.tokens.len().saturating_sub(fit);
        let mut x = line.x + label;
        if skipped > 0 {
            put(buf, line, (x - 1, y), look.glyphs.more[0], 1, look.theme.accent, look);
        }
        for (k, token) in step.tokens.iter().enumerate().skip(skipped) {
            cell(token, if k < step.old { Tread::Old } else { Tread::New }, (x, y), width, line, buf, look);
            x += width;
        }
        for (token, right) in &step.next {
            x += 1;
            cell(token, if *right { Tread::Right } else { Tread::Wrong }, (x, y), width, line, buf, look);
            x += width;
        }
        put(buf, line, (x + 1, y), &step.note, line.right().saturating_sub(x + 1), look.theme.text, look);
    }
}

/// What a cell of a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tread {
    Old,
    New,
    Right,
    Wrong,
}

fn cell(token: &str, tread: Tread, (x, y): (u16, u16), width: u16, area: Rect, buf: &mut Buffer, look: &Look) {
    let theme = &look.theme;
    let lit = |t: f64| match look.palette.at(Ramp::Sequential, t) {
        Some((bg, fg)) => Style::new().bg(bg).fg(fg),
        None => theme.text.add_modifier(Modifier::BOLD),
    };
    let style = match tread {
        Tread::Old => look.palette.masked.map_or(theme.dim, |c| theme.dim.bg(c)),
        Tread::New => lit(0.55),
        Tread::Right => theme.good.add_modifier(Modifier::BOLD),
        Tread::Wrong => theme.bad,
    };
    let place = Rect { x, y, width: width - 1, height: 1 }.intersection(area);
    grid::fill(buf, place, style);
    // Without colours the new ones have brackets.
    let mark = match tread {
        Tread::New if theme.depth == Depth::None => ("[", "]"),
        Tread::Old | Tread::New => (" ", " "),
        Tread::Right => (look.glyphs.passed, ""),
        Tread::Wrong => (look.glyphs.failed, ""),
    };
    let room = (width - 1).saturating_sub(look.width(mark.0) + look.width(mark.1));
    let text = format!("{}{}{}", mark.0, look.cut(token, room), mark.1);
    put(buf, place, (x, y), &text, place.width, style, look);
}
