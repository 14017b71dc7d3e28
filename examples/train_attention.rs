//! Trains a small model and prints how its attention turns from noise to one diagonal.
//!
//! `cargo run --release --example train_attention`

use std::path::Path;

use tui_transformer::scenario;
use tui_transformer::session::insight::attention_maps;
use tui_transformer::session::{self, Options};
use tui_transformer::with_any;

fn main() {
    for update in [1, 20, 60] {
        let scenario = scenario::load(Path::new("train_copy")).expect("embedded").scenario;
        // Every run of a session opened at an update is that of the parameters before it.
        let session =
            session::open(scenario, None, Options { update, ..Options::default() }).unwrap_or_else(|p| panic!("{p:?}"));
        let trace = session.trace(0).expect("runs");
        let maps = with_any!(AnyTrace, trace, t => attention_maps(t, 0));
        let map = maps.first().expect("attention");
        println!("before update {update}: {}", map.path);
        for row in &map.weights {
            let cells: Vec<String> = row.iter().map(|w| format!("{w:.2}")).collect();
            println!("  {}", cells.join(" "));
        }
    }
}
