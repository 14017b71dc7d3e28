//! Which sentence, head and layer is shown where there are several: the cursor's where it is in one, else the one
//! that was chosen.

use super::Navigator;
use crate::app::args::Choice;
use crate::program::Site;
use crate::tensor::Axis;

/// What one can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A sentence of the batch.
    Batch,
    /// A head.
    Head,
    /// A layer of the stack.
    Layer,
}

impl Part {
    /// Catalogue key of its name.
    pub fn key(self) -> &'static str {
        match self {
            Part::Batch => "tui.choice.batch",
            Part::Head => "tui.choice.head",
            Part::Layer => "tui.choice.layer",
        }
    }

    fn is(self, axis: Axis) -> bool {
        match self {
            Part::Batch => axis == Axis::Batch,
            Part::Head => matches!(axis, Axis::Head | Axis::KvHead),
            Part::Layer => false,
        }
    }
}

/// What was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    batch: Option<usize>,
    /// Heads and layers are those of a visit: another step has its own.
    head: Option<(u64, usize)>,
    layer: Option<(u64, usize)>,
}

impl Navigator {
    /// The place on an axis of the view looked at: of the cursor where the view has the whole axis, of the slice else.
    fn place_on(&self, part: Part) -> Option<(usize, bool)> {
        let view = self.view()?;
        let shape = view.cells.of;
        let axis = shape.axes().iter().position(|a| part.is(*a))?;
        if shape.dims()[axis] < 2 {
            return None;
        }
        let kept = view.cells.kept[axis];
        let (_, cell) = self.cell()?;
        Some((shape.unflat(cell.flat)[axis], kept))
    }

    /// The sentence looked at.
    pub fn batch(&self) -> usize {
        let of_view = self.place_on(Part::Batch);
        of_view.map(|(at, _)| at).or(self.chosen.batch).unwrap_or(0)
    }

    /// The head looked at.
    pub fn head(&self) -> usize {
        let chosen = self.chosen.head.filter(|(visit, _)| *visit == self.arrivals).map(|(_, head)| head);
        match self.place_on(Part::Head) {
            Some((at, true)) => at,
            of_slice => chosen.or(of_slice.map(|(at, _)| at)).unwrap_or(0),
        }
    }

    /// The layer that was chosen in place of the one that one is in.
    pub fn layer_chosen(&self) -> Option<usize> {
        self.chosen.layer.filter(|(visit, _)| *visit == self.arrivals).map(|(_, layer)| layer)
    }

    /// The layer looked at: the chosen one, else the one that one is in.
    pub fn layer(&self) -> usize {
        let here = || {
            let view = self.view()?;
            self.session.runs[view.run].program.node(view.node).name.site.layer().map(|(_, layer)| layer as usize)
        };
        self.layer_chosen().or_else(here).unwrap_or(0)
    }

    /// How many there are.
    fn count_of(&self, part: Part) -> usize {
        let run = self.run_here();
        match part {
            Part::Batch => self.session.runs[run].inputs.sentences(),
            Part::Head => {
                let program = &self.session.runs[run].program;
                let heads = |shape: &crate::tensor::Shape| -> usize {
                    let of = |wanted: &[Axis]| {
                        let at = shape.axes().iter().position(|a| wanted.contains(a));
                        at.map_or(1, |d| shape.dims()[d])
                    };
                    of(&[Axis::Head, Axis::KvHead]) * of(&[Axis::Group])
                };
                program.nodes().map(|(_, n)| heads(&n.shape)).max().unwrap_or(1)
            }
            Part::Layer => {
                let layers = self.session.runs[run].program.nodes().filter_map(|(_, n)| match n.name.site {
                    Site::Layer(_, layer, _) => Some(layer as usize + 1),
                    _ => None,
                });
                layers.max().unwrap_or(0)
            }
        }
    }

    /// Chooses; gives what was chosen, counted from 1, and how many there are.
    ///
    /// # Errors
    /// How many there are, where there is no such one.
    pub fn choose(&mut self, part: Part, choice: Choice) -> Result<(usize, usize), usize> {
        let n = self.count_of(part);
        let now = match part {
            Part::Batch => self.batch(),
            Part::Head => self.head(),
            Part::Layer => self.layer(),
        };
        let to = match choice {
            Choice::Number(number) => number.checked_sub(1).filter(|at| *at < n),
            Choice::Relative(by) if n > 0 => Some((now as i64 + i64::from(by)).rem_euclid(n as i64) as usize),
            Choice::Relative(_) => None,
        };
        let Some(to) = to else {
            return Err(n);
        };
        match part {
            Part::Batch => self.chosen.batch = Some(to),
            Part::Head => self.chosen.head = Some((self.arrivals, to)),
            Part::Layer => self.chosen.layer = Some((self.arrivals, to)),
        }
        self.put_on_axis(part, to);
        Ok((to + 1, n))
    }

    /// Puts the cursor on a place of an axis of the view, where the view has all of the axis.
    fn put_on_axis(&mut self, part: Part, to: usize) {
        let Some(view) = self.view() else { return };
        let shape = view.shape();
        let Some(axis) = shape.axes().iter().position(|a| part.is(*a)) else { return };
        if to < shape.dims()[axis] && axis < self.index.len() {
            self.index[axis] = to;
            self.term = None;
        }
    }

    /// Takes the sentence that was chosen along to another step.
    pub(super) fn keep_choice(&mut self) {
        if let Some(batch) = self.chosen.batch {
            self.put_on_axis(Part::Batch, batch);
        }
    }
}
