//! What each position of a training run sees and must predict, as a table.

use crate::app::navigator::Navigator;
use crate::app::views::stairs;
use crate::app::views::words::{RenderedTable, last_tokens as seen};
use crate::debug::teacher::{self, Shift};
use crate::program::Side;
use crate::session::Table;
use crate::tensor::Axis;
use crate::text::{Lang, Msg, tr};

/// Positions of a training run that are listed.
const MAX_POSITIONS: usize = 256;

/// The row of the position one is at.
pub fn row(nav: &Navigator, run: usize) -> Option<usize> {
    let view = nav.view()?;
    let node = nav.session.runs[view.run].program.node(view.node);
    let shape = node.shape;
    let (_, cell) = nav.cell().filter(|(r, _)| *r == run)?;
    let at = shape.unflat(cell.flat);
    let axis = |want: &[Axis]| shape.axes().iter().position(|a| want.contains(a));
    let position = at[axis(&[Axis::Token, Axis::Query])?];
    let tokens = nav.session.runs[run].inputs.target.as_ref()?.tokens();
    let batch = axis(&[Axis::Batch]).map_or(0, |d| at[d]);
    let source = node.name.site.side() == Some(Side::Source);
    (!source && position < tokens).then_some(batch * tokens + position)
}

/// What each position sees, must predict and predicts.
///
/// # Errors
/// Where no position predicts anything.
pub fn table(nav: &Navigator, run: usize, lang: Lang) -> Result<RenderedTable, Msg> {
    let s = &nav.session;
    let positions = teacher::first_positions(s, run, MAX_POSITIONS);
    if positions.is_empty() {
        return Err(Msg::new("teacher.none"));
    }
    let several = positions.iter().any(|p| p.batch > 0);
    let number = crate::text::NumberFormat::default();
    let predicted: Vec<String> = stairs::predictions(nav, run, None)
        .into_iter()
        .map(|(word, p)| format!("{word} {}", number.format(p)))
        .collect();
    let rows = positions.iter().enumerate().map(|(i, p)| {
        let place = if several { format!("{}.{}", p.batch, p.position) } else { p.position.to_string() };
        let label_at = match (p.label_at, &p.predicts) {
            (_, None) => tr(lang, "teacher.not_counted").to_owned(),
            (None, _) => tr(lang, "teacher.nowhere").to_owned(),
            (Some(0), _) => tr(lang, "teacher.own").to_owned(),
            (Some(1), _) => tr(lang, "teacher.next").to_owned(),
            (Some(by), _) => Msg::new("teacher.at").arg("by", format!("{by:+}")).render(lang),
        };
        vec![
            place,
            seen(&p.sees),
            p.predicts.clone().unwrap_or_else(|| "—".to_owned()),
            label_at,
            predicted.get(i).cloned().unwrap_or_default(),
        ]
    });
    let head = match teacher::shift(s, run) {
        Some(Shift::Next) => "teacher.shift.next",
        Some(Shift::Unshifted) => "teacher.shift.unshifted",
        Some(Shift::Twice) => "teacher.shift.twice",
        Some(Shift::Other) | None => "teacher.shift.other",
    };
    let mut head = tr(lang, head).to_owned();
    if positions.len() == MAX_POSITIONS {
        let first = Msg::new("teacher.first").arg("count", MAX_POSITIONS);
        head = format!("{head} {}", first.render(lang));
    }
    let columns = ["position", "sees", "predicts", "label_at", "predicted"];
    Ok(RenderedTable {
        head,
        table: Table {
            columns: columns.map(|c| tr(lang, &format!("teacher.column.{c}")).to_owned()).into(),
            rows: rows.collect(),
        },
        lines: Vec::new(),
        stairs: vec![(tr(lang, "stairs.positions").to_owned(), stairs::positions(nav, run))],
    })
}
