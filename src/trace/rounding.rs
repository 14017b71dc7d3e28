//! Rounding every number of a run before it is used: to decimals, as a hand calculation does, or to a smaller number
//! type, as a model in bf16 does.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::program::{Binary, NodeId, Op, Program, Reduction, Role};
use crate::tensor::{NumberType, Real, Tensor, Value};
use crate::text::number::round_to;

/// What numbers are rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rounding {
    /// So many decimals.
    Decimals(u8),
    /// The numbers of a type. Sums inside an operation are in f32.
    Type(NumberType),
}

impl fmt::Display for Rounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimals(digits) => digits.fmt(f),
            Self::Type(t) => t.fmt(f),
        }
    }
}

/// Whether and how a run rounds, as it is chosen: the decimals of `steps` are those that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RoundMode {
    /// Not at all.
    #[default]
    Exact,
    /// Each printed number before it is used.
    Steps,
    /// Every number to a smaller type.
    Type(NumberType),
}

impl RoundMode {
    /// Names of all modes.
    pub const NAMES: [&str; 7] = ["exact", "steps", "bf16", "f16", "fp8_e4m3", "fp8_e5m2", "tf32"];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Steps => "steps",
            Self::Type(t) => t.name(),
        }
    }

    /// The rounding, where numbers are shown with `digits` decimals.
    pub fn at(self, digits: u8) -> Option<Rounding> {
        match self {
            Self::Exact => None,
            Self::Steps => Some(Rounding::Decimals(digits)),
            Self::Type(t) => Some(Rounding::Type(t)),
        }
    }
}

impl FromStr for RoundMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "exact" => Ok(Self::Exact),
            "steps" => Ok(Self::Steps),
            text => text.parse().map(Self::Type).map_err(|_| ()),
        }
    }
}

/// Numbers that a rounding lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Finite numbers that are too large for the type: ±∞ there, or its largest number where it has no infinity.
    pub overflow: u64,
    /// Numbers that are 0 in the type and were not.
    pub flushed: u64,
}

/// Rounds the numbers of a run. Numbers inside a written line (inline nodes), and those that an operation only moves,
/// are not rounded again.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounder {
    /// To what.
    pub to: Rounding,
    /// Nodes that keep their numbers, marked; none where empty.
    pub exempt: Arc<[bool]>,
}

impl From<Rounding> for Rounder {
    fn from(to: Rounding) -> Self {
        Self { to, exempt: Arc::from([]) }
    }
}

/// What is added to a score, or put in its place, to hide it: at most this.
const HIDDEN: f64 = -1e4;

impl Rounder {
    /// Whether the numbers of a node are rounded.
    pub fn rounds(&self, program: &Program, id: NodeId) -> bool {
        let node = program.node(id);
        // What is moved was rounded where it was computed, unless that is inside the line of this node.
        let moved = node.op.moves_only()
            && match self.to {
                Rounding::Decimals(_) => true,
                Rounding::Type(_) => !node.inputs.iter().any(|i| program.node(*i).inline),
            };
        !node.inline && !moved && !self.exempt.get(id.index()).is_some_and(|exempt| *exempt)
    }

    /// The value of node `id` rounded, and what that lost; `None` where it is not rounded.
    ///
    /// A hidden score below the lowest number of a type becomes that number, as models take `torch.finfo(dtype).min`.
    pub fn round<T: Real>(&self, program: &Program, id: NodeId, value: &Value<T>) -> Option<(Value<T>, Lost)> {
        let Value::Float(t) = value else { return None };
        let of_node = self.of(program, id)?;
        let mut lost = Lost::default();
        let one = |x: &T| {
            let x = x.to_f64();
            let (y, too_large) = of_node.rounded(x);
            lost.overflow += u64::from(too_large);
            lost.flushed += u64::from(x != 0.0 && y == 0.0);
            T::from_f64(y)
        };
        let rounded: Vec<T> = t.data().iter().map(one).collect();
        // Only a number type loses: that 0.00001 is 0.0000 with four decimals is what decimals are.
        let lost = if matches!(self.to, Rounding::Type(_)) { lost } else { Lost::default() };
        Some((Value::Float(Tensor::new(*t.shape(), rounded)), lost))
    }

    /// How single numbers of node `id` are rounded; `None` where they are not.
    pub fn of<'p>(&self, program: &'p Program, id: NodeId) -> Option<NodeRounding<'p>> {
        self.rounds(program, id).then(|| NodeRounding { to: self.to, program, id, hides: OnceLock::new() })
    }
}

/// How the numbers of one node are rounded.
#[derive(Debug)]
pub struct NodeRounding<'p> {
    to: Rounding,
    program: &'p Program,
    id: NodeId,
    /// Whether it holds hidden scores; looked for where a number is too low.
    hides: OnceLock<bool>,
}

impl NodeRounding<'_> {
    /// Whether the node holds scores of which some are hidden by a very low number.
    pub fn hides_scores(&self) -> bool {
        *self.hides.get_or_init(|| hides_scores(self.program, self.id))
    }

    /// A number, rounded.
    pub fn round(&self, x: f64) -> f64 {
        self.rounded(x).0
    }

    /// A number, rounded, and whether it was too large.
    fn rounded(&self, x: f64) -> (f64, bool) {
        match self.to {
            Rounding::Decimals(digits) => (round_to(x, digits), false),
            Rounding::Type(to) => {
                let ((y, too_large), lowest) = (to.rounded(x), -to.largest());
                if x < lowest && (too_large || y < lowest) && self.hides_scores() {
                    (lowest, false)
                } else {
                    (y, too_large)
                }
            }
        }
    }
}

/// Whether a node holds scores of which some are hidden by a very low number.
fn hides_scores(program: &Program, id: NodeId) -> bool {
    let mut seen = vec![false; program.len()];
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        let node = program.node(id);
        if matches!(node.name.last(), Role::MaskBias | Role::MaskedScores) {
            return true;
        }
        match &node.op {
            Op::MaskFill { fill } if *fill <= HIDDEN => return true,
            Op::Binary(Binary::Add | Binary::Sub)
            | Op::Affine(_)
            | Op::Reshape
            | Op::Permute(_)
            | Op::Slice { .. }
            | Op::Concat { .. }
            | Op::Reduce { kind: Reduction::Max, .. } => open.extend(node.inputs.iter().copied()),
            _ => {}
        }
    }
    false
}
