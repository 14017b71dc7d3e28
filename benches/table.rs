//! Times runs of a few well-known shapes and prints a table: `cargo bench --bench table [-- CASE …]`.
//!
//! The other benches measure one thing each with many samples; `assets/bench_torch.py` times the same shapes in PyTorch.

#[path = "../examples/timing/cases.rs"]
mod cases;

use std::time::Instant;

/// Runs of each case after the first.
const ROUNDS: usize = 7;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    println!("| case | first ms | median ms | best ms | what |");
    println!("|---|--:|--:|--:|---|");
    for (name, what) in
        cases::CASES.into_iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| w == name))
    {
        let mut case = cases::case(name).expect("a case of the list");
        let mut once = || {
            let start = Instant::now();
            case();
            start.elapsed().as_secs_f64() * 1e3
        };
        let first = once();
        let mut times: Vec<f64> = (0..ROUNDS).map(|_| once()).collect();
        times.sort_by(f64::total_cmp);
        let speed =
            if name == "read" { format!("; {:.1} GB/s", cases::READ as f64 / times[0] / 1e6) } else { String::new() };
        println!("| {name} | {first:.1} | {:.1} | {:.1} | {what}{speed} |", times[ROUNDS / 2], times[0]);
    }
}
