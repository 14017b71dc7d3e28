//! The formula of a tensor, from the program: `score1 = Q1 · K1ᵀ / √2`.

use crate::program::{
    Affine, Binary, Constant, Leaf, NodeId, Op, Pick, Program, Reduction, Role, ScopeKind, Step, Unary,
};
use crate::text::NumberFormat;

/// The right-hand side of `node`'s formula; `names` gives the symbol of a tensor. Empty for a given tensor.
pub fn formula(program: &Program, node: NodeId, names: &dyn Fn(NodeId) -> String) -> String {
    if let Some(whole) = composite(program, node, names) {
        return whole;
    }
    match program.node(node).op {
        Op::Leaf(_) => String::new(),
        _ => Writer { program, names }.write(node, true).0,
    }
}

/// The name of a whole composite, where `node` is its result.
fn composite(program: &Program, node: NodeId, names: &dyn Fn(NodeId) -> String) -> Option<String> {
    let scope = program.scope(program.node(node).scope);
    Some(match scope.kind {
        ScopeKind::Softmax { input, output } if output == node => {
            format!("softmax({})", names(input))
        }
        ScopeKind::LayerNorm { input, output, .. } if output == node => {
            format!("LayerNorm({})", names(input))
        }
        ScopeKind::RmsNorm { input, output, .. } if output == node => {
            format!("RMSNorm({})", names(input))
        }
        _ => return None,
    })
}

struct Writer<'a> {
    program: &'a Program,
    names: &'a dyn Fn(NodeId) -> String,
}

