//! A key press and its frame at 200×60: on the hand calculation, and on a recorded run of BERT-base's shape with 512
//! tokens. The two are to cost about the same: work grows with what is on the screen, not with the trace.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::args::{Arg, Place};
use tui_transformer::app::input::Input;
use tui_transformer::app::key::KeySeq;
use tui_transformer::app::settings::Settings;
use tui_transformer::app::view::View;
use tui_transformer::scenario::syntax::read;
use tui_transformer::session::{Options, Session, open};
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::theme::{Depth, Environment};

const SIZE: Rect = Rect::new(0, 0, 200, 60);

/// 12 layers, 768, 12 heads, 3072, 512 tokens, f32; about 1.4 GB of recorded numbers.
fn bert() -> Arc<Session> {
    let ids: Vec<String> = (0..512).map(|i| (i * 7 % 1000).to_string()).collect();
    let text = format!(
        "(name: \"bert_shape\", precision: f32, vocabulary: Size(1000), source: (ids: [[{}]]),
          model: (d_model: 768, heads: 12, d_ff: 3072, positions: Learned(max_len: 512),
            norm: (kind: LayerNorm, position: Post, eps: 1e-12), attention: (qkv_bias: true, out_bias: true),
            ffn: (activation: Gelu, bias: true), output: (none: true), encoder: (layers: [(repeat: 12)])),
          weights: (init: [(with: Normal(std: 0.02))], seed: 1),
          runs: [Encode(name: \"encode\")])",
        ids.join(",")
    );
    let scenario = read("bert_shape", &text).expect("a scenario");
    Arc::new(open(scenario, None, Options::default()).expect("opens"))
}

fn environment() -> Environment {
    Environment { no_color: false, detected: Depth::True }
}

/// Keys that go to and fro, each with its frame.
fn keys(c: &mut Criterion, name: &str, app: &mut App) {
    app.ui.interactive = true;
    app.settle();
    let look = look(&app.ui.settings, environment());
    let mut buf = Buffer::empty(SIZE);
    let mut group = c.benchmark_group(name);
    for (what, view, pair) in [
        ("steps", View::Step, [".", ","]),
        ("cells", View::Step, ["down", "up"]),
        ("heads", View::Heads, [".", ","]),
        ("layers", View::Layers, [".", ","]),
        ("probs", View::Probs, [".", ","]),
        ("costs", View::Costs, [".", ","]),
        ("token", View::Token, [".", ","]),
        ("positions", View::Positions, ["down", "up"]),
        ("compare", View::Compare, [".", ","]),
        ("side", View::Side, [".", ","]),
        ("map", View::Map, [".", ","]),
    ] {
        app.act(Action::View(view));
        if what == "cells" {
            app.act(Action::FocusNext);
        }
        let keys: Vec<Input> = pair.iter().map(|k| Input::Key(k.parse::<KeySeq>().expect("a key").0[0])).collect();
        // What is read in the background is there before the clock runs.
        for key in keys.iter().cycle().take(4) {
            app.input(key);
            draw(app, SIZE, &mut buf, &look);
            while app.nav.numbers.is_busy() || app.views.is_busy() {
                std::thread::sleep(std::time::Duration::from_millis(5));
                app.settle();
                draw(app, SIZE, &mut buf, &look);
            }
        }
        let mut at = 0;
        group.bench_function(what, |b| {
            b.iter(|| {
                app.input(&keys[at % 2]);
                at += 1;
                buf.reset();
                black_box(draw(app, SIZE, &mut buf, &look));
            });
        });
    }
    group.finish();
}

fn go(app: &mut App, place: &str) {
    let place = Place::parse(place).expect("a place");
    app.act(Action::Go(place));
}

fn screens(c: &mut Criterion) {
    let loaded = tui_transformer::scenario::load(Path::new("water_class")).expect("embedded");
    let session = Arc::new(open(loaded.scenario, None, Options::default()).expect("opens"));
    let mut app = App::new(session, None, Settings::default());
    go(&mut app, "encoder.1.self_attn.weights[1,2,3]");
    keys(c, "water_class at 200x60", &mut app);

    let mut app = App::new(bert(), None, Settings::default());
    go(&mut app, "encoder.6.self_attn.weights[3,100,200]");
    keys(c, "BERT-base shape, 512 tokens, at 200x60", &mut app);
    go(&mut app, "encoder.6.ffn.out[100,200]");
    keys(c, "the same, at a product of 3072 terms", &mut app);
}

criterion_group!(benches, screens);
criterion_main!(benches);
