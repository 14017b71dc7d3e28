//! Every value of every run of every embedded scenario, as bits: nothing that changes how they are computed may change
//! what they are. `WRITE_BITS=1 cargo test bits` writes the lists again; a change of them is a change of results.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tui_transformer::scenario::{EMBEDDED, load};
use tui_transformer::session::{Options, open};

/// FNV-1a over the bits of all cells, in order.
fn digest(bits: impl Iterator<Item = u64>) -> u64 {
    let bytes = bits.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

fn list(name: &str) -> String {
    let loaded = load(Path::new(name)).expect("embedded");
    let session = open(loaded.scenario, None, Options::default()).unwrap_or_else(|p| panic!("{name}: {p:?}"));
    let mut lines = String::new();
    for (i, run) in session.runs.iter().enumerate() {
        writeln!(lines, "run {}", run.name).unwrap();
        let trace = session.trace(i).expect("runs");
        for (id, node) in trace.program().nodes() {
            let value = trace.value(id);
            let hash = digest((0..node.shape.len()).map(|c| value.bits(c)));
            writeln!(lines, "{} {:?} {hash:016x}", node.path, node.shape.dims()).unwrap();
        }
    }
    lines
}

#[test]
fn the_values_of_every_embedded_scenario_are_the_recorded_bits() {
    // Without fused multiply-add every product rounds twice: other bits, by contract.
    #[cfg(target_arch = "x86_64")]
    if !std::arch::is_x86_feature_detected!("fma") {
        return;
    }
    for (name, _) in EMBEDDED {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/bits/{name}.txt"));
        let now = list(name);
        if std::env::var_os("WRITE_BITS").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &now).unwrap();
            continue;
        }
        let Ok(before) = std::fs::read_to_string(&file) else {
            panic!("{name}: no list of bits; see the head of this file")
        };
        for (a, b) in before.lines().zip(now.lines()) {
            assert_eq!(a, b, "{name}");
        }
        assert_eq!(before.lines().count(), now.lines().count(), "{name}");
    }
}
