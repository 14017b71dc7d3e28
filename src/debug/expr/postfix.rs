//! Names, calls, and what follows a value: indices, `.T`, methods.

use std::ops::Range;

use super::ast::{AxisNode, Comparison, Kind, Node, Pick, PickNode};
use super::error::{ExprError, Fault};
use super::functions::{FUNCTIONS, Function, axis_named};
use super::lexer::Token;
use super::parser::{Parser, Result, binding};
use crate::text::{Msg, escape, nearest};

impl Parser {
    /// A name: a function, a word of the language, a place; with `.T` and methods behind it.
    pub(super) fn named(&mut self, name: &str, at: Range<usize>) -> Result<Node> {
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
    fn dotted(&mut self, mut node: Node, parts: &[&str], mut end: usize, call: bool) -> Result<Node> {
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

    /// Arguments in brackets; `of` is what comes before a method.
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
        let most = if f.takes_two() && axis.is_none() { 2 } else { 1 };
        if args.is_empty() {
            // `max()` is that of the tensor a condition is about.
            args.push(self.node(Kind::It, at.clone())?);
        }
        if args.len() > most {
            let msg = Msg::new("expr.arguments").arg("name", f.name()).arg("most", most).arg("found", args.len());
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

    pub(super) fn postfix(&mut self, mut node: Node) -> Result<Node> {
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
        let from = if range(self) { None } else { Some(self.expression(binding::SUM)?) };
        let pick = match from {
            Some(place) if !range(self) => Pick::At(place),
            from => {
                self.at += 1;
                let to = if ends(self) { None } else { Some(self.expression(binding::SUM)?) };
                Pick::Range(from, to)
            }
        };
        let at = start..self.behind();
        Ok(PickNode { axis, pick, at })
    }
}

fn function(name: &str, at: Range<usize>) -> Result<Function> {
    Function::find(name).ok_or_else(|| {
        let e = ExprError::new(Fault::Name, at, Msg::new("expr.unknown_function").arg("name", escape(name)));
        match nearest(name, FUNCTIONS.iter().map(|f| f.0)) {
            Some(near) => e.help(Msg::new("diagnostic.did_you_mean").arg("name", near)),
            None => e.help(Msg::new("expr.functions").arg("all", all_functions())),
        }
    })
}

fn all_functions() -> String {
    FUNCTIONS.iter().map(|f| f.0).collect::<Vec<_>>().join(", ")
}
