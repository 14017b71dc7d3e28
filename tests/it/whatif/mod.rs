//! What-if on opened scenarios: the bits of a scenario that says so itself, undone and redone, saved and opened again.

mod equal;
mod errors;
mod save;
#[cfg(feature = "tui")]
mod screen;

use std::path::Path;
use std::sync::Arc;

use tui_transformer::debug::whatif::{Command, Edit, EditContext, Slip, WhatIf};
use tui_transformer::scenario::{Scenario, load};
use tui_transformer::session::{Options, Session, open};

fn scenario(name: &str) -> Scenario {
    load(Path::new(name)).expect("embedded").scenario
}

fn opened(scenario: Scenario) -> Arc<Session> {
    Arc::new(open(scenario, None, Options::default()).unwrap_or_else(|p| panic!("{p:#?}")))
}

fn read(w: &WhatIf, run: usize, ablate: bool, text: &str) -> Result<Edit, Slip> {
    let command = if ablate { Command::ablate(text) } else { Command::edit(text) }?;
    let steps = w.session().steps_of(run);
    let here = EditContext { run, steps: &steps, at: 0, shown: None, cursor: None };
    w.resolve(text, &command, &here)
}

fn go(w: &mut WhatIf, run: &str, line: &str) {
    let run = w.session().run_named(run).expect("a run");
    let (ablate, text) = match line.strip_prefix("ablate ") {
        Some(text) => (true, text),
        None => (false, line),
    };
    let edit = read(w, run, ablate, text).unwrap_or_else(|e| panic!("{line}: {e:?}"));
    w.apply(edit).unwrap_or_else(|p| panic!("{line}: {p:?}"));
}

/// All runs that both have are the same, bit for bit.
fn same(left: &Session, right: &Session) {
    for (i, run) in left.runs.iter().enumerate() {
        let other = right.run_named(&run.name).expect(&run.name);
        let (a, b) = (left.trace(i).expect("runs"), right.trace(other).expect("runs"));
        assert_eq!(a.program().len(), b.program().len(), "{}", run.name);
        for (id, node) in a.program().nodes() {
            let (x, y) = (a.value(id), b.value(id));
            let bits = |i| x.bits(i) == y.bits(i);
            assert!((0..node.shape.len()).all(bits), "{} {}", run.name, node.path);
            assert_eq!(node.path, b.program().node(id).path);
        }
    }
}

fn values(s: &Session, run: &str, path: &str) -> Vec<f64> {
    let run = s.run_named(run).expect("a run");
    let value = s.trace(run).expect("runs");
    let id = value.program().find(path).expect(path);
    let value = value.value(id);
    (0..value.shape().len()).map(|i| value.get(i)).collect()
}

fn differs(w: &WhatIf, run: &str) -> bool {
    let run = w.session().run_named(run).expect("a run");
    let steps = w.session().steps_of(run);
    !w.report(run, &steps).expect("runs").changed.is_empty()
}
