//! Which positional encoding is shown.

use crate::app::navigator::{Navigator, Plane, TableModel};

/// The first positional encoding of the run one is in: a table of sinusoids or of learned rows, or the cosines of
/// rotary positions.
pub fn encoding(nav: &Navigator) -> Option<TableModel> {
    let run = nav.view()?.run;
    let program = &nav.session.runs[run].program;
    let paths = [
        "embed.source.positions",
        "embed.target.positions",
        "encoder.rotary.cos",
        "decoder.rotary.cos",
        "gen.0.embed.target.positions",
        "gen.0.decoder.rotary.cos",
    ];
    let node = paths.iter().find_map(|p| program.find(p))?;
    let plane = Plane::around(&program.node(node).shape, 0);
    Some(TableModel::of(run, node, "PE".to_owned(), plane))
}
