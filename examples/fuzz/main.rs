//! Fuzzes what reads input of others, on the stable toolchain:
//!
//! ```text
//! cargo run --example fuzz -- --target ron --seconds 60 [--seed 1] [--input FILE]
//! ```
//!
//! `--target all` divides the time. An input that panics, aborts, takes more than 10 seconds or more than 1 GiB is written to
//! the folder of temporary files, and the exit code is 1; `--input` runs such a file again.

mod targets;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use targets::{Rng, Runner, Target, input};

/// How often the watch looks.
const TICK: Duration = Duration::from_millis(200);
/// Longest that one input may take, in ticks of the watch: a process that is stopped for a while has no ticks either.
const PATIENCE: u64 = 50;
/// Most memory of the process.
const MAX_MEMORY: u64 = 1 << 30;

struct Arguments {
    targets: Vec<Target>,
    seconds: f64,
    seed: u64,
    input: Option<PathBuf>,
}

fn arguments() -> Result<Arguments, String> {
    let mut out = Arguments { targets: Target::ALL.to_vec(), seconds: 10.0, seed: 1, input: None };
    let mut all = std::env::args().skip(1);
    while let Some(name) = all.next() {
        let value = all.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<f64>().map_err(|_| format!("{value} is no number"));
        match name.as_str() {
            "--target" if value == "all" => {}
            "--target" => {
                let target = Target::ALL.into_iter().find(|t| t.name() == value);
                let names = Target::ALL.map(Target::name).join(", ");
                out.targets = vec![target.ok_or_else(|| format!("no target {value}; there are all, {names}"))?];
            }
            "--seconds" => out.seconds = number()?,
            "--seed" => out.seed = number()? as u64,
            "--input" => out.input = Some(value.into()),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(out)
}

/// The input at hand, the tick at which it began, and the ticks so far.
struct Watched {
    bytes: Mutex<Vec<u8>>,
    began: AtomicU64,
    ticks: AtomicU64,
}

/// Keeps the input at hand when the process aborts: an allocation that fails does not unwind.
fn keep_on_abort(target: Target, watched: &Arc<Watched>) -> std::io::Result<()> {
    let watched = Arc::clone(watched);
    let last_words = move || {
        if let Ok(bytes) = watched.bytes.try_lock() {
            keep(target, &bytes, "abort");
        }
    };
    // SAFETY: nothing of this process goes on after an abort; the handler takes no lock that the aborting thread may hold,
    // and what it writes is lost at worst.
    unsafe { signal_hook::low_level::register(signal_hook::consts::SIGABRT, last_words) }.map(drop)
}

fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn keep(target: Target, bytes: &[u8], why: &str) {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let file = std::env::temp_dir().join(format!("fuzz-{}-{hash:016x}", target.name()));
    match std::fs::write(&file, bytes) {
        Ok(()) => println!("{}: {why}: {}", target.name(), file.display()),
        Err(e) => println!("{}: {why}, and the input could not be kept: {e}", target.name()),
    }
}

fn main() -> std::process::ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("{why}");
            return 2.into();
        }
    };
    if let (Some(file), [target]) = (&arguments.input, &arguments.targets[..]) {
        Runner::new(*target).run(&std::fs::read(file).expect("a file"));
        return 0.into();
    }
    let watched =
        Arc::new(Watched { bytes: Mutex::default(), began: AtomicU64::new(u64::MAX), ticks: AtomicU64::new(0) });
    let mut failed = false;
    std::panic::set_hook(Box::new(|_| {}));
    for &target in &arguments.targets {
        if let Err(why) = keep_on_abort(target, &watched) {
            eprintln!("inputs that abort are not kept: {why}");
        }
        let guard = Arc::clone(&watched);
        let done = Arc::new(AtomicU64::new(0));
        let ended = Arc::clone(&done);
        std::thread::spawn(move || {
            while ended.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(TICK);
                let now = guard.ticks.fetch_add(1, Ordering::Relaxed);
                let slow = now > guard.began.load(Ordering::Relaxed).saturating_add(PATIENCE);
                let large = memory().is_some_and(|m| m > MAX_MEMORY);
                if slow || large {
                    let bytes = guard.bytes.lock().expect("not poisoned");
                    keep(target, &bytes, if slow { "more than 10 seconds" } else { "more than 1 GiB" });
                    std::process::exit(1);
                }
            }
        });
        let seeds = target.seeds();
        let mut rng = Rng(arguments.seed);
        let mut runner = Runner::new(target);
        let (mut executions, mut panics) = (0_u64, 0_u64);
        let until = Instant::now() + Duration::from_secs_f64(arguments.seconds / arguments.targets.len() as f64);
        while Instant::now() < until {
            let bytes = input(target, &seeds, &mut rng);
            watched.bytes.lock().expect("not poisoned").clone_from(&bytes);
            watched.began.store(watched.ticks.load(Ordering::Relaxed), Ordering::Relaxed);
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runner.run(&bytes)));
            watched.began.store(u64::MAX, Ordering::Relaxed);
            executions += 1;
            if ran.is_err() {
                panics += 1;
                if panics <= 5 {
                    keep(target, &bytes, "panic");
                }
                runner = Runner::new(target);
            }
        }
        done.store(1, Ordering::Relaxed);
        println!("{}: {executions} executions of {} seeds, {panics} panics", target.name(), seeds.len());
        failed |= panics > 0;
    }
    u8::from(failed).into()
}
