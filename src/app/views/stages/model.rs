//! Training next to inference, stage by stage, as a table, and as two staircases.

use crate::app::navigator::Navigator;
use crate::app::views::stairs;
use crate::app::views::words::RenderedTable;
use crate::session::{RunKind, stages};
use crate::text::{Lang, Msg, tr};

/// The stages of the scenario's runs.
///
/// # Errors
/// Where there is nothing to put next to each other, or a run cannot run.
pub fn table(nav: &Navigator, _: usize, lang: Lang) -> Result<RenderedTable, Msg> {
    match stages(&nav.session, nav.run_here(), lang) {
        Ok(Some(table)) => {
            let run = |kind| nav.session.runs.iter().position(|r| r.kind == kind);
            let mut stairs = Vec::new();
            if let Some(run) = run(RunKind::Training) {
                stairs.push((tr(lang, "stairs.positions").to_owned(), stairs::positions(nav, run)));
            }
            if let Some(run) = run(RunKind::Inference) {
                let cached = nav.session.calls_of(run).is_some_and(|(_, cached)| cached);
                let key = if cached { "stairs.cache" } else { "stairs.calls" };
                stairs.push((tr(lang, key).to_owned(), stairs::calls(nav, run)));
            }
            Ok(RenderedTable { table, stairs, ..RenderedTable::default() })
        }
        Ok(None) => Err(Msg::new("stages.none")),
        Err(e) => Err(Msg::new("cli.cannot_run").arg("why", e)),
    }
}
