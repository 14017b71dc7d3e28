//! The logit lens against other ways to the same numbers: the program's own output, and a what-if run in which every
//! cell of the last stage is replaced.

use std::path::Path;
use std::sync::Arc;

use tui_transformer::app::app::App;
use tui_transformer::app::settings::Settings;
use tui_transformer::app::views::lens::Lens;
use tui_transformer::scenario;
use tui_transformer::session;
use tui_transformer::trace::Edit;
use tui_transformer::trace::derive::Cell;

fn app(name: &str) -> App {
    let loaded = scenario::load(Path::new(name)).unwrap();
    let session = Arc::new(session::open(loaded.scenario, None, session::Options::default()).unwrap());
    App::new(session, None, Settings::default())
}

#[test]
fn the_last_stage_is_the_output_and_each_other_one_is_a_what_if_run() {
    for name in ["water_class", "modern_decoder", "gpt_block", "train_copy", "encoder_decoder"] {
        let app = app(name);
        let lens = Lens::of(&app.nav).unwrap_or_else(|| panic!("{name} has an output head"));
        let table = lens.table(&app.nav).unwrap();
        let trace = app.nav.session.trace(lens.run).unwrap();
        let program = trace.program();
        let width = *program.node(lens.head).shape.dims().last().unwrap();
        let last = lens.stages.last().unwrap().node;
        let n = program.node(last).shape.len();
        assert!(lens.stages.len() >= 3, "{name}");
        for (s, stage) in lens.stages.iter().enumerate() {
            let value = trace.value(stage.node);
            let edits: Vec<Edit> =
                (0..n).map(|flat| Edit { cell: Cell { node: last, flat }, value: value.get(flat) }).collect();
            let probs =
                if stage.node == last { trace.value(lens.head) } else { trace.what_if(&edits).value(lens.head) };
            for token in 0..lens.tokens {
                let row = lens.row(token);
                let guesses = &table.at[s][row];
                for guess in &guesses.top {
                    let exact = probs.get(row * width + guess.id);
                    assert!(
                        guess.p.to_bits() == exact.to_bits(),
                        "{name} {} {token}: {} {exact}",
                        stage.node.0,
                        guess.p
                    );
                }
                let most = (0..width).map(|i| probs.get(row * width + i)).fold(f64::NEG_INFINITY, f64::max);
                assert!(guesses.top[0].p.to_bits() == most.to_bits(), "{name}");
                assert!(guesses.top.windows(2).all(|w| w[0].p >= w[1].p), "{name}");
            }
        }
        assert!(table.at.last().unwrap().iter().all(|g| g.rank_final == 0 && g.p_final == g.top[0].p), "{name}");
    }
}

#[test]
fn a_model_without_a_head_has_no_lens() {
    assert!(Lens::of(&app("bert_block").nav).is_none());
}
