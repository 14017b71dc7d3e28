//! The residual stream: which tensors it goes through, and how large they are.

use crate::app::navigator::{Navigator, Plane, TableModel};
use crate::program::{Block, Name, NodeId, Role, Side, Site, Stack};
use crate::tensor::Axis;
use crate::text::{Lang, Msg, tr};

/// The tensors of the residual stream of a run (of the decoding call one is in), in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Run.
    pub run: usize,
    /// The sums and the norms.
    pub nodes: Vec<NodeId>,
    /// Their paths.
    pub names: Vec<String>,
    /// The last one at or before the place one is at.
    pub cursor: Option<usize>,
}

/// Mean norms along a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Whether it is of the encoder; `None` where there is one stack only.
    pub encoder: Option<bool>,
    /// Catalogue key of what it is of: residual sums, or outputs of norms.
    pub key: &'static str,
    /// One a tensor; gaps are bridged, what lies before and after is NaN.
    pub values: Vec<f64>,
}

impl Curve {
    /// What it is called.
    pub fn name(&self, lang: Lang) -> String {
        let name = tr(lang, self.key);
        match self.encoder {
            Some(true) => format!("{} · {name}", tr(lang, "phase.encoder")),
            Some(false) => format!("{} · {name}", tr(lang, "phase.decoder")),
            None => name.to_owned(),
        }
    }
}

impl Stream {
    /// The stream around the place one is at; without nodes where the run has none.
    pub fn of(nav: &Navigator) -> Option<Self> {
        let view = nav.view()?;
        let program = &nav.session.runs[view.run].program;
        let call = program.node(view.node).name.call;
        let nodes: Vec<NodeId> = program
            .nodes()
            .filter(|(_, n)| {
                let name = &n.name;
                let of_call = name.call.is_none_or(|of| call == Some(of));
                let embedded = matches!(name.site, Site::Embedding(Some(_)));
                of_call
                    && !name.is_gradient()
                    && match name.last() {
                        Role::Residual(_) => true,
                        Role::Out => embedded || name.site.is_norm(),
                        _ => false,
                    }
            })
            .map(|(id, _)| id)
            .collect();
        let names = nodes.iter().map(|id| program.node(*id).path.to_string()).collect();
        let cursor = nodes.iter().rposition(|id| *id <= view.node);
        Some(Self { run: view.run, nodes, names, cursor })
    }

    /// One curve of the residual sums and one of the norms for each stack: nothing flows from one stack's stream into
    /// the other's.
    pub fn curves(&self, nav: &Navigator) -> Vec<Curve> {
        let (run, stream) = (self.run, &self.nodes);
        let program = &nav.session.runs[run].program;
        let name = |id: &NodeId| &program.node(*id).name;
        let of_encoder = |id: &NodeId| name(id).site.side() == Some(Side::Source);
        let both = stream.iter().any(of_encoder) && !stream.iter().all(of_encoder);
        let stacks: &[Option<bool>] = if both { &[Some(true), Some(false)] } else { &[None] };
        let kinds = [(false, "tui.series.residual"), (true, "tui.series.norm")];
        let mut series = Vec::new();
        for stack in stacks {
            for (norms, key) in kinds {
                let of_kind = |id: &NodeId| match name(id).last() {
                    Role::Residual(_) => !norms,
                    _ => norms && name(id).site.is_norm(),
                };
                let own = |id: &NodeId| of_kind(id) && stack.is_none_or(|encoder| of_encoder(id) == encoder);
                let norm = |id: &NodeId| {
                    if own(id) { nav.mean_norm(run, *id) } else { f64::NAN }
                };
                let mut values: Vec<f64> = stream.iter().map(norm).collect();
                bridge(&mut values);
                series.push(Curve { encoder: *stack, key, values });
            }
        }
        series
    }
}

/// Fills gaps between numbers by straight lines: a point of one kind is between two of the other.
fn bridge(values: &mut [f64]) {
    let mut last: Option<usize> = None;
    for i in 0..values.len() {
        if !values[i].is_finite() {
            continue;
        }
        if let Some(from) = last {
            let (a, b) = (values[from], values[i]);
            for (at, value) in values[from..i].iter_mut().enumerate().skip(1) {
                let share = at as f64 / (i - from) as f64;
                *value = a * (1.0 - share) + b * share;
            }
        }
        last = Some(i);
    }
}

/// The attention weights of the cursor's head in every layer of its stack: `encoder.*.self_attn.weights`.
pub fn heads_across(nav: &Navigator, lang: Lang) -> Vec<TableModel> {
    let Some(here) = nav.view() else { return Vec::new() };
    let run = here.run;
    let program = &nav.session.runs[run].program;
    let name = &program.node(here.node).name;
    let stack = match name.site {
        Site::Output | Site::Loss => Stack::Decoder,
        site => site.stack().unwrap_or(Stack::Encoder),
    };
    let attention = match name.site.block() {
        Some(Block::CrossAttention) => Block::CrossAttention,
        _ => Block::SelfAttention,
    };
    let find = |stack: Stack, layer: u32| {
        let weights = Name::of(Site::Layer(stack, layer, attention)).then(Role::Weights);
        program.named(&Name { call: name.call, ..weights })
    };
    let other = if stack == Stack::Encoder { Stack::Decoder } else { Stack::Encoder };
    let stack = if find(stack, 0).is_some() { stack } else { other };
    let view = Some(here.cells.of);
    // The head that the cursor is in, else the first.
    let head = view.and_then(|shape| {
        let axis = shape.axes().iter().position(|a| *a == Axis::Head)?;
        let (_, cell) = nav.cell()?;
        Some(shape.unflat(cell.flat)[axis])
    });
    let head = head.unwrap_or(0);
    (0..)
        .map_while(|layer| Some((layer, find(stack, layer)?)))
        .map(|(layer, node)| {
            let shape = program.node(node).shape;
            let axis = shape.axes().iter().position(|a| *a == Axis::Head);
            let per = axis.map_or(0, |a| shape.dims()[a + 1..].iter().product::<usize>());
            let heads = axis.map_or(1, |a| shape.dims()[a]);
            let symbol =
                Msg::new("tui.layer_head").arg("layer", layer + 1).arg("head", head.min(heads - 1) + 1).render(lang);
            let plane = Plane::around(&shape, head.min(heads - 1) * per);
            TableModel::of(run, node, symbol, plane)
        })
        .collect()
}
