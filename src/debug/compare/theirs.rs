//! What the program that a checkpoint comes from calls a node of ours: the tensor of a parameter, the module of an activation.

use super::alias::{Resolver, Table, tables};
use crate::program::{Leaf, NodeId, Op};
use crate::session::Session;

/// Names of tensors that one parameter is made of, at most.
const MOST: usize = 3;

/// What its checkpoint calls a node of run `run`; `None` where it has no name there, or the session is of no checkpoint.
pub fn theirs(session: &Session, run: usize, node: NodeId) -> Option<String> {
    let program = &session.runs[run].program;
    let n = program.node(node);
    if matches!(n.op, Op::Leaf(Leaf::Parameter)) {
        return session.tensors_of(&n.path).map(|names| {
            let more = if names.len() > MOST { ", …" } else { "" };
            names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ") + more
        });
    }
    if n.name.is_gradient() {
        return None;
    }
    let resolver = Resolver::new(program, None);
    let known = resolver.names_of(node, table_of(session)?);
    // The files' own names say what may be before a module's.
    let files = session.tensor_names();
    let has = |module: &str| {
        files.iter().find(|file| file.strip_suffix(".weight").is_some_and(|file| file.ends_with(module)))
    };
    let whole = |module: &String| has(module).and_then(|file| file.strip_suffix(".weight")).map(str::to_owned);
    known.iter().find_map(whole).or_else(|| known.into_iter().next())
}

/// The table of the family that a session is of.
fn table_of(session: &Session) -> Option<&'static Table> {
    let kind = session.model_type()?;
    let of = |table: &&Table| table.is_of(kind);
    tables().iter().find(of)
}
