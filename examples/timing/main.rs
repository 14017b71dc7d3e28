//! Times runs of a few well-known shapes on demand, for a comparison with another framework in one session.
//!
//! `cargo run --release --example timing` reads names of cases from standard input, a line each, runs each once and
//! prints its seconds: `assets/bench_torch.py` drives it, alternating with PyTorch. The first time of a case is that of
//! its first run, into fresh memory; building the program is not counted. `cargo bench --bench table` prints all of them.

mod cases;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Instant;

fn main() {
    let mut made: HashMap<String, cases::Case> = HashMap::new();
    for name in std::io::stdin().lock().lines().map_while(Result::ok) {
        if !made.contains_key(&name) {
            let Some(case) = cases::case(&name) else {
                let names = cases::CASES.map(|(name, what)| format!("  {name}: {what}")).join("\n");
                eprintln!("no case {name}; there are\n{names}");
                std::process::exit(2);
            };
            made.insert(name.clone(), case);
        }
        let case = made.get_mut(&name).expect("just made");
        let start = Instant::now();
        case();
        println!("{:.6}", start.elapsed().as_secs_f64());
        std::io::stdout().flush().expect("someone listens");
    }
}
