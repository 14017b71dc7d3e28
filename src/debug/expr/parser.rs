//! From tokens to a tree: operators by how tightly they bind.

use std::ops::Range;

use super::ast::{Arithmetic, Comparison, Expr, Kind, Node};
use super::error::{ExprError, Fault};
use super::lexer::{Spanned, Token, lex};
use crate::text::{Msg, escape};

/// Deepest tree that is read.
const DEEPEST: usize = 64;

/// How tightly operators bind.
pub(super) mod binding {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const SUM: u8 = 5;
    pub const TERM: u8 = 6;
    pub const SIGN: u8 = 7;
    pub const POWER: u8 = 8;
}

pub(super) type Result<T> = std::result::Result<T, ExprError>;

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// What cannot be read, with its place and how to fix it.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self::new(parse(text)?, text))
    }
}

/// Reads the whole of `text`.
fn parse(text: &str) -> Result<Node> {
    let tokens = lex(text)?;
    let end = text.chars().count();
    let mut p = Parser { tokens, at: 0, end, level: 0 };
    let node = p.expression(0)?;
    match p.peek() {
        None => Ok(node),
        Some(_) => Err(p.unexpected("expr.left_over")),
    }
}

pub(super) struct Parser {
    pub(super) tokens: Vec<Spanned>,
    pub(super) at: usize,
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
    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.token)
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(s)) if *s == sign)
    }

    pub(super) fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn need(&mut self, sign: &'static str) -> Result<()> {
        if self.take(sign) {
            return Ok(());
        }
        let mut e = self.unexpected("expr.expected");
        e.msg = e.msg.arg("wanted", sign);
        Err(e)
    }

    /// Where the next token is; the end of the text after the last.
    pub(super) fn here(&self) -> Range<usize> {
        let end = self.end..self.end + 1;
        self.tokens.get(self.at).map_or(end, |t| t.at.clone())
    }

    /// One past the last token taken.
    pub(super) fn behind(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].at.end)
    }

    pub(super) fn unexpected(&self, key: &'static str) -> ExprError {
        let found = match self.peek() {
            None => return ExprError::new(Fault::Syntax, self.here(), Msg::new("expr.ends_early")),
            Some(Token::Number(x)) => x.to_string(),
            Some(Token::Name(n) | Token::Quoted(n)) => escape(n).into_owned(),
            Some(Token::Sign(s)) => (*s).to_owned(),
        };
        ExprError::new(Fault::Syntax, self.here(), Msg::new(key).arg("found", found))
    }

    pub(super) fn node(&self, kind: Kind, at: Range<usize>) -> Result<Node> {
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
    pub(super) fn expression(&mut self, least: u8) -> Result<Node> {
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
                return Err(ExprError::new(Fault::Syntax, sign, Msg::new("expr.chained")));
            }
            self.at += 1;
            // A power binds its right side as a sign does: 2^-1, and from the right: 2^3^2.
            let right = if binds == binding::POWER { binding::SIGN } else { binds + 1 };
            let right = self.expression(right)?;
            let at = left.at.start..right.at.end;
            left = match infix {
                Infix::Compare(c) => self.compared(c, left, right, sign)?,
                Infix::Logic(both) => {
                    truth(&left)?;
                    truth(&right)?;
                    self.node(Kind::Logic(both, left.into(), right.into()), at)?
                }
                Infix::Arithmetic(op) => self.node(Kind::Arithmetic(op, left.into(), right.into()), at)?,
                Infix::Product => self.node(Kind::Product(left.into(), right.into()), at)?,
            };
        }
        self.level -= 1;
        Ok(left)
    }

    fn compared(&mut self, c: Comparison, left: Node, right: Node, sign: Range<usize>) -> Result<Node> {
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
                // A name keeps its own place, which errors point at.
                if !matches!(inner.kind, Kind::Name(_)) {
                    inner.at = at.start..self.behind();
                }
                Ok(inner)
            }
            Token::Sign(_) => Err(self.unexpected("expr.expected_value")),
        }
    }
}

/// Whether `and`, `or` and `not` can take it.
fn truth(node: &Node) -> Result<()> {
    if node.is_truth() {
        return Ok(());
    }
    Err(ExprError::new(Fault::Syntax, node.at.clone(), Msg::new("expr.not_truth")))
}