impl Writer<'_> {
    /// The formula and whether it is a sum (which takes brackets inside a product).
    fn write(&self, id: NodeId, root: bool) -> (String, bool) {
        let node = self.program.node(id);
        if !root && !node.inline {
            let name = (self.names)(id);
            let sum = is_sum(&name);
            return (name, sum);
        }
        if let Some((one, other)) = self.smaller(id) {
            return (format!("min({one}, {other})"), false);
        }
        let x = |i: usize| self.write(node.inputs[i], false);
        let tight = |i: usize| {
            let (text, sum) = x(i);
            if sum { format!("({text})") } else { text }
        };
        let plain = |text: String| (text, false);
        match &node.op {
            // A number given in the line itself.
            Op::Leaf(Leaf::Constant(Constant::Filled(c))) if node.inline => plain(constant(*c)),
            Op::Leaf(_) => plain((self.names)(id)),
            Op::MatMul { transpose_a, transpose_b } => {
                let t = |on: &bool| if *on { "ᵀ" } else { "" };
                plain(format!("{}{} · {}{}", tight(0), t(transpose_a), tight(1), t(transpose_b)))
            }
            Op::Unary(f) => plain(match f {
                Unary::Neg => format!("-{}", tight(0)),
                Unary::Square => {
                    let text = tight(0);
                    // ∂L/∂E² would be the derivative by a square.
                    if text.contains('/') && !text.starts_with('(') {
                        format!("({text})²")
                    } else {
                        format!("{text}²")
                    }
                }
                Unary::Sqrt => format!("√({})", x(0).0),
                Unary::Abs => format!("|{}|", x(0).0),
                Unary::Relu => format!("ReLU({})", x(0).0),
                Unary::Sigmoid => format!("σ({})", x(0).0),
                Unary::Step => format!("[{} > 0]", x(0).0),
                f => format!("{}({})", f.name(), x(0).0),
            }),
            Op::Binary(f) => match f {
                Binary::Add => (format!("{} + {}", x(0).0, x(1).0), true),
                Binary::Sub => (format!("{} - {}", x(0).0, tight(1)), true),
                // Both of its ways are this function.
                Binary::LnOr => plain(format!("ln({})", x(0).0)),
                Binary::Mul | Binary::MulOrZero => plain(format!("{} ⊙ {}", tight(0), tight(1))),
                Binary::Div | Binary::DivOrZero => plain(format!("{} / {}", tight(0), self.divisor(node.inputs[1]))),
                Binary::Max => plain(format!("max({}, {})", x(0).0, x(1).0)),
            },
            Op::Affine(f) => match f {
                Affine::Add(c) => (format!("{} + {}", x(0).0, constant(*c)), true),
                Affine::Mul(c) => plain(format!("{} × {}", tight(0), constant(*c))),
                Affine::Div(c) => plain(format!("{} / {}", tight(0), constant(*c))),
            },
            Op::Reduce { kind, .. } => plain(match kind {
                Reduction::Sum => format!("Σ {}", tight(0)),
                Reduction::Mean => format!("mean({})", x(0).0),
                Reduction::Max => format!("max({})", x(0).0),
            }),
            Op::CumSum => plain(format!("cumsum({})", x(0).0)),
            // The halves that rotary positions turn against each other.
            Op::Slice { .. } if *node.name.last() == Role::Step(Step::First) => plain(format!("{}₁", tight(0))),
            Op::Slice { .. } if *node.name.last() == Role::Step(Step::Second) => plain(format!("{}₂", tight(0))),
            Op::Reshape | Op::Permute(_) | Op::Slice { .. } => x(0),
            Op::Concat { .. } => {
                let parts: Vec<String> = (0..node.inputs.len()).map(|i| x(i).0).collect();
                plain(format!("[{}]", parts.join(" | ")))
            }
            Op::Gather(Pick::Rows) => plain(format!("{}[{}]", tight(0), x(1).0)),
            Op::Gather(Pick::Along) => plain(format!("{}[…, {}]", tight(0), x(1).0)),
            Op::ScatterAdd(_) => {
                let added = match self.filled(node.inputs[2]) {
                    Some(-1.0) => format!("onehot({})", x(1).0),
                    _ => format!("scatter({} → {})", x(2).0, x(1).0),
                };
                match (self.filled(node.inputs[0]), self.filled(node.inputs[2])) {
                    (Some(0.0), _) => plain(added),
                    (_, Some(-1.0)) => (format!("{} - {added}", x(0).0), true),
                    _ => (format!("{} + {added}", x(0).0), true),
                }
            }
            Op::MaskFill { .. } => plain(format!("mask({}, {})", x(0).0, x(1).0)),
            Op::ArgMax => plain(format!("argmax({})", x(0).0)),
            Op::ArgSort => plain(format!("argsort({})", x(0).0)),
            Op::Sample => plain(format!("sample({}, {})", x(0).0, x(1).0)),
        }
    }

    /// The two sides of min(a, b), which a program has as −max(−a, −b).
    fn smaller(&self, id: NodeId) -> Option<(String, String)> {
        let inline = |id: NodeId| Some(self.program.node(id)).filter(|n| n.inline);
        let node = self.program.node(id);
        let Op::Unary(Unary::Neg) = node.op else {
            return None;
        };
        let larger = inline(node.inputs[0])?;
        let Op::Binary(Binary::Max) = larger.op else {
            return None;
        };
        let negated = |id: NodeId| {
            if let Some(c) = self.filled(id) {
                return Some(constant(-c));
            }
            match inline(id)? {
                n if matches!(n.op, Op::Unary(Unary::Neg)) => Some(self.write(n.inputs[0], false).0),
                _ => None,
            }
        };
        Some((negated(larger.inputs[0])?, negated(larger.inputs[1])?))
    }

    /// The number that a constant in the line is filled with.
    fn filled(&self, id: NodeId) -> Option<f64> {
        let node = self.program.node(id);
        match node.op {
            Op::Leaf(Leaf::Constant(Constant::Filled(c))) if node.inline => Some(c),
            _ => None,
        }
    }

    /// The text of a divisor: brackets around what is itself a product or quotient.
    fn divisor(&self, id: NodeId) -> String {
        let (text, sum) = self.write(id, false);
        let mut at = id;
        while self.program.node(at).inline && self.program.node(at).op.moves_only() {
            at = self.program.node(at).inputs[0];
        }
        let node = self.program.node(at);
        let product = matches!(
            node.op,
            Op::Binary(Binary::Mul | Binary::Div | Binary::DivOrZero)
                | Op::Affine(Affine::Mul(_) | Affine::Div(_))
                | Op::MatMul { .. }
                | Op::Unary(Unary::Neg)
        );
        if sum || node.inline && product { format!("({text})") } else { text }
    }
}

/// Whether a name reads as a sum: `1-β₁ᵗ`.
fn is_sum(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit()) && name.contains(['-', '+'])
}

/// √2 rather than 1.4142135623730951.
fn constant(c: f64) -> String {
    let square = c * c;
    let near = square.round();
    if c > 0.0 && c.fract() != 0.0 && (2.0..1e6).contains(&near) && (square - near).abs() < 1e-9 * near {
        return format!("√{near}");
    }
    let (text, power) = (format!("{c}"), format!("{c:e}"));
    if power.len() < text.len() && power.len() <= 8 {
        power
    } else if text.len() > 8 {
        NumberFormat::Decimals(4).format(c)
    } else {
        text
    }
}
