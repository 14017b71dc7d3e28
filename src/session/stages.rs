//! Training beside inference, stage by stage, filled in from what the two runs did.

use super::{RunKind, Session};
use crate::program::{Leaf, Op, Program};
use crate::text::{Lang, Msg, NumberFormat, tr};
use crate::trace::{AnyTrace, RunError};

/// A table of texts for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Headings.
    pub columns: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
}

/// One of the two runs.
struct Side<'a> {
    session: &'a Session,
    program: &'a Program,
    trace: &'a AnyTrace,
    /// Paths before those of a pass: one call of inference each, or nothing.
    passes: Vec<String>,
    lang: Lang,
}

/// The table of the stages of the first training run and the first inference run; `None` where one is missing.
///
/// # Errors
/// Where a run cannot run.
pub fn stages(session: &Session, lang: Lang) -> Result<Option<Table>, RunError> {
    let find = |kind: RunKind| session.runs.iter().position(|r| r.kind == kind);
    let (Some(training), Some(inference)) = (find(RunKind::Training), find(RunKind::Inference)) else {
        return Ok(None);
    };
    let side = |run: usize, passes: Vec<String>| -> Result<Side<'_>, RunError> {
        Ok(Side {
            session,
            program: &session.runs[run].program,
            trace: session.trace(run).map_err(Clone::clone)?,
            passes,
            lang,
        })
    };
    let left = side(training, vec![String::new()])?;
    let calls = session.calls_made(inference);
    let right = side(inference, (0..calls).map(|i| format!("gen.{i}.")).collect())?;
    let mut rows = Vec::new();
    let mut row = |stage: &str, left: String, right: String| {
        rows.push(vec![tr(lang, &format!("stage.{stage}")).to_owned(), left, right]);
    };
    let say = |msg: Msg| msg.render(lang);

    let fed = |s: &Side<'_>| {
        let texts = s.passes.iter().map(|p| s.tokens(p));
        texts.map(|t| format!("[{}]", t.join(" "))).collect::<Vec<_>>().join(", ")
    };
    row("tokens", fed(&left), fed(&right));
    row("embedding", left.embedding(), right.embedding());
    if let Some(memory) = session.runs[training].outputs.memory {
        let path = &*left.program.node(memory).path;
        if session.model_of(training).decoder.is_some() && right.program.find(path).is_some() {
            let same = same_bits(&left, &right, path);
            let bits = say(Msg::new(if same { "stage.same_bits" } else { "stage.other_bits" }));
            row(
                "encoder",
                left.shape(path),
                say(Msg::new("stage.once").arg("shape", right.shape(path)).arg("calls", calls).arg("bits", bits)),
            );
        }
    }
    row("decoder_input", left.shapes("embed.target.out"), right.shapes("embed.target.out"));
    if let Some(mask) = left.first_ending("decoder.", ".self_attn.mask") {
        row("mask", left.masks(&mask), right.masks(&mask));
    }
    if let Some(cross) = left.first_ending("decoder.", ".cross_attn.weights") {
        row("cross", left.shapes(&cross), right.shapes(&cross));
    }
    row("output", left.words(false), right.words(true));
    let data = left.tokens("").get(1..).unwrap_or_default().join(", ");
    row("next", say(Msg::new("stage.from_data").arg("tokens", data)), right.next_inputs());
    row("gradient", gradient(session, training, lang), left_without(&right, lang));
    let columns = vec![
        tr(lang, "stage.stage").to_owned(),
        session.runs[training].name.clone(),
        session.runs[inference].name.clone(),
    ];
    Ok(Some(Table { columns, rows }))
}

fn same_bits(left: &Side<'_>, right: &Side<'_>, path: &str) -> bool {
    let value = |s: &Side<'_>| s.program.find(path).and_then(|id| s.trace.get(id));
    match (value(left), value(right)) {
        (Some(a), Some(b)) => a.shape().same_dims(b.shape()) && (0..a.shape().len()).all(|i| a.bits(i) == b.bits(i)),
        _ => false,
    }
}

/// Parameters that have a gradient, and the loss it is of.
fn gradient(session: &Session, training: usize, lang: Lang) -> String {
    let backward = (0..session.runs.len()).find(|r| session.forward_of(*r) == Some(training));
    let Some(program) = backward.map(|r| &session.runs[r].program) else {
        return tr(lang, "stage.no_gradient").to_owned();
    };
    let with = |path: &str| program.find(&format!("grad.{path}")).is_some();
    let count = session.specs.iter().filter(|s| with(&s.path)).count();
    let loss = session.runs[training]
        .outputs
        .loss
        .and_then(|id| session.trace(training).ok()?.get(id))
        .map_or_else(String::new, |v| NumberFormat::default().format(v.get(0)));
    Msg::new("stage.gradients").arg("count", count).arg("loss", loss).render(lang)
}

