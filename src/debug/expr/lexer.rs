//! From text to tokens.

use std::ops::Range;

use super::error::{ExprError, Fault};
use crate::text::{Msg, escape};

/// Longest text that is read, in characters.
pub const LONGEST: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Number(f64),
    /// A word, dots inside included: `encoder.0.ffn.act`.
    Name(String),
    /// A name in double quotes: never a function or a word of the language.
    Quoted(String),
    /// A sign, in its plain spelling.
    Sign(&'static str),
}

/// A token and where it is, in characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned {
    pub token: Token,
    pub at: Range<usize>,
}

/// Signs and their plain spelling; longer ones first.
const SIGNS: &[(&str, &str)] = &[
    ("+/-", "±"),
    ("+-", "±"),
    ("±", "±"),
    ("==", "="),
    ("!=", "!="),
    ("≠", "!="),
    ("<=", "<="),
    ("≤", "<="),
    (">=", ">="),
    ("≥", ">="),
    ("&&", "and"),
    ("||", "or"),
    ("**", "^"),
    ("..", ".."),
    ("=", "="),
    ("<", "<"),
    (">", ">"),
    ("!", "not"),
    ("+", "+"),
    ("-", "-"),
    ("−", "-"),
    ("*", "*"),
    ("×", "*"),
    ("·", "*"),
    ("/", "/"),
    ("^", "^"),
    ("@", "@"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    (",", ","),
    (":", ":"),
    (".", "."),
];

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Marks of derived quantities (`h'`, `h′`, `x̂`, `∂L`) are letters of names too.
fn in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '\'' | '′' | '∂' | '\u{300}'..='\u{36f}' | '₀'..='₉' | '⁰'..='⁹')
}

pub fn lex(text: &str) -> Result<Vec<Spanned>, ExprError> {
    let chars: Vec<char> = text.chars().collect();
    let wrong = |at: Range<usize>, msg| Err(ExprError::new(Fault::Syntax, at, msg));
    if chars.len() > LONGEST {
        let msg = Msg::new("expr.too_long").arg("most", LONGEST);
        return wrong(LONGEST..LONGEST + 1, msg);
    }
    let mut tokens = Vec::new();
    // Inside of indices a colon is a range.
    let mut brackets = 0_usize;
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        if c.is_whitespace() {
            i += 1;
            continue;
        }
        let start = i;
        let token = if c.is_ascii_digit() || c == '.' && chars.get(i + 1).is_some_and(char::is_ascii_digit) {
            i = number_end(&chars, i);
            let digits: String = chars[start..i].iter().collect();
            if chars.get(i).copied().is_some_and(in_name) {
                while chars.get(i).copied().is_some_and(in_name) {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                return wrong(start..i, Msg::new("expr.bad_number").arg("text", escape(&word)));
            }
            match digits.parse() {
                Ok(x) => Token::Number(x),
                Err(_) => {
                    return wrong(start..i, Msg::new("expr.bad_number").arg("text", digits));
                }
            }
        } else if begins_name(c) || c == '∂' {
            i = name_end(&chars, i, brackets == 0);
            Token::Name(chars[start..i].iter().collect())
        } else if c == '"' {
            let Some(len) = chars[i + 1..].iter().position(|c| *c == '"') else {
                return wrong(start..start + 1, Msg::new("expr.open_quote"));
            };
            i += len + 2;
            Token::Quoted(chars[start + 1..i - 1].iter().collect())
        } else {
            let fits = |sign: &str| sign.chars().enumerate().all(|(j, s)| chars.get(i + j) == Some(&s));
            let Some((sign, plain)) = SIGNS.iter().find(|(s, _)| fits(s)) else {
                let msg = Msg::new("expr.bad_sign").arg("sign", escape(&c.to_string()));
                return wrong(i..i + 1, msg);
            };
            i += sign.chars().count();
            match *plain {
                "[" => brackets += 1,
                "]" => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            Token::Sign(plain)
        };
        tokens.push(Spanned { token, at: start..i });
    }
    Ok(tokens)
}

/// One past a number that begins at `i`. `1..3` is a range, not `1.` and `.3`.
fn number_end(chars: &[char], mut i: usize) -> usize {
    let digits = |mut i: usize| {
        while chars.get(i).is_some_and(char::is_ascii_digit) {
            i += 1;
        }
        i
    };
    i = digits(i);
    let range = chars.get(i + 1) == Some(&'.');
    // `2.T` and `2.sum()` are no numbers with a point.
    let named = chars.get(i + 1).copied().is_some_and(begins_name);
    if chars.get(i) == Some(&'.') && !range && !named {
        i = digits(i + 1);
    }
    if matches!(chars.get(i), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(i + 1), Some('+' | '-')));
        if chars.get(i + 1 + sign).is_some_and(char::is_ascii_digit) {
            i = digits(i + 1 + sign);
        }
    }
    i
}

/// One past a name that begins at `i`: words joined by `.`, `::`, and `:` where `colon`.
fn name_end(chars: &[char], mut i: usize, colon: bool) -> usize {
    let goes_on = |i: usize| chars.get(i).copied().is_some_and(|c| in_name(c) && c != '\'');
    loop {
        while chars.get(i).copied().is_some_and(in_name) {
            i += 1;
        }
        if chars.get(i) == Some(&'.') && goes_on(i + 1) {
            i += 1;
        } else if chars.get(i) == Some(&':') && chars.get(i + 1) == Some(&':') && goes_on(i + 2) {
            i += 2;
        } else if colon && chars.get(i) == Some(&':') && goes_on(i + 1) {
            i += 1;
        } else {
            return i;
        }
    }
}
