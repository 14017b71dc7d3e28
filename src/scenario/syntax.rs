//! From text to a scenario, and from what the RON reader says to what a user can fix.

use ron::error::Error;

use super::diagnostic::{Diagnostic, Problem};
use super::place::{self, Segment};
use super::schema::Scenario;
use super::unique;
use crate::text::{Msg, escape, nearest};

/// Deepest nesting of brackets. A scenario has about ten levels; the rest is room.
const MAX_LEVELS: usize = 64;

/// Reads the scenario in `text`, which is called `file` in messages. A byte order mark is tolerated.
///
/// # Errors
/// What is wrong with the text, where, and how to fix it.
pub fn read(file: &str, text: &str) -> Result<Scenario, Box<Diagnostic>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let at = |byte: usize, problem: Problem| {
        let place = Some(place::line_column(text, byte));
        Box::new(Diagnostic::placed(file, text, place, problem))
    };
    if text.trim().is_empty() {
        return Err(Box::new(Diagnostic::whole(
            file,
            Msg::new("scenario.empty"),
            Some(Msg::new("scenario.syntax_help")),
        )));
    }
    // Before anything recurses over the text.
    if let Some(byte) = place::too_deep(text, MAX_LEVELS) {
        let msg = Msg::new("scenario.nesting").arg("most", MAX_LEVELS);
        return Err(at(byte, Problem::new("", msg).help(Msg::new("scenario.syntax_help"))));
    }
    let wrong = match super::options().from_str(text) {
        Ok(scenario) => return Ok(scenario),
        Err(e) => e,
    };
    let (byte, problem) = explain(text, &wrong);
    Err(at(byte, problem))
}