fn left_without(side: &Side<'_>, lang: Lang) -> String {
    let nodes = side.program.nodes();
    let count = nodes.filter(|(_, n)| n.path.starts_with("grad.")).count();
    Msg::new("stage.gradient_nodes").arg("count", count).render(lang)
}

impl Side<'_> {
    /// Lengths of the axes of the node at `path`; a batch of 1 is not shown.
    fn shape(&self, path: &str) -> String {
        let Some(id) = self.program.find(path) else {
            return "—".to_owned();
        };
        let dims = self.program.node(id).shape;
        let dims = dims.dims();
        let shown = if dims.len() > 2 && dims[0] == 1 { &dims[1..] } else { dims };
        shown.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
    }

    /// The shape in each pass.
    fn shapes(&self, path: &str) -> String {
        let each = self.passes.iter().map(|p| self.shape(&format!("{p}{path}")));
        each.collect::<Vec<_>>().join(", ")
    }

    fn embedding(&self) -> String {
        let target = self.shapes("embed.target.lookup");
        if self.program.find("embed.source.lookup").is_none() {
            return target;
        }
        Msg::new("stage.two_sides")
            .arg("source", self.shape("embed.source.lookup"))
            .arg("target", target)
            .render(self.lang)
    }

    fn first_ending(&self, start: &str, end: &str) -> Option<String> {
        let mut nodes = self.program.nodes();
        let found = nodes.find(|(_, n)| n.path.starts_with(start) && n.path.ends_with(end));
        found.map(|(_, n)| n.path.to_string())
    }

    /// All tokens that a pass sees.
    fn tokens(&self, pass: &str) -> Vec<String> {
        let paths = [format!("{pass}tokens"), format!("{pass}embed.target.ids")];
        let id = paths.iter().find_map(|p| self.program.find(p));
        let Some(value) = id.and_then(|id| self.trace.get(id)) else {
            return Vec::new();
        };
        let row = value.shape().dims().last().copied().unwrap_or(0);
        (0..row).map(|i| self.session.target_words.word(value.get(i) as i64)).collect()
    }

    /// Size of the mask in each pass and how many cells it hides.
    fn masks(&self, path: &str) -> String {
        let each = self.passes.iter().map(|p| {
            let path = format!("{p}{path}");
            let hidden = self.program.find(&path).and_then(|id| self.trace.get(id));
            let hidden = hidden.map_or(0, |v| (0..v.shape().len()).filter(|i| v.get(*i) != 0.0).count());
            Msg::new("stage.mask_size").arg("shape", self.shape(&path)).arg("hidden", hidden).render(self.lang)
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Predicted words and their probabilities: of every position, or of the last one.
    fn words(&self, last: bool) -> String {
        let mut words = Vec::new();
        for pass in &self.passes {
            let at = |name: &str| {
                let id = self.program.find(&format!("{pass}output.{name}"))?;
                self.trace.get(id)
            };
            let (Some(ids), Some(probs)) = (at("argmax"), at("predicted_probs")) else {
                continue;
            };
            let n = ids.shape().dims().last().copied().unwrap_or(0);
            for i in if last { n.saturating_sub(1) } else { 0 }..n {
                let word = self.session.target_words.word(ids.get(i) as i64);
                words.push(format!("{word} {}", NumberFormat::default().format(probs.get(i))));
            }
        }
        words.join(", ")
    }

    /// The newest token of each call after the first, and whether it was given or chosen.
    fn next_inputs(&self) -> String {
        let later = self.passes.get(1..).unwrap_or_default();
        let newest: Vec<String> = later.iter().filter_map(|p| self.tokens(p).pop()).collect();
        let given = later.iter().any(|p| {
            let id = self.program.find(&format!("{p}tokens"));
            id.is_some_and(|id| matches!(self.program.node(id).op, Op::Leaf(Leaf::Constant(_))))
        });
        let key = if given { "stage.from_prefix" } else { "stage.from_itself" };
        Msg::new(key).arg("tokens", newest.join(", ")).render(self.lang)
    }
}
