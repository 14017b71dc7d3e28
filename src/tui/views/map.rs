//! The map of the run: its phases as boxes, blocks with their shapes and steps in them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::measure::mask_scores;
use crate::app::navigator::TreeRow;
use crate::app::views::compare::change;
use crate::app::views::map::{Block, Group, Map};
use crate::program::{NodeId, Op};
use crate::tensor::DType;
use crate::text::{Align, tr};
use crate::tui::colour::Ramp;
use crate::tui::draw::{Look, frame, put};
use crate::tui::scale::Scale;
use crate::tui::shown::{Shown, Target};
use crate::tui::widgets::legend;
use crate::tui::widgets::paragraph::{Span, Wrapped};

/// Narrowest and widest box.
const BOX: (u16, u16) = (34, 64);

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let sentence = Map::sentence(&app.nav, look.lang).render(look.lang);
    let text = Wrapped::new(&[Span::new(sentence, look.theme.text)], area.width, look);
    let head = (text.height() as u16).min(area.height);
    text.render(Rect { height: head, ..area }, buf, 0, None, look);
    let y = area.y + head;
    put(buf, area, (area.x, y), tr(look.lang, "tui.map.legend"), area.width, look.theme.dim, look);
    let body = Rect { y: y + 1, height: area.bottom().saturating_sub(y + 1), ..area };
    boxes(app, body, buf, look, shown);
}

/// The legend of the heat and the boxes; gives the part of the area that they took.
pub(super) fn boxes(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) -> Rect {
    let map = Map::of(&app.nav, &app.edits, &app.breaks, look.lang);
    let most = hottest(app, &map);
    legend(app, most, Rect { height: area.height.min(1), ..area }, buf, look);
    let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let columns = (body.width / BOX.0).max(1);
    let width = (body.width / columns).min(BOX.1);
    // Boxes fill the columns from the top; the current one is on the screen.
    let heights: Vec<u16> = map.groups.iter().map(|g| g.blocks.len() as u16 + 2).collect();
    let mut places: Vec<(usize, u16)> = Vec::new();
    let (mut column, mut used) = (0, 0);
    for height in &heights {
        if used > 0 && used + height > body.height {
            (column, used) = (column + 1, 0);
        }
        places.push((column, used));
        used += height;
    }
    let at = map.groups.iter().position(Group::here).unwrap_or(0);
    let current = places.get(at).map_or(0, |p| p.0);
    let first = (current + 1).saturating_sub(usize::from(columns));
    let (mut lowest, mut right) = (body.y, body.x);
    for (group, (column, top)) in map.groups.iter().zip(places) {
        let Some(column) = column.checked_sub(first).filter(|c| *c < usize::from(columns)) else { continue };
        let place = Rect {
            x: body.x + column as u16 * width,
            y: body.y + top,
            width: width.saturating_sub(1),
            height: (group.blocks.len() as u16 + 2).min(body.height.saturating_sub(top)),
        };
        (lowest, right) = (lowest.max(place.bottom()), right.max(place.right()));
        let inside = frame(buf, place, &group.title, group.here(), look);
        for (y, block) in (inside.y..inside.bottom()).zip(&group.blocks) {
            let line = Rect { y, height: 1, ..inside };
            self::block(app, block, most, line, buf, look);
            shown.hits.push((line, Target::Row(TreeRow::Step(block.steps.0))));
        }
    }
    Rect { width: right - area.x, height: lowest - area.y, ..area }
}

/// The largest heat of the map: the other end of its colours is 0.
pub(in crate::tui) fn hottest(app: &App, map: &Map) -> f64 {
    map.groups.iter().flat_map(|g| &g.blocks).map(|b| norm(app, b)).fold(0.0, f64::max)
}

