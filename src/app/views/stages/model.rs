//! Training next to inference, stage by stage, as a table.

use crate::app::navigator::Navigator;
use crate::app::views::words::RenderedTable;
use crate::session::stages;
use crate::text::{Lang, Msg};

/// The stages of the scenario's runs.
///
/// # Errors
/// Where there is nothing to put next to each other, or a run cannot run.
pub fn table(nav: &Navigator, _: usize, lang: Lang) -> Result<RenderedTable, Msg> {
    match stages(&nav.session, nav.run_here(), lang) {
        Ok(Some(table)) => Ok(RenderedTable { table, ..RenderedTable::default() }),
        Ok(None) => Err(Msg::new("stages.none")),
        Err(e) => Err(Msg::new("cli.cannot_run").arg("why", e)),
    }
}
