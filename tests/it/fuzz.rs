//! A moment of fuzzing with a fixed seed: `cargo run --example fuzz` goes on as long as one likes.

use std::time::{Duration, Instant};

#[path = "../../examples/fuzz/targets.rs"]
mod targets;

use targets::{Rng, Runner, Target, input};

/// Inputs of one target: few where each runs a model or draws a screen.
fn executions(target: Target) -> usize {
    match target {
        Target::Keys | Target::Commands => 40,
        Target::Ron | Target::Family => 400,
        Target::Trace | Target::Checkpoint | Target::Tokenizer => 100,
        _ => 1500,
    }
}

#[test]
fn nothing_that_is_read_panics_or_hangs() {
    for target in Target::ALL {
        let (seeds, mut rng, mut runner) = (target.seeds(), Rng(20_260_101), Runner::new(target));
        for _ in 0..executions(target) {
            let bytes = input(target, &seeds, &mut rng);
            let begun = Instant::now();
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runner.run(&bytes)));
            assert!(ran.is_ok(), "{}: {}", target.name(), String::from_utf8_lossy(&bytes).escape_debug());
            assert!(begun.elapsed() < Duration::from_secs(10), "{}: {bytes:?}", target.name());
        }
    }
}
