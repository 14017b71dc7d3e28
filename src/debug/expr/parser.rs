//! From tokens to a tree: operators by how tightly they bind.

use std::ops::Range;

use super::ast::{Arithmetic, AxisNode, Comparison, Kind, Node, Pick, PickNode};
use super::error::{ExprError, Fault};
use super::functions::{FUNCTIONS, Function, axis_named};
use super::lexer::{Spanned, Token, lex};
use crate::scenario::diagnostic::nearest;
use crate::text::{Msg, escape};

/// Deepest tree that is read.
const DEEPEST: usize = 64;

/// How tightly operators bind.
mod binding {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const SUM: u8 = 5;
    pub const TERM: u8 = 6;
    pub const SIGN: u8 = 7;
    pub const POWER: u8 = 8;
}

type Result<T> = std::result::Result<T, ExprError>;

/// Reads the whole of `text`.
pub(super) fn parse(text: &str) -> Result<Node> {
    let tokens = lex(text)?;
    let end = text.chars().count();
    let mut p = Parser {
        tokens,
        at: 0,
        end,
        level: 0,
    };
    let node = p.expression(0)?;
    match p.peek() {
        None => Ok(node),
        Some(_) => Err(p.unexpected("expr.left_over")),
    }
}

struct Parser {
    tokens: Vec<Spanned>,
    at: usize,
    /// Characters of the text.
    end: usize,
    level: usize,
}

