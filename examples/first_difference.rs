//! Finds the first step in which two models differ: here the same scenario with another ε in its norms.
//!
//! `cargo run --example first_difference`

use std::path::Path;

use tui_transformer::debug::compare::{self, Reference};
use tui_transformer::scenario;
use tui_transformer::session::{self, Options, Session};

fn open(change: impl FnOnce(&mut scenario::Scenario)) -> Session {
    let mut scenario = scenario::load(Path::new("water_class")).expect("embedded").scenario;
    change(&mut scenario);
    session::open(scenario, None, Options::default()).unwrap_or_else(|p| panic!("{p:?}"))
}

fn main() {
    let ours = open(|_| {});
    let theirs = open(|s| s.model.norm.eps = 0.1);
    let reference = Reference::from_trace("larger ε", theirs.trace(0).expect("runs"));
    let report = compare::compare(&ours, 0, &reference, &compare::Options::default()).expect("the same paths");
    match report.verdict() {
        Some(first) => println!("first difference: {}", first.place.path),
        None => println!("no difference in {} tensors", report.nodes.len()),
    }
}