/// What the colours of blocks mean: `mean norm 0 ▇▇▇▇ 4.21`.
pub(in crate::tui) fn legend(app: &App, most: f64, line: Rect, buf: &mut Buffer, look: &Look) {
    let key = if shows_change(app) { "tui.map.change" } else { "tui.map.norms" };
    let used = put(buf, line, (line.x, line.y), tr(look.lang, key), line.width, look.theme.dim, look) + 1;
    let rest = Rect { x: line.x + used, width: line.width.saturating_sub(used), ..line };
    legend::render(rest, buf, &Scale::positive(0.0, most), app.ui.settings.digits, look);
}

/// Whether blocks are coloured by how much they changed: with edits, or a comparison.
fn shows_change(app: &App) -> bool {
    app.edits.count(&app.nav) > 0 || app.views.compare.is_there(&app.nav)
}

/// The heat of a block: the mean norm of what it gives, or with edits or a comparison how much that changed; 0 where it
/// is given (weights, ids) and not computed.
fn norm(app: &App, block: &Block) -> f64 {
    if shows_change(app) {
        let change = |(run, node)| change(&app.nav, &app.views.compare, &app.edits, run, node);
        return block.result.and_then(change).filter(|x| x.is_finite()).unwrap_or(0.0);
    }
    // The large negative numbers of a mask say nothing of a block.
    let computed = |(run, node): &(usize, NodeId)| {
        let program = &app.nav.session.runs[*run].program;
        let n = program.node(*node);
        !matches!(n.op, Op::Leaf(_)) && n.dtype == DType::Float && mask_scores(program, *node) != Some(*node)
    };
    let norm = block.result.filter(computed).and_then(|(run, node)| app.nav.mean_norm(run, node));
    norm.filter(|x| x.is_finite()).unwrap_or(0.0)
}

/// `▣ attention  4×4   17–30`, on the heat of its norm.
pub(in crate::tui) fn block(app: &App, block: &Block, most: f64, line: Rect, buf: &mut Buffer, look: &Look) {
    let theme = &look.theme;
    let style = if block.here { theme.text.patch(theme.cursor) } else { theme.text };
    let mark = if block.breakpoint {
        look.glyphs.breakpoint
    } else if block.here {
        look.glyphs.here
    } else {
        " "
    };
    let steps = if block.steps.0 == block.steps.1 {
        block.labels.0.clone()
    } else {
        format!("{}–{}", block.labels.0, block.labels.1)
    };
    let mut x = line.x;
    // The heat: the norm of the block's result.
    let share = if most > 0.0 { norm(app, block) / most } else { 0.0 };
    if let Some((ground, _)) = look.palette.at(Ramp::Sequential, share) {
        put(buf, line, (x, line.y), "  ", 2, theme.text.bg(ground), look);
    } else {
        let shades = look.glyphs.shades;
        let shade = shades[((share * (shades.len() - 1) as f64).round() as usize).min(shades.len() - 1)];
        put(buf, line, (x, line.y), shade, 1, theme.text, look);
    }
    x += 3;
    x += put(buf, line, (x, line.y), mark, 1, theme.accent, look);
    let name = tr(look.lang, block.kind.key());
    let room = line.right().saturating_sub(x).saturating_sub(look.width(&steps) + 1);
    let text = format!(" {name} ");
    let used = put(buf, line, (x, line.y), &text, room, style, look);
    x += used;
    if block.edited {
        x += put(buf, line, (x, line.y), look.glyphs.changed, 1, theme.changed, look) + 1;
    }
    let room = room.saturating_sub(used + 2);
    put(buf, line, (x, line.y), &look.cut(&block.shape, room), room, theme.dim, look);
    let end = x + look.width(&look.cut(&block.shape, room));
    let width = look.width(&steps);
    let at = line.right().saturating_sub(width);
    for x in end + 1..at.saturating_sub(1) {
        put(buf, line, (x, line.y), "·", 1, theme.border, look);
    }
    put(buf, line, (at, line.y), &look.fit(&steps, width, Align::Right), width, theme.dim, look);
}