/// Where it is wrong, and what.
fn explain(text: &str, error: &ron::error::SpannedError) -> (usize, Problem) {
    let start = error.span.start;
    let byte = place::byte_at(text, (start.line, start.col));
    // What the reader misses comes after a value that is right: it is missing in what that value is in.
    let missing = matches!(
        error.code,
        Error::MissingStructField { .. }
            | Error::ExpectedComma
            | Error::ExpectedMapColon
            | Error::ExpectedArrayEnd
            | Error::ExpectedMapEnd
            | Error::ExpectedOptionEnd
            | Error::ExpectedStructLikeEnd
    );
    let mut path = place::path_at(text, if missing { place::open_at(text, byte).unwrap_or(0) } else { byte });
    // The reader stops before the space in front of what it does not like; at the end, the last line is shown.
    let rest = &text[byte..];
    let mut byte = byte + (rest.len() - rest.trim_start().len());
    let ended = byte >= text.len();
    if ended {
        byte = text.trim_end().len();
    }
    let found = || {
        let token = place::token_at(text, byte);
        escape(&token).into_owned()
    };
    let need = |key: &'static str| (Msg::new(key).arg("found", found()), None);
    let code = &error.code;
    let (msg, help) = match code {
        Error::NoSuchStructField { expected, found, .. } => {
            path.push(Segment::Key(found.clone()));
            (Msg::new("scenario.unknown_field").arg("name", escape(found)), names(found, expected))
        }
        Error::NoSuchEnumVariant { expected, found, .. } => {
            (Msg::new("scenario.unknown_variant").arg("name", escape(found)), names(found, expected))
        }
        Error::MissingStructField { field, .. } => {
            // The end of the struct is where the reader notices; its beginning is where a user looks.
            byte = place::open_at(text, byte).unwrap_or(byte);
            (
                Msg::new("scenario.missing_field").arg("name", field),
                Some(Msg::new("syntax.add_field").arg("name", field)),
            )
        }
        Error::DuplicateStructField { field, .. } => {
            path.push(Segment::Key((*field).to_owned()));
            (Msg::new("syntax.field_twice").arg("name", field), None)
        }
        Error::Message(why) if why.starts_with(unique::TWICE) => {
            let key = &why[unique::TWICE.len()..];
            // The reader is past the second one.
            byte = text[..byte].rfind(&format!("{key:?}")).unwrap_or(byte);
            if path.last() != Some(&Segment::Key(key.to_owned())) {
                path.push(Segment::Key(key.to_owned()));
            }
            (Msg::new("syntax.key_twice").arg("name", escape(key)), None)
        }
        Error::ExceededRecursionLimit => {
            (Msg::new("scenario.nesting").arg("most", MAX_LEVELS), Some(Msg::new("scenario.syntax_help")))
        }
        Error::ExpectedStringEnd => (Msg::new("syntax.string_end"), Some(Msg::new("syntax.string_end_help"))),
        Error::UnclosedBlockComment => {
            byte = text[..byte.min(text.len())].rfind("/*").unwrap_or(byte);
            (Msg::new("syntax.comment_end"), None)
        }
        _ if ended => ended_early(text, byte),
        Error::ExpectedComma if fraction(text, byte) => {
            byte = number_start(text, byte);
            name_before(text, byte, &mut path);
            let token = place::token_at(text, byte);
            (Msg::new("syntax.need_integer").arg("found", escape(&token)), None)
        }
        Error::ExpectedComma
        | Error::ExpectedArrayEnd
        | Error::ExpectedMapEnd
        | Error::ExpectedOptionEnd
        | Error::ExpectedStructLikeEnd => separator(text, byte),
        Error::IntegerOutOfBounds => {
            byte = number_start(text, byte);
            let token = place::token_at(text, byte);
            let key = if token.starts_with('-') { "syntax.negative" } else { "syntax.too_big" };
            (Msg::new(key).arg("found", escape(&token)), None)
        }
        Error::ExpectedInteger | Error::InvalidIntegerDigit { .. } | Error::UnderscoreAtBeginning => {
            byte = number_start(text, byte);
            let token = place::token_at(text, byte);
            (Msg::new("syntax.need_integer").arg("found", escape(&token)), None)
        }
        Error::ExpectedFloat | Error::FloatUnderscore => {
            byte = number_start(text, byte);
            let token = place::token_at(text, byte);
            (Msg::new("syntax.need_number").arg("found", escape(&token)), None)
        }
        Error::ExpectedBoolean => need("syntax.need_boolean"),
        Error::ExpectedString => {
            let (msg, _) = need("syntax.need_string");
            let curly = text[byte..].starts_with(['“', '”', '「', '\'', '‘']);
            (msg, curly.then(|| Msg::new("syntax.straight_quotes")))
        }
        Error::ExpectedArray => need("syntax.need_list"),
        Error::ExpectedMap => need("syntax.need_map"),
        Error::ExpectedMapColon => need("syntax.need_colon"),
        Error::ExpectedIdentifier | Error::InvalidIdentifier(_) => need("syntax.need_name"),
        Error::ExpectedStructLike | Error::ExpectedNamedStructLike(_) | Error::ExpectedUnit => {
            let (msg, _) = need("syntax.need_struct");
            (msg, Some(Msg::new("syntax.need_struct_help")))
        }
        Error::ExpectedOption => need("syntax.need_value"),
        Error::ExpectedDifferentStructName { expected, found }
            if text[byte + found.len()..].trim_start().starts_with(':') =>
        {
            // `Characters(corpus: …)`: the variant holds a struct, which has parentheses of its own.
            let msg = Msg::new("syntax.double_parentheses").arg("name", escape(found));
            (msg.arg("of", expected), None)
        }
        Error::ExpectedDifferentStructName { expected, found } => {
            (Msg::new("syntax.struct_name").arg("found", escape(found)).arg("expected", expected), None)
        }
        Error::ExpectedDifferentLength { expected, found } => {
            byte = place::open_at(text, byte).unwrap_or(byte);
            let digits = expected.split(|c: char| !c.is_ascii_digit());
            let wanted = digits.rev().find(|d| !d.is_empty()).unwrap_or(expected);
            let msg = Msg::new("syntax.length").arg("found", found);
            (msg.arg("wanted", wanted), None)
        }
        Error::InvalidEscape(_) => (Msg::new("syntax.escape"), Some(Msg::new("syntax.escape_help"))),
        Error::TrailingCharacters => (Msg::new("syntax.trailing").arg("found", found()), None),
        Error::UnexpectedChar(c) => (Msg::new("syntax.unexpected").arg("found", escape(&c.to_string())), None),
        Error::NoSuchExtension(name) => (Msg::new("syntax.extension").arg("name", escape(name)), None),
        Error::InvalidValueForType { expected, found } => {
            (Msg::new("syntax.need_other").arg("expected", escape(expected)).arg("found", escape(found)), None)
        }
        other => (Msg::new("scenario.syntax").arg("why", escape(&other.to_string())), None),
    };
    let of_type = matches!(
        code,
        Error::ExpectedArray
            | Error::ExpectedMap
            | Error::ExpectedBoolean
            | Error::ExpectedString
            | Error::ExpectedFloat
            | Error::ExpectedInteger
            | Error::ExpectedStructLike
            | Error::ExpectedNamedStructLike(_)
            | Error::ExpectedUnit
            | Error::ExpectedIdentifier
            | Error::SuggestRawIdentifier(_)
            | Error::InvalidValueForType { .. }
    );
    // `norm: true` is taken for the name of a struct.
    let of_type = of_type || msg.key == "syntax.struct_name";
    let fits = if of_type { super::reference::fits(&place::path(&path)) } else { None };
    let quotes = help.as_ref().is_some_and(|h| h.key == "syntax.straight_quotes");
    let help = if quotes { help } else { fits.or(help) };
    let help = help.or_else(|| msg.help()).unwrap_or_else(|| Msg::new("scenario.syntax_help"));
    (byte, Problem::new(place::path(&path), msg).help(help))
}

