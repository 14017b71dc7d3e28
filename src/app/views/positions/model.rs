//! Which positional encoding is shown, and how alike its positions are.

use std::sync::Arc;

use crate::app::navigator::{Navigator, Plane, TableModel};
use crate::app::similar::Similar;
use crate::program::{Name, NodeId, Program, Role, Side, Site, Stack};

/// An encoding: a table of sinusoids or of learned rows, or the sines and cosines of rotary positions.
#[derive(Debug)]
pub struct Encoding {
    /// Its table, a row a position; of rotary positions the cosines.
    pub table: TableModel,
    /// The sines of rotary positions, of the same shape.
    pub sines: Option<NodeId>,
}

impl Encoding {
    /// That of the side one is in, else the first of the run, else of any run.
    pub fn of(nav: &Navigator) -> Option<Self> {
        let here = nav.run_here();
        let others = (0..nav.session.runs.len()).filter(move |r| *r != here);
        std::iter::once(here).chain(others).find_map(|run| Self::of_run(nav, run))
    }

    fn of_run(nav: &Navigator, run: usize) -> Option<Self> {
        let program = &nav.session.runs[run].program;
        let name = nav.view().filter(|v| v.run == run).map(|v| &program.node(v.node).name);
        let side = name.and_then(|n| n.site.side()).unwrap_or(Side::Source);
        let calls = [name.and_then(|n| n.call), None, Some(0)];
        let sides = if side == Side::Source { [Side::Source, Side::Target] } else { [Side::Target, Side::Source] };
        let places = sides.into_iter().flat_map(|side| calls.into_iter().map(move |call| (side, call)));
        places.into_iter().find_map(|(side, call)| Self::at(program, run, side, call))
    }

    fn at(program: &Program, run: usize, side: Side, call: Option<u32>) -> Option<Self> {
        let find = |site: Site, role: Role| program.named(&Name { call, ..Name::of(site).then(role) });
        let stack = if side == Side::Source { Stack::Encoder } else { Stack::Decoder };
        let (node, sines) = match find(Site::Embedding(Some(side)), Role::Positions) {
            Some(table) => (table, None),
            None => (find(Site::Rotary(stack), Role::Cos)?, find(Site::Rotary(stack), Role::Sin)),
        };
        let plane = Plane::around(&program.node(node).shape, 0);
        let symbol = if sines.is_some() { "cos" } else { "PE" };
        let table = TableModel::in_program(program, run, node, symbol.to_owned(), plane);
        Some(Self { table, sines })
    }

    /// Products of all pairs of positions; `None` while they are computed.
    pub fn similar(&self, nav: &Navigator) -> Option<Arc<Similar>> {
        let origin = nav.origin(self.table.run, self.table.node);
        nav.numbers.measures.similar(origin, self.table.plane.window(), self.sines)
    }
}
