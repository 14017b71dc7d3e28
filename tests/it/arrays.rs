//! Recorded tensors as arrays of `ndarray`.

use std::path::Path;

use tui_transformer::scenario;
use tui_transformer::session::{self, Options};
use tui_transformer::tensor::{Slice, Value};

/// The views of all numbers of runs with a cache, where keys and values lie in blocks that grow, have the elements that
/// single reads give, in that order; a part of what grew is taken without joining it, and nothing else is copied.
#[test]
fn recorded_tensors_are_seen_as_arrays() {
    let (mut joined, mut parts) = (0, 0);
    for name in ["modern_decoder", "gpt_block", "encoder_decoder"] {
        let s = session::open(scenario::load(Path::new(name)).expect("embedded").scenario, None, Options::default());
        let s = s.expect("opens");
        for run in 0..s.runs.len() {
            let trace = s.trace(run).expect("runs").f64().expect("f64");
            for (id, node) in trace.program().nodes() {
                let Value::Float(t) = trace.value(id) else { continue };
                let cells: Vec<u64> = (0..node.shape.len()).map(|i| t.at(i).to_bits()).collect();
                let grew = !t.is_whole();
                if let Some((axis, _)) = node.shape.iter().next() {
                    let part = Slice::parse(&format!("{}=-1..", axis.name())).expect("a slice").resolve(&node.shape);
                    let part = part.expect("inside");
                    let taken: Vec<u64> = part.copied(&t).iter().map(|x| x.to_bits()).collect();
                    assert!(taken.iter().eq(part.flats().map(|i| &cells[i])), "{}", node.path);
                    assert_eq!(grew, !t.is_whole(), "{} was joined", node.path);
                    parts += 1;
                }
                let view = t.view();
                assert_eq!(view.shape(), node.shape.dims(), "{}", node.path);
                assert!(view.iter().map(|x| x.to_bits()).eq(cells), "{}", node.path);
                assert!(std::ptr::eq(view.as_ptr(), t.data().as_ptr()), "{} was copied", node.path);
                joined += usize::from(grew);
            }
        }
    }
    assert!(joined > 10 && parts > 100, "{joined} {parts}");
}
