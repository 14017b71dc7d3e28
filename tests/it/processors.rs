//! The same bits on every processor with fused multiply-add, and the same contract on those without: one machine tries what
//! others do.

use std::process::{Command, Output};

fn run(processor: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    command.args(args).env("LC_ALL", "C").env("TUI_TRANSFORMER_PROCESSOR", processor);
    command.output().expect("runs")
}

/// Every value of runs that use all kinds of kernels.
fn exported(processor: &str, args: &[&str]) -> Vec<u8> {
    let out = run(processor, &[&["export"], args, &["--step", "all", "--format", "json"]].concat());
    assert!(out.status.success(), "{processor} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

const RUNS: [&[&str]; 4] = [
    &["water_class"],
    &["pre_ln_encoder", "--precision", "f32"],
    &["water_class", "--run", "backward"],
    &["modern_decoder", "--precision", "f32"],
];

#[test]
fn processors_with_fused_multiply_add_agree_about_every_bit() {
    for args in RUNS {
        let all = exported("", args);
        for processor in ["avx2", "portable"] {
            assert!(all == exported(processor, args), "{args:?} on {processor}");
        }
    }
}

#[test]
fn without_fused_multiply_add_other_bits_keep_the_contract() {
    let mut others = 0;
    for args in RUNS {
        others += usize::from(exported("", args) != exported("separate", args));
        // The check derives cells and compares their bits with the recorded ones.
        let checked = run("separate", &[&["check"], &args[..1]].concat());
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
    assert!(others > 0, "the switch does something");
}
