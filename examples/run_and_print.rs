//! Runs a scenario and prints one of its steps with the arithmetic of its first cell.
//!
//! `cargo run --example run_and_print -- water_class 23`

use std::path::Path;

use tui_transformer::explain::Explainer;
use tui_transformer::scenario;
use tui_transformer::session::{self, Options};
use tui_transformer::text::{Lang, NumberFormat};
use tui_transformer::trace::derive::Cell;

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "water_class".to_owned());
    let number = args.next().unwrap_or_else(|| "23".to_owned());

    let loaded = scenario::load(Path::new(&name)).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
    let session = session::open(loaded.scenario, None, Options::default()).unwrap_or_else(|p| panic!("{p:?}"));
    let steps = session.steps.list();
    let step = steps.iter().find(|s| s.label() == number).expect("a step with this number");
    println!("{}  {}", step.label(), step.title.render(Lang::En));

    let trace = session.trace(step.run).expect("runs");
    for view in &step.views {
        let value = trace.value(view.node);
        let numbers: Vec<String> = view.cells.flats().map(|i| NumberFormat::default().format(value.get(i))).collect();
        println!("{} = {}", view.symbol, numbers.join(" "));
        // The derivation of the first cell: its operands, and the order of arithmetic.
        let first = view.cells.flats().next().expect("a cell");
        let arithmetic = Explainer::new(trace).arithmetic(Cell { node: view.node, flat: first });
        println!("  {} operands make its first cell", arithmetic.operands().len());
    }
}