/// What an operator between two operands makes of them.
enum Infix {
    Logic(bool),
    Compare(Comparison),
    Arithmetic(Arithmetic),
    Product,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.token)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(s)) if *s == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, sign: &'static str) -> Result<()> {
        if self.take(sign) {
            return Ok(());
        }
        let mut e = self.unexpected("expr.expected");
        e.msg = e.msg.arg("wanted", sign);
        Err(e)
    }

    /// Where the next token stands; the end of the text after the last.
    fn here(&self) -> Range<usize> {
        let end = self.end..self.end + 1;
        self.tokens.get(self.at).map_or(end, |t| t.at.clone())
    }

    /// One past the last token taken.
    fn behind(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].at.end)
    }

    fn unexpected(&self, key: &'static str) -> ExprError {
        let found = match self.peek() {
            None => return ExprError::new(Fault::Syntax, self.here(), Msg::new("expr.ends_early")),
            Some(Token::Number(x)) => x.to_string(),
            Some(Token::Name(n) | Token::Quoted(n)) => escape(n).into_owned(),
            Some(Token::Sign(s)) => (*s).to_owned(),
        };
        ExprError::new(
            Fault::Syntax,
            self.here(),
            Msg::new(key).arg("found", found),
        )
    }

    fn node(&self, kind: Kind, at: Range<usize>) -> Result<Node> {
        let node = Node::new(kind, at);
        if node.depth > DEEPEST {
            let msg = Msg::new("expr.too_deep").arg("most", DEEPEST);
            return Err(ExprError::new(Fault::Syntax, self.here(), msg));
        }
        Ok(node)
    }

    /// The operator that comes next, and how tightly it binds.
    fn infix(&self) -> Option<(Infix, u8)> {
        use binding::{AND, COMPARE, OR, POWER, SUM, TERM};
        Some(match self.peek()? {
            Token::Name(n) if n == "or" => (Infix::Logic(false), OR),
            Token::Name(n) if n == "and" => (Infix::Logic(true), AND),
            Token::Sign(s) => match *s {
                "or" => (Infix::Logic(false), OR),
                "and" => (Infix::Logic(true), AND),
                "=" => (Infix::Compare(Comparison::Equal), COMPARE),
                "!=" => (Infix::Compare(Comparison::Unequal), COMPARE),
                "<" => (Infix::Compare(Comparison::Less), COMPARE),
                "<=" => (Infix::Compare(Comparison::LessOrEqual), COMPARE),
                ">" => (Infix::Compare(Comparison::Greater), COMPARE),
                ">=" => (Infix::Compare(Comparison::GreaterOrEqual), COMPARE),
                "+" => (Infix::Arithmetic(Arithmetic::Add), SUM),
                "-" => (Infix::Arithmetic(Arithmetic::Sub), SUM),
                "*" => (Infix::Arithmetic(Arithmetic::Mul), TERM),
                "/" => (Infix::Arithmetic(Arithmetic::Div), TERM),
                "@" => (Infix::Product, TERM),
                "^" => (Infix::Arithmetic(Arithmetic::Pow), POWER),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// An expression whose operators bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Node> {
        self.level += 1;
        if self.level > DEEPEST {
            let msg = Msg::new("expr.too_deep").arg("most", DEEPEST);
            return Err(ExprError::new(Fault::Syntax, self.here(), msg));
        }
        let mut left = self.prefix()?;
        let mut compared = false;
        while let Some((infix, binds)) = self.infix() {
            if binds < least {
                break;
            }
            let sign = self.here();
            if matches!(infix, Infix::Compare(_)) && std::mem::replace(&mut compared, true) {
                return Err(ExprError::new(
                    Fault::Syntax,
                    sign,
                    Msg::new("expr.chained"),
                ));
            }
            self.at += 1;
            // A power binds its right side as a sign does: 2^-1, and from the right: 2^3^2.
            let right = if binds == binding::POWER {
                binding::SIGN
            } else {
                binds + 1
            };
            let right = self.expression(right)?;
            let at = left.at.start..right.at.end;
            left = match infix {
                Infix::Compare(c) => self.compared(c, left, right, sign)?,
                Infix::Logic(both) => {
                    truth(&left)?;
                    truth(&right)?;
                    self.node(Kind::Logic(both, left.into(), right.into()), at)?
                }
                Infix::Arithmetic(op) => {
                    self.node(Kind::Arithmetic(op, left.into(), right.into()), at)?
                }
                Infix::Product => self.node(Kind::Product(left.into(), right.into()), at)?,
            };
        }
        self.level -= 1;
        Ok(left)
    }

    fn compared(
        &mut self,
        c: Comparison,
        left: Node,
        right: Node,
        sign: Range<usize>,
    ) -> Result<Node> {
        for side in [&left, &right] {
            if matches!(side.kind, Kind::Number(x) if x.is_nan()) {
                let msg = Msg::new("expr.equals_nan");
                return Err(ExprError::new(Fault::Syntax, side.at.clone(), msg));
            }
        }
        let tolerance = if self.is("±") {
            if !matches!(c, Comparison::Equal | Comparison::Unequal) {
                let msg = Msg::new("expr.tolerance_of_order");
                return Err(ExprError::new(Fault::Syntax, sign, msg));
            }
            self.at += 1;
            Some(Box::new(self.expression(binding::SUM)?))
        } else {
            None
        };
        let at = left.at.start..self.behind();
        self.node(Kind::Compare(c, left.into(), right.into(), tolerance), at)
    }

    fn prefix(&mut self) -> Result<Node> {
        let start = self.here().start;
        if self.take("-") {
            let inner = self.expression(binding::SIGN)?;
            let at = start..inner.at.end;
            return match inner.kind {
                Kind::Number(x) => self.node(Kind::Number(-x), at),
                _ => self.node(Kind::Negative(inner.into()), at),
            };
        }
        if self.take("+") {
            return self.expression(binding::SIGN);
        }
        if self.is("not") || matches!(self.peek(), Some(Token::Name(n)) if n == "not") {
            self.at += 1;
            let inner = self.expression(binding::NOT)?;
            truth(&inner)?;
            let at = start..inner.at.end;
            return self.node(Kind::Not(inner.into()), at);
        }
        let atom = self.atom()?;
        self.postfix(atom)
    }

    fn atom(&mut self) -> Result<Node> {
        let at = self.here();
        let Some(token) = self.peek().cloned() else {
            return Err(self.unexpected("expr.expected_value"));
        };
        match token {
            Token::Number(x) => {
                self.at += 1;
                self.node(Kind::Number(x), at)
            }
            Token::Quoted(name) => {
                self.at += 1;
                self.node(Kind::Name(name), at)
            }
            Token::Name(name) => {
                self.at += 1;
                self.named(&name, at)
            }
            Token::Sign("(") => {
                self.at += 1;
                let mut inner = self.expression(0)?;
                self.need(")")?;
                inner.at = at.start..self.behind();
                Ok(inner)
            }
            Token::Sign(_) => Err(self.unexpected("expr.expected_value")),
        }
    }

    /// A name: a function, a word of the language, a place; with `.T` and methods behind it.
    fn named(&mut self, name: &str, at: Range<usize>) -> Result<Node> {
        if matches!(name, "and" | "or" | "not") {
            self.at -= 1;
            return Err(self.unexpected("expr.expected_value"));
        }
        let call = self.is("(");
        if call && !name.contains('.') {
            let f = function(name, at.clone())?;
            return self.call(f, None, at.start);
        }
        if name == "any"
            && let Some(Token::Name(what)) = self.peek()
            && let Some(f @ (Function::Nan | Function::Inf)) = Function::find(what)
        {
            self.at += 1;
            let end = self.behind();
            let it = self.node(Kind::It, at.clone())?;
            let count = self.node(Kind::Call(f, vec![it], None), at.start..end)?;
            let zero = self.node(Kind::Number(0.0), at.clone())?;
            let kind = Kind::Compare(Comparison::Greater, count.into(), zero.into(), None);
            return self.node(kind, at.start..end);
        }
        let kind = match name {
            "inf" => Some(Kind::Number(f64::INFINITY)),
            "nan" => Some(Kind::Number(f64::NAN)),
            "it" => Some(Kind::It),
            "before" => Some(Kind::Before),
            "changed" => Some(Kind::Changed),
            _ => None,
        };
        if let Some(kind) = kind {
            return self.node(kind, at);
        }
        if let Some(f) = Function::find(name) {
            let it = self.node(Kind::It, at.clone())?;
            return self.node(Kind::Call(f, vec![it], None), at);
        }
        // `A1.T.sum(`: the place ends where the first `.T` or the method begins.
        let mut parts: Vec<&str> = name.split('.').collect();
        let mut behind = Vec::new();
        if call && parts.len() > 1 {
            behind.extend(parts.pop());
        }
        while parts.len() > 1 && parts.last() == Some(&"T") {
            behind.extend(parts.pop());
        }
        let place = parts.join(".");
        let end = at.start + place.chars().count();
        let node = match place.as_str() {
            "it" => Kind::It,
            "before" => Kind::Before,
            "changed" => Kind::Changed,
            _ => Kind::Name(place),
        };
        let node = self.node(node, at.start..end)?;
        behind.reverse();
        self.dotted(node, &behind, end, call)
    }

    /// `.T` and methods behind a value; `end` is where the value ends.
    fn dotted(
        &mut self,
        mut node: Node,
        parts: &[&str],
        mut end: usize,
        call: bool,
    ) -> Result<Node> {
        for (i, part) in parts.iter().enumerate() {
            let at = end + 1..end + 1 + part.chars().count();
            end = at.end;
            if *part == "T" {
                let whole = node.at.start..end;
                node = self.node(Kind::Transposed(node.into()), whole)?;
            } else if call && i + 1 == parts.len() {
                let f = function(part, at)?;
                let start = node.at.start;
                node = self.call(f, Some(node), start)?;
            } else {
                let msg = Msg::new("expr.no_property").arg("name", escape(part));
                return Err(ExprError::new(Fault::Syntax, at, msg));
            }
        }
        Ok(node)
    }

    /// Arguments in brackets; `of` is what stands before a method.
    fn call(&mut self, f: Function, of: Option<Node>, start: usize) -> Result<Node> {
        let open = self.here();
        self.need("(")?;
        let method = of.is_some();
        let mut args: Vec<Node> = of.into_iter().collect();
        let mut axis = None;
        while !self.is(")") {
            if args.len() + usize::from(axis.is_some()) > usize::from(method) {
                self.need(",")?;
            }
            let at = self.here();
            let named = matches!(self.peek(), Some(Token::Name(n)) if n == "axis")
                && matches!(self.tokens.get(self.at + 1), Some(t) if t.token == Token::Sign("="));
            if named {
                self.at += 2;
                if !f.reduces() {
                    let msg = Msg::new("expr.no_axis").arg("name", f.name());
                    return Err(ExprError::new(Fault::Syntax, at, msg));
                }
                axis = Some(self.axis()?);
            } else {
                args.push(self.expression(0)?);
            }
        }
        self.need(")")?;
        let at = start..self.behind();
        let most = if f.takes_two() && axis.is_none() {
            2
        } else {
            1
        };
        if args.is_empty() {
            // `max()` is that of the tensor a condition is about.
            args.push(self.node(Kind::It, at.clone())?);
        }
        if args.len() > most {
            let msg = Msg::new("expr.arguments")
                .arg("name", f.name())
                .arg("most", most)
                .arg("found", args.len());
            return Err(ExprError::new(Fault::Syntax, open.start..at.end, msg));
        }
        self.node(Kind::Call(f, args, axis), at)
    }

    fn axis(&mut self) -> Result<AxisNode> {
        let at = self.here();
        if let Some(Token::Name(name)) = self.peek()
            && let Some(axis) = axis_named(name)
        {
            self.at += 1;
            return Ok(AxisNode::Named(axis, at));
        }
        Ok(AxisNode::Place(self.expression(binding::SUM)?.into()))
    }

    fn postfix(&mut self, mut node: Node) -> Result<Node> {
        loop {
            if self.take("[") {
                let mut picks = Vec::new();
                while !self.is("]") {
                    if !picks.is_empty() {
                        self.need(",")?;
                    }
                    picks.push(self.pick()?);
                }
                if picks.is_empty() {
                    return Err(self.unexpected("expr.expected_value"));
                }
                self.need("]")?;
                let at = node.at.start..self.behind();
                node = self.node(Kind::Index(node.into(), picks), at)?;
            } else if self.is(".") {
                self.at += 1;
                let Some(Token::Name(name)) = self.peek().cloned() else {
                    return Err(self.unexpected("expr.expected_method"));
                };
                self.at += 1;
                let call = self.is("(");
                let end = self.behind() - name.chars().count() - 1;
                let parts: Vec<&str> = name.split('.').collect();
                node = self.dotted(node, &parts, end, call)?;
            } else {
                return Ok(node);
            }
        }
    }

    fn pick(&mut self) -> Result<PickNode> {
        let start = self.here().start;
        let mut axis = None;
        if let (Some(Token::Name(name)), Some(next)) = (self.peek(), self.tokens.get(self.at + 1))
            && next.token == Token::Sign("=")
        {
            axis = axis_named(name);
            if axis.is_none() {
                let msg = Msg::new("expr.unknown_axis").arg("name", escape(name));
                return Err(ExprError::new(Fault::Syntax, self.here(), msg));
            }
            self.at += 2;
        }
        let ends = |p: &Self| p.is(",") || p.is("]");
        let range = |p: &Self| p.is(":") || p.is("..");
        let from = if range(self) {
            None
        } else {
            Some(self.expression(binding::SUM)?)
        };
        let pick = match from {
            Some(place) if !range(self) => Pick::At(place),
            from => {
                self.at += 1;
                let to = if ends(self) {
                    None
                } else {
                    Some(self.expression(binding::SUM)?)
                };
                Pick::Range(from, to)
            }
        };
        let at = start..self.behind();
        Ok(PickNode { axis, pick, at })
    }
}

/// Whether `and`, `or` and `not` can take it.
fn truth(node: &Node) -> Result<()> {
    if node.is_truth() {
        return Ok(());
    }
    Err(ExprError::new(
        Fault::Syntax,
        node.at.clone(),
        Msg::new("expr.not_truth"),
    ))
}

fn function(name: &str, at: Range<usize>) -> Result<Function> {
    Function::find(name).ok_or_else(|| {
        let e = ExprError::new(
            Fault::Name,
            at,
            Msg::new("expr.unknown_function").arg("name", escape(name)),
        );
        match nearest(name, FUNCTIONS.iter().map(|f| f.0)) {
            Some(near) => e.help(Msg::new("diagnostic.did_you_mean").arg("name", near)),
            None => e.help(Msg::new("expr.functions").arg("all", all_functions())),
        }
    })
}

fn all_functions() -> String {
    FUNCTIONS.iter().map(|f| f.0).collect::<Vec<_>>().join(", ")
}
