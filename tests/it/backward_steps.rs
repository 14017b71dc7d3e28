//! The backward pass and the update as numbered steps.

use std::path::Path;

use tui_transformer::export::document::{Settings, document};
use tui_transformer::program::{Leaf, Op};
use tui_transformer::scenario;
use tui_transformer::session::{self, Session};
use tui_transformer::text::{Lang, NumberFormat};
use tui_transformer::trace::derive::Cell;

fn open(update: u64) -> Session {
    open_named("water_class", update)
}

fn open_named(name: &str, update: u64) -> Session {
    let loaded = scenario::load(Path::new(name)).unwrap();
    let options = session::Options { update, ..session::Options::default() };
    session::open(loaded.scenario, None, options).unwrap()
}

fn lines(s: &Session, run: &str, number: u32, lang: Lang) -> (String, String, Vec<String>) {
    let steps = s.steps_of(s.run_named(run).unwrap());
    let at = steps.position(number).unwrap();
    let settings = Settings {
        lang,
        number: NumberFormat::default(),
        round: None,
        derivations: 10_000,
        terms: usize::MAX,
        inputs: false,
    };
    let doc = document(s, &steps, at, &steps.list()[at], &settings).unwrap();
    let texts = doc.derivations.into_iter().map(|d| d.text).collect();
    (doc.title, doc.formula, texts)
}

#[test]
fn gradients_go_on_from_the_forward_steps_in_reverse() {
    let s = open(0);
    let run = s.run_named("backward").unwrap();
    let program = &s.runs[run].program;
    let steps = s.steps_of(run);
    let numbers: Vec<u32> = steps.list().iter().map(|s| s.number[0]).collect();
    assert_eq!(numbers, (96..96 + numbers.len() as u32).collect::<Vec<_>>());
    assert!(steps.list()[0].title.render(Lang::En).contains("starts"));
    let phases: Vec<&str> = steps.list().iter().map(|s| s.phase.as_str()).collect();
    assert_eq!(phases[0], "grad output");
    assert_eq!(phases.last(), Some(&"grad input"));
    let mut shown = 0;
    for (id, node) in program.nodes() {
        if !node.path.starts_with("grad.") {
            assert!(steps.locate(run, Cell { node: id, flat: 0 }, 0).is_none(), "{} is no gradient", node.path);
            continue;
        }
        let constant = matches!(node.op, Op::Leaf(Leaf::Constant(_)));
        if node.inline || constant && &*node.path != "grad.loss.mean" {
            continue;
        }
        // Every cell is in some step, and what it is computed from is in no later one.
        let step = |flat: usize| steps.locate(run, Cell { node: id, flat }, 0);
        for flat in 0..node.shape.len() {
            assert!(step(flat).is_some(), "{}[{flat}] is not shown", node.path);
        }
        let own = step(0).unwrap().step;
        for &input in &node.inputs {
            if let Some(place) = steps.locate(run, Cell { node: input, flat: 0 }, own) {
                assert!(place.step <= own, "{} comes too early", node.path);
            }
        }
        shown += 1;
    }
    assert!(shown > 150, "{shown}");
}

#[test]
fn lines_of_gradients_read_as_written_by_hand() {
    let s = open(0);
    let (title, formula, texts) = lines(&s, "backward", 97, Lang::En);
    assert_eq!(title, "∂L/∂Logits: softmax minus one-hot");
    assert!(formula.contains("- onehot("), "{formula}");
    assert_eq!(texts[4], "∂L/∂Logits[0][4] = (0.2387 - 1)×0.25 = -0.1903");
    assert_eq!(texts[0], "∂L/∂Logits[0][0] = 0.1034×0.25 = 0.0258");
    let (_, _, texts) = lines(&s, "backward", 98, Lang::En);
    assert_eq!(texts[0], "∂L/∂W_out[0][0] = 0.0258×0.48 + 0.0254×0.622 + 0.0178×1.1543 + 0.0216×-0.0226 = 0.0482");
    let all: Vec<String> = (96..180).flat_map(|n| lines(&s, "backward", n, Lang::Zh).2).collect();
    for line in [
        // The gate of the ReLU.
        "∂L/∂CH1[0][2] = -0.2554×[-0.9372 > 0] = 0",
        // The three terms of LayerNorm.
        "∂L/∂CX2[0][1] = (0.5775)/4 + 0.5774/4×(0.0009 - 0.4823)×2 + 0.0086/√(0.0786+ε) = 0.036",
        // A head takes its columns back.
        "∂L/∂O2[0][0] = ∂L/∂Concat[0][2] = -0.0642",
        // A row of the table that one token used.
        "∂L/∂E←X_src[0][0] = ∂L/∂X_src[0][0] = -0.0858",
        "∂L/∂E←X_src[4][0] = 0",
    ] {
        assert!(all.iter().any(|l| l == line), "{line}");
    }
    // A row of the softmax's Jacobian, named by its head.
    let score = all.iter().find(|l| l.starts_with("∂L/∂score1[0][0] = ")).unwrap();
    assert!(score.contains("×(") && score.contains(" - "), "{score}");
    assert!(all.iter().any(|l| l.starts_with("Σ(∂L/∂A1⊙A1)[0][0] = ")));
    assert!(all.iter().any(|l| l.starts_with("∂L/∂WQ1a[0][0] = ")));
    let zh = lines(&s, "backward", 97, Lang::Zh).0;
    assert_eq!(zh, "∂L/∂Logits：softmax 减去 one-hot");
}

