//! Going to a place by name: symbols, paths, sections, titles.

use super::Navigator;
use crate::app::args::Place;
use crate::session::locate::{Context, Located, locate, split_run};
use crate::text::{Lang, Msg, escape};
use crate::walkthrough::{Step, View};

/// Most other tensors of the same name that are listed.
const MAX_OTHERS: usize = 4;

impl Navigator {
    /// To a tensor by symbol, path, section or part of a title, and a cell of it. `run:name` asks for that run's. The
    /// index is that of the whole tensor or of what the symbol names; a batch of 1 may be left out. Returns which
    /// other tensors are called the same.
    ///
    /// # Errors
    /// Nothing is called so, or it has no such cell.
    pub fn to_place(&mut self, place: &Place) -> Result<Option<Msg>, Msg> {
        let (only, name) = match split_run(&self.session, &place.name) {
            Ok(parts) => parts,
            // Perhaps a part of a title.
            Err(_) => (None, place.name.as_str()),
        };
        let here = self.state();
        if let Some(run) = only
            && !self.steps.list().iter().any(|s| s.run == run)
        {
            self.choose_run(Some(run));
        }
        let went = self.go_to_name(only, name, &place.index);
        if went.is_ok() {
            self.jumps.leave(here);
        } else {
            self.restore(&here);
        }
        went
    }

    fn go_to_name(&mut self, only: Option<usize>, name: &str, index: &[usize]) -> Result<Option<Msg>, Msg> {
        let text = match only {
            Some(run) => format!("{}::{name}", self.session.runs[run].name),
            None => name.to_owned(),
        };
        if let Ok(found) = locate(&text, &self.names_here()) {
            let Located { address, shown } = found;
            let cell = address.cell(index).ok_or_else(|| {
                let index: Vec<String> = index.iter().map(ToString::to_string).collect();
                let shape = address.part.shape();
                Msg::new("edit.outside").arg("index", index.join(", ")).arg("path", escape(name)).arg("shape", shape)
            })?;
            // A symbol may name more than the view that shows it: its cells are where they are shown.
            let view = shown.map(|(step, view)| (step, view, &self.steps.list()[step].views[view]));
            match view.and_then(|(step, at, view)| Some((step, at, view.index_of(cell)?))) {
                Some((step, view, at)) => {
                    self.arrive_at(step);
                    self.select(view, if index.is_empty() { &[] } else { &at });
                }
                None if index.is_empty() && shown.is_some() => {
                    let (step, view) = shown.unwrap_or_default();
                    self.arrive_at(step);
                    self.select(view, &[]);
                }
                None => self.show_cell(address.run, cell),
            }
            return Ok(if shown.is_some() { self.others_called(only, name) } else { None });
        }
        let lower = name.to_lowercase();
        let titled = |s: &Step| {
            s.section == name || [Lang::En, Lang::Zh].iter().any(|l| s.title.render(*l).to_lowercase().contains(&lower))
        };
        let list = self.steps.list();
        let step = self.nearest_first(only).find(|i| titled(&list[*i]));
        let step = step.ok_or_else(|| Msg::new("tui.said.no_place").arg("name", escape(name)))?;
        self.arrive_at(step);
        Ok(None)
    }

    /// Positions of the steps (of one run), the nearest at or before here first: symbols such as Q1 come again in every
    /// layer.
    fn nearest_first(&self, only: Option<usize>) -> impl Iterator<Item = usize> {
        let list = self.steps.list();
        let here = self.at.min(list.len().saturating_sub(1));
        let all = (0..=here).rev().chain(self.at + 1..list.len());
        all.filter(move |i| list.get(*i).is_some_and(|s| only.is_none_or(|r| s.run == r)))
    }

    /// Where one is, as names are looked up from.
    pub(super) fn names_here(&self) -> Context<'_> {
        Context {
            session: &self.session,
            steps: &self.steps,
            at: self.at,
            run: self.step().map_or(0, |s| s.run),
            shown: self.step(),
            past: None,
        }
    }

    /// Which tensors besides the one looked at the listed steps show under this symbol.
    fn others_called(&self, only: Option<usize>, name: &str) -> Option<Msg> {
        let here = self.view()?;
        let what = |v: &View| (v.run, v.node, v.named().clone());
        let mut seen = vec![what(here)];
        let mut others = Vec::new();
        for step in self.steps.list() {
            for view in step.views.iter().filter(|v| v.symbol == name) {
                if only.is_none_or(|r| r == view.run) && !seen.contains(&what(view)) {
                    seen.push(what(view));
                    let r = &self.session.runs[view.run];
                    let path = &r.program.node(view.node).path;
                    others.push(format!("{}:{path} ({})", r.name, step.label()));
                }
            }
        }
        let count = others.len();
        if count > MAX_OTHERS {
            others.truncate(MAX_OTHERS);
            others.push("…".to_owned());
        }
        let path = &self.session.runs[here.run].program.node(here.node).path;
        (count > 0).then(|| {
            Msg::new("tui.said.same_name")
                .arg("name", escape(name))
                .arg("here", escape(path))
                .arg("count", count)
                .arg("others", escape(&others.join(", ")))
        })
    }
}
