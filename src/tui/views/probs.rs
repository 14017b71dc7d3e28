//! Probabilities of one row as bars.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::app::App;
use crate::app::views::probs::Distribution;
use crate::text::Msg;
use crate::tui::draw::{Look, put};
use crate::tui::pictures::nothing;
use crate::tui::screen::Shown;
use crate::tui::widgets::bars::{Bar, Bars, top};

/// The probabilities of one row as bars: of the softmax one is at, else of the output.
pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look, _: &mut Shown) {
    let d = &app.nav;
    let Some(shown) = Distribution::of(d) else {
        return nothing(area, buf, "tui.no_probs", look);
    };
    let (run, node, values) = (shown.run, shown.node, &shown.values);
    let node_here = d.session.runs[run].program.node(node);
    let (shape, width) = (node_here.shape, values.len());
    let labels = d.session.axis_labels(run, node, shape.rank() - 1, 0);
    let best = top(values, usize::from(area.height.max(1)) * 4);
    let order: Vec<usize> = if !app.ui.settings.sorted && width <= usize::from(area.height) * 4 && width <= best.len() {
        (0..width).collect()
    } else {
        best
    };
    let max = values.iter().copied().fold(0.0, f64::max);
    let bars: Vec<Bar> = order
        .iter()
        .map(|&c| Bar {
            label: labels.get(c).unwrap_or_else(|| c.to_string()),
            value: values[c],
            marked: values[c] == max,
        })
        .collect();
    let title = Msg::new("tui.probs_title").arg("path", &node_here.path).arg("token", shown.token(d)).render(look.lang);
    put(buf, area, (area.x, area.y), &title, area.width, look.theme.title, look);
    let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    Bars { bars: &bars, full: 1.0, digits: app.ui.settings.digits, selected: None, offset: 0 }.render(body, buf, look);
}