#[test]
fn formulas_of_gradients_name_what_they_read() {
    let s = open(0);
    let formula = |number| lines(&s, "backward", number, Lang::En).1;
    let all: Vec<String> = (96..136).map(formula).collect();
    let has = |wanted: &str| {
        let parts = all.iter().flat_map(|f| f.split(";  "));
        assert!(parts.clone().any(|p| p == wanted), "{wanted}: {all:?}");
    };
    // A gradient that no step shows whole is one all the same.
    has("∂L/∂v.weight = ∂L/∂cross_attn.vᵀ · ENC_OUT");
    // Heads that the forward steps call by one name are reported apart.
    has("∂L/∂K1 = ∂L/∂scores_raw1ᵀ · Q1");
    has("∂L/∂K2 = ∂L/∂scores_raw2ᵀ · Q2");
    has("∂L/∂O1 = ∂L/∂Concat[:, 0..2]");
    has("∂L/∂O2 = ∂L/∂Concat[:, 2..4]");
    for f in &all {
        assert!(!f.contains("= cross_attn.") && !f.contains("= self_attn."));
    }
}

#[test]
fn formulas_of_updates_read_as_written_by_hand() {
    let s = open_named("water_class_trained", 0);
    let run = s.run_named("update").unwrap();
    let steps = s.steps_of(run);
    let of_table = steps.list().iter().find(|step| step.views[0].symbol == "E");
    let (_, formula, texts) = lines(&s, "update", of_table.unwrap().number[0], Lang::En);
    for part in [
        "m(E) = m₀(E) × 0.9 + ∂L/∂E × 0.1;",
        "v(E) = v₀(E) × 0.999 + (∂L/∂E)² × 0.001;",
        "m̂(E) = m(E) / (1-β₁ᵗ);",
        "v̂(E) = v(E) / (1-β₂ᵗ);",
    ] {
        assert!(formula.contains(part), "{part} {formula}");
    }
    // A number too small for four decimals is not written as 0.
    let hat = texts.iter().find(|l| l.starts_with("v̂(E)[0][0] = "));
    assert_eq!(hat.unwrap(), "v̂(E)[0][0] = 8e-6/0.001 = 0.008");
    let mut clipped = scenario::load(Path::new("water_class_trained")).unwrap();
    if let scenario::schema::Run::Training { optimiser, .. } = &mut clipped.scenario.runs[0] {
        optimiser.clip = Some(0.5);
    }
    let s = session::open(clipped.scenario, None, session::Options::default()).unwrap();
    let first = s.steps_of(s.run_named("update").unwrap()).list()[0].number[0];
    let (_, formula, texts) = lines(&s, "update", first, Lang::En);
    let wanted = "clip = min(1, 0.5 / (‖∂L‖ + 1e-6))";
    assert!(formula.contains(wanted), "{formula}");
    assert!(texts.iter().any(|l| l.starts_with("clip = min(1, 0.5/(")), "{texts:?}");
}

#[test]
fn any_update_opens_as_steps() {
    let mut weights = Vec::new();
    for update in [1, 2, 5] {
        let s = open(update);
        assert_eq!(s.updates, update - 1);
        let run = s.run_named("update").unwrap();
        let first = s.steps_of(run).list()[0].number[0];
        let back = s.steps_of(s.run_named("backward").unwrap());
        assert_eq!(first, back.list().last().unwrap().number[0] + 1);
        let (title, formula, texts) = lines(&s, "update", first + 1, Lang::En);
        assert!(title.contains("embed.weight"), "{title}");
        assert_eq!(formula, "Δ(E) = lr ⊙ ∂L/∂E;  E′ = E - Δ(E)");
        let new = texts.iter().find(|t| t.starts_with("E′[0][0]")).unwrap();
        assert!(new.contains(" - ") && new.contains(" = "), "{new}");
        let trace = s.trace(run).unwrap();
        let value = |path: &str| trace.value(trace.program().find(path).unwrap()).get(0);
        weights.push((value("embed.weight"), value("update.embed.weight.new"), value("loss.mean")));
        // The other runs are those of the same parameters.
        let training = s.trace(s.run_named("training").unwrap()).unwrap();
        let loss = training.program().find("loss.mean").unwrap();
        assert_eq!(training.value(loss).get(0).to_bits(), weights.last().unwrap().2.to_bits());
    }
    assert_eq!(weights[0].1.to_bits(), weights[1].0.to_bits());
    assert!(weights[2].2 < weights[0].2, "{weights:?}");
}