/// The names that are known, the nearest one first.
fn names(found: &str, expected: &[&'static str]) -> Option<Msg> {
    if expected.is_empty() {
        return None;
    }
    let all = expected.join(", ");
    Some(match nearest(found, expected.iter().copied()) {
        Some(near) => Msg::new("syntax.nearest_name").arg("name", near).arg("names", all),
        None => Msg::new("scenario.expected_names").arg("names", all),
    })
}

fn ended_early(text: &str, byte: usize) -> (Msg, Option<Msg>) {
    match place::open_at(text, byte) {
        Some(open) => {
            let (line, column) = place::line_column(text, open);
            let msg = Msg::new("syntax.ended").arg("open", &text[open..=open]).arg("line", line).arg("column", column);
            let help = Msg::new("syntax.close").arg("close", closing(text, open));
            (msg, Some(help))
        }
        None => (Msg::new("syntax.ended_empty"), None),
    }
}

/// A comma or a closing bracket should are at `byte`.
fn separator(text: &str, byte: usize) -> (Msg, Option<Msg>) {
    let token = place::token_at(text, byte);
    let found = escape(&token).into_owned();
    let Some(open) = place::open_at(text, byte) else {
        return (Msg::new("syntax.unexpected").arg("found", found), None);
    };
    let (line, column) = place::line_column(text, open);
    let wrong = [")", "]", "}"].contains(&token.as_str());
    let key = if wrong { "syntax.wrong_bracket" } else { "syntax.need_comma" };
    let msg = Msg::new(key).arg("found", found).arg("open", &text[open..=open]).arg("line", line).arg("column", column);
    let help = if wrong {
        Msg::new("syntax.close").arg("close", closing(text, open))
    } else {
        Msg::new("syntax.need_comma_help").arg("close", closing(text, open))
    };
    (msg, Some(help))
}

fn closing(text: &str, open: usize) -> char {
    match text.as_bytes()[open] {
        b'(' => ')',
        b'[' => ']',
        _ => '}',
    }
}

/// Whether the reader took `4` of `4.5`.
fn fraction(text: &str, byte: usize) -> bool {
    text[byte..].starts_with(['.', 'e', 'E']) && text[..byte].ends_with(|c: char| c.is_ascii_digit())
}

/// The first byte of the number around `byte`.
fn number_start(text: &str, byte: usize) -> usize {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
    text[..byte].trim_end_matches(part).len()
}

/// Adds the field whose value is at `byte`, where the reader had left it already.
fn name_before(text: &str, byte: usize, path: &mut Vec<Segment>) {
    let Some(before) = text[..byte].trim_end().strip_suffix(':') else {
        return;
    };
    let before = before.trim_end();
    let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("");
    if !name.is_empty() && path.last() != Some(&Segment::Key(name.to_owned())) {
        path.push(Segment::Key(name.to_owned()));
    }
}
