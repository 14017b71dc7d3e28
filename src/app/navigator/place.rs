//! Going to a place by name: symbols, paths, sections, titles.

use std::sync::Arc;

use super::Navigator;
use crate::app::args::Place;
use crate::tensor::Shape;
use crate::text::{Lang, Msg, escape};
use crate::trace::derive::Cell;
use crate::walkthrough::{Step, View};

/// Most other tensors of the same name that are told.
const MAX_OTHERS: usize = 4;

/// The index as one in a tensor of `shape`, of which the last axes may be left out; where a batch of 1 stands in front
/// of the shape (`batch`), it is counted or not. `None` where it is outside.
fn inside(index: &[usize], shape: &Shape, batch: bool) -> Option<Vec<usize>> {
    let index = match index {
        [0, rest @ ..] if batch && rest.len() == shape.rank() => rest,
        all => all,
    };
    let fits = index.len() <= shape.rank() && index.iter().zip(shape.dims()).all(|(i, n)| i < n);
    fits.then(|| index.to_vec())
}

impl Navigator {
    /// To a tensor by symbol, path, section or part of a title, and a cell of it. `run:name` asks for that run's. The
    /// index is that of the whole tensor or of what the symbol stands for; a batch of 1 may be left out. Returns which
    /// other tensors are called the same.
    ///
    /// # Errors
    /// Nothing is called so, or it has no such cell.
    pub fn to_place(&mut self, place: &Place) -> Result<Option<Msg>, Msg> {
        let asked = place
            .name
            .split_once(':')
            .and_then(|(run, name)| Some((self.session.run_named(run)?, name.trim_start_matches(':'))));
        let (only, name) = match asked {
            Some((run, name)) => (Some(run), name),
            None => (None, place.name.as_str()),
        };
        let here = self.spot();
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
        let outside = |shape: &Shape| {
            let index: Vec<String> = index.iter().map(ToString::to_string).collect();
            Msg::new("edit.outside").arg("index", index.join(", ")).arg("path", escape(name)).arg("shape", shape)
        };
        if let Some((step, view)) = self.shown_as(only, name) {
            let shown = &self.steps.list()[step].views[view];
            let batch = shown.cells.of.dims().first() == Some(&1) && !shown.cells.kept[0];
            let shape = shown.shape();
            let index = inside(index, &shape, batch).ok_or_else(|| outside(&shape))?;
            self.arrive_at(step);
            self.select(view, &index);
            return Ok(self.others_called(only, name));
        }
        let run = only.or(self.step().map(|s| s.run)).unwrap_or(0);
        let program = self.session.runs.get(run).map(|r| Arc::clone(&r.program));
        if let Some((program, node)) = program.and_then(|p| p.find(name).map(|n| (p, n))) {
            let shape = program.node(node).shape;
            let batch = index.len() < shape.rank() && shape.dims().first() == Some(&1);
            let mut whole = vec![0; usize::from(batch)];
            whole.extend(index);
            whole = inside(&whole, &shape, false).ok_or_else(|| outside(&shape))?;
            whole.resize(shape.rank(), 0);
            let flat = if shape.is_empty() { 0 } else { shape.flat(&whole) };
            self.show_cell(run, Cell { node, flat });
            return Ok(None);
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

    /// The nearest step that shows a symbol, and which of its views.
    fn shown_as(&self, only: Option<usize>, name: &str) -> Option<(usize, usize)> {
        let list = self.steps.list();
        let symbol = |v: &View| v.symbol == name;
        self.nearest_first(only).find_map(|i| list[i].views.iter().position(symbol).map(|v| (i, v)))
    }

    /// Which tensors besides the one looked at the listed steps show under this symbol.
    fn others_called(&self, only: Option<usize>, name: &str) -> Option<Msg> {
        let here = self.view()?;
        let what = |v: &View| (v.run, v.node, v.cells.clone());
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
