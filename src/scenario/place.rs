//! Where a path in the data, such as `model.encoder.layers[1].kv_heads`, is in the text of a scenario.
//!
//! The parsed data keep no positions, so the text is read again, only when something is wrong with it.

use std::fmt::Write as _;

/// One step into the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A field of a struct, or a key of a map.
    Key(String),
    /// An element of a list or tuple.
    Index(usize),
}

/// A path as diagnostics write it: fields after dots, other keys in quotes, elements in brackets.
pub fn path(segments: &[Segment]) -> String {
    let mut out = String::new();
    for segment in segments {
        match segment {
            Segment::Index(i) => {
                let _ = write!(out, "[{i}]");
            }
            Segment::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                let plain = key.chars().all(|c| c.is_alphanumeric() || c == '_');
                if plain && !key.is_empty() && !key.starts_with(|c: char| c.is_ascii_digit()) {
                    out.push_str(key);
                } else {
                    out.push('"');
                    out.push_str(key);
                    out.push('"');
                }
            }
        }
    }
    out
}

/// The segments of a path that [`path`] wrote.
pub fn segments(path: &str) -> Vec<Segment> {
    let mut out = Vec::new();
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        match c {
            '.' => rest = &rest[1..],
            '[' => {
                let end = rest.find(']').unwrap_or(rest.len());
                if let Ok(i) = rest[1..end].parse() {
                    out.push(Segment::Index(i));
                }
                rest = rest.get(end + 1..).unwrap_or("");
            }
            '"' => {
                // A key may hold quotes itself; it ends where the path goes on, or ends.
                let ends = |i: &usize| matches!(rest[i + 1..].chars().next(), None | Some('.' | '['));
                let end = rest[1..].match_indices('"').map(|(i, _)| i + 1).find(ends).unwrap_or(rest.len());
                out.push(Segment::Key(rest[1..end].to_owned()));
                rest = rest.get(end + 1..).unwrap_or("");
            }
            _ => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                out.push(Segment::Key(rest[..end].to_owned()));
                rest = &rest[end..];
            }
        }
    }
    out
}

/// The byte at which the deepest part of `path` that the text has begins, and whether that is the whole path. A
/// field and a map's entry begin at their name, an element at its value. Names of enum variants and structs, `Some`
/// and the parentheses around one value are looked through, as they are no part of a path.
pub fn find(text: &str, path: &str) -> Option<(usize, bool)> {
    let mut scan = Scan { text, at: 0 };
    scan.space();
    while scan.text[scan.at..].starts_with("#![") {
        scan.at += scan.text[scan.at..].find(']')? + 1;
        scan.space();
    }
    let segments = segments(path);
    let mut place = None;
    for segment in &segments {
        match scan.enter(segment) {
            Some(start) => place = Some(start),
            None => return place.map(|p| (p, false)),
        }
    }
    place.map(|p| (p, true))
}

/// The path to the value that byte `at` is in, or that ends there: a reader may refuse what it has read.
pub fn path_at(text: &str, at: usize) -> Vec<Segment> {
    let mut path = Vec::new();
    let mut scan = Scan { text, at: 0 };
    scan.space();
    while scan.rest().starts_with("#![") {
        let Some(end) = scan.rest().find(']') else { return path };
        scan.at += end + 1;
        scan.space();
    }
    'value: loop {
        scan.space();
        if raw_string(&text.as_bytes()[scan.at..]).is_some() {
            return path;
        }
        // The name of a struct or variant.
        scan.at += scan.name().len();
        scan.space();
        let Some(open) = scan.peek().filter(|c| matches!(c, b'(' | b'[' | b'{')).filter(|_| scan.at < at) else {
            return path;
        };
        let keyed = open == b'{' || open == b'(' && scan.has_fields();
        if open == b'(' && !keyed && scan.elements() == 1 {
            scan.at += 1;
            continue;
        }
        scan.at += 1;
        for index in 0.. {
            scan.space();
            let before = scan.at > at || keyed && scan.at == at;
            if before || scan.peek().is_none_or(|c| matches!(c, b')' | b']' | b'}')) {
                return path;
            }
            let mut segment = Segment::Index(index);
            if keyed {
                let start = scan.at;
                scan.token();
                let own = &text[start..scan.at];
                let quoted = own.starts_with(['"', 'r']).then(|| ron::from_str(own).ok()).flatten();
                segment = Segment::Key(quoted.unwrap_or_else(|| own.strip_prefix("r#").unwrap_or(own).to_owned()));
                scan.space();
                if at <= scan.at || scan.peek() != Some(b':') {
                    return path;
                }
                scan.at += 1;
                scan.space();
            }
            let start = scan.at;
            scan.skip();
            let end = start + text[start..scan.at].trim_end().len();
            if at <= end || scan.at == text.len() {
                path.push(segment);
                scan.at = start;
                continue 'value;
            }
            scan.comma();
        }
    }
}

/// Where a value is written, or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Here.
    There(std::ops::Range<usize>),
    /// The last field of the path is not written; a field may be put in after the bracket that ends here.
    Absent(usize),
}

/// The value at `path`; `None` where what should hold it is no struct with fields.
pub fn value(text: &str, path: &str) -> Option<Written> {
    let mut scan = Scan { text, at: 0 };
    let segments = segments(path);
    let (last, before) = segments.split_last()?;
    for segment in before {
        scan.enter(segment)?;
    }
    let mut inside = Scan { text, at: scan.at };
    if inside.enter(last).is_some() {
        inside.space();
        let start = inside.at;
        inside.skip();
        let end = start + text[start..inside.at].trim_end().len();
        return Some(Written::There(start..end));
    }
    let Segment::Key(_) = last else { return None };
    // Through variants and `Some`, to the brackets of the fields.
    loop {
        scan.space();
        scan.at += scan.name().len();
        scan.space();
        if scan.peek()? != b'(' {
            return None;
        }
        let fields = scan.has_fields() || scan.elements() == 0;
        scan.at += 1;
        if fields {
            return Some(Written::Absent(scan.at));
        }
    }
}

/// A value with parts: a struct, a variant, a list or a map.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// The name before the bracket, empty where there is none.
    pub head: &'a str,
    /// The bracket.
    pub open: u8,
    /// Keys, where the parts have some, and where the values are.
    pub children: Vec<(Option<String>, std::ops::Range<usize>)>,
}

impl Parts<'_> {
    /// Whether they are fields, or entries of a map.
    pub fn is_keyed(&self) -> bool {
        self.children.first().is_some_and(|c| c.0.is_some()) || self.open == b'{'
    }

    /// Whether they are the one value in parentheses that a variant has.
    pub fn is_variant(&self) -> bool {
        self.open == b'(' && self.children.len() == 1 && !self.is_keyed()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<std::ops::Range<usize>> {
        self.children.iter().find(|c| c.0.as_deref() == Some(key)).map(|c| c.1.clone())
    }
}

/// Where the value of a whole text is.
pub fn whole(text: &str) -> std::ops::Range<usize> {
    let mut scan = Scan { text, at: 0 };
    scan.space();
    scan.at..scan.at + text[scan.at..].trim_end().len()
}

/// The parts of the value at `at`; `None` where it has none, such as a number.
pub fn parts(text: &str, at: std::ops::Range<usize>) -> Option<Parts<'_>> {
    let mut scan = Scan { text, at: at.start };
    if raw_string(&text.as_bytes()[at.start..]).is_some() {
        return None;
    }
    let head = scan.name();
    scan.at += head.len();
    scan.space();
    let open = scan.peek().filter(|c| matches!(c, b'(' | b'[' | b'{')).filter(|_| scan.at < at.end)?;
    let keyed = open == b'{' || open == b'(' && scan.has_fields();
    scan.at += 1;
    let mut children = Vec::new();
    loop {
        scan.space();
        if matches!(scan.peek()?, b')' | b']' | b'}') {
            return Some(Parts { head, open, children });
        }
        let key = if keyed {
            let start = scan.at;
            scan.token();
            let own = &text[start..scan.at];
            scan.space();
            scan.at += usize::from(scan.peek()? == b':');
            scan.space();
            Some(if own.starts_with('"') { ron::from_str(own).ok()? } else { own.to_owned() })
        } else {
            None
        };
        let start = scan.at;
        scan.skip();
        children.push((key, start..start + text[start..scan.at].trim_end().len()));
        scan.comma();
    }
}

/// Line and column of byte `at`, both from 1; the column counts characters.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let at = text.floor_char_boundary(at.min(text.len()));
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    (text[..at].bytes().filter(|b| *b == b'\n').count() + 1, text[start..at].chars().count() + 1)
}

/// The byte at `line` and `column`.
pub fn byte_at(text: &str, (line, column): (usize, usize)) -> usize {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let after = text[start..].char_indices().nth(column.saturating_sub(1));
    after.map_or(text.len(), |(i, _)| start + i)
}

/// The byte of the first bracket that opens more than `most` levels.
pub fn too_deep(text: &str, most: usize) -> Option<usize> {
    let mut scan = Scan { text, at: 0 };
    let mut depth = 0usize;
    loop {
        scan.space();
        let c = scan.peek()?;
        match c {
            b'(' | b'[' | b'{' => {
                depth += 1;
                if depth > most {
                    return Some(scan.at);
                }
                scan.at += 1;
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                scan.at += 1;
            }
            _ => scan.token(),
        }
    }
}

/// The innermost bracket that is open at byte `at`: what a missing comma or closing bracket belongs to.
pub fn open_at(text: &str, at: usize) -> Option<usize> {
    let mut scan = Scan { text, at: 0 };
    let mut open = Vec::new();
    loop {
        scan.space();
        let c = match scan.peek() {
            Some(c) if scan.at < at => c,
            _ => return open.pop(),
        };
        match c {
            b'(' | b'[' | b'{' => open.push(scan.at),
            b')' | b']' | b'}' => {
                open.pop();
            }
            _ => {
                scan.token();
                continue;
            }
        }
        scan.at += 1;
    }
}

/// The string, name, number or bracket at byte `at`, cut short where it is long.
pub fn token_at(text: &str, at: usize) -> String {
    let mut scan = Scan { text, at };
    match scan.peek() {
        None => return String::new(),
        Some(b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b':') => scan.at += 1,
        Some(_) => scan.token(),
    }
    let own: Vec<char> = text[at..scan.at].chars().take(41).collect();
    match own.get(..40) {
        Some(head) => head.iter().collect::<String>() + "…",
        None => own.into_iter().collect(),
    }
}

/// Reads RON just well enough to step over values.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// White space and comments.
    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let mut depth = 0usize;
                let bytes = trimmed.as_bytes();
                let mut i = 0;
                while i < bytes.len() {
                    match &bytes[i..(i + 2).min(bytes.len())] {
                        b"/*" => (depth, i) = (depth + 1, i + 2),
                        b"*/" => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 {
                        break;
                    }
                }
                self.at += i.min(bytes.len());
            } else {
                return;
            }
        }
    }

    /// One string, character, name or number.
    fn token(&mut self) {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if let Some(hashes) = raw_string(&bytes[start..]) {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = self.rest().find('"').map_or(0, |q| q + 1);
            let len = self.rest()[body..].find(&close);
            self.at += len.map_or(self.rest().len(), |n| body + n + close.len());
            return;
        }
        match bytes[start] {
            b'"' => {
                self.at += 1;
                while let Some(c) = self.peek() {
                    self.at += if c == b'\\' { 2 } else { 1 };
                    if c == b'"' {
                        break;
                    }
                }
                self.at = self.text.ceil_char_boundary(self.at.min(self.text.len()));
            }
            // 'x' or '\n'; a lone quote is one character that denotes itself.
            b'\'' => {
                let mut chars = self.rest().char_indices().skip(1);
                let escaped = chars.next().is_some_and(|(_, c)| c == '\\');
                let from = if escaped { 3 } else { 2 };
                let close = self.rest().char_indices().skip(from).take(10);
                let end = close.into_iter().find(|(_, c)| *c == '\'').map(|(i, _)| i);
                self.at += end.map_or(1, |e| e + 1);
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || "()[]{},:\"'".contains(c);
                let len = self.rest().find(ends).unwrap_or(self.rest().len());
                // A comment ends it too; looked for in the token alone, as a file is all tokens.
                let token = &self.rest()[..len];
                let len = token.find("//").unwrap_or(len);
                let len = token[..len].find("/*").unwrap_or(len);
                // Something always moves on.
                let one = self.rest().chars().next().map_or(1, char::len_utf8);
                self.at += len.max(one);
            }
        }
    }

    /// One value, however deep: brackets are counted, nothing recurses.
    fn skip(&mut self) {
        let mut depth = 0usize;
        loop {
            self.space();
            match self.peek() {
                None => return,
                Some(b'(' | b'[' | b'{') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b')' | b']' | b'}') => {
                    if depth == 0 {
                        return;
                    }
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',') if depth == 0 => return,
                Some(b',' | b':') => self.at += 1,
                Some(_) => self.token(),
            }
        }
    }

    /// The name that stands here, if one does.
    fn name(&self) -> &'a str {
        let rest = self.rest().strip_prefix("r#").unwrap_or(self.rest());
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// From the start of a value to the start of a part of it; gives where that part begins (its name, for fields).
    fn enter(&mut self, segment: &Segment) -> Option<usize> {
        loop {
            self.space();
            // The name of a struct or variant.
            if raw_string(&self.text.as_bytes()[self.at..]).is_none() {
                self.at += self.name().len();
                self.space();
            }
            let open = self.peek()?;
            let named = open == b'(' && self.has_fields();
            match (open, segment) {
                (b'{', Segment::Key(key)) => return self.entry(key),
                (b'(', Segment::Key(key)) if named => return self.entry(key),
                (b'[', Segment::Index(i)) => return self.element(*i),
                (b'(', Segment::Index(i)) if !named && self.elements() > 1 => {
                    return self.element(*i);
                }
                // One value in parentheses: what a variant holds.
                (b'(', _) if !named => self.at += 1,
                _ => return None,
            }
        }
    }

    /// Whether the parentheses here hold fields.
    fn has_fields(&self) -> bool {
        let mut scan = Scan { text: self.text, at: self.at + 1 };
        scan.space();
        let name = scan.name().len();
        scan.at += name;
        scan.space();
        name > 0 && scan.peek() == Some(b':')
    }

    fn elements(&self) -> usize {
        let mut scan = Scan { text: self.text, at: self.at + 1 };
        let mut n = 0;
        loop {
            scan.space();
            if matches!(scan.peek(), None | Some(b')')) || n > 1 {
                return n;
            }
            scan.skip();
            n += 1;
            scan.comma();
        }
    }

    fn comma(&mut self) {
        self.space();
        if self.peek() == Some(b',') {
            self.at += 1;
        }
    }

    fn element(&mut self, index: usize) -> Option<usize> {
        self.at += 1;
        for _ in 0..index {
            self.space();
            if matches!(self.peek()?, b')' | b']') {
                return None;
            }
            self.skip();
            self.comma();
        }
        self.space();
        (!matches!(self.peek()?, b')' | b']')).then_some(self.at)
    }

    fn entry(&mut self, key: &str) -> Option<usize> {
        self.at += 1;
        loop {
            self.space();
            if matches!(self.peek()?, b')' | b'}' | b']') {
                return None;
            }
            let start = self.at;
            self.token();
            let own = &self.text[start..self.at];
            let same = own == key
                || own.strip_prefix("r#") == Some(key)
                || own.starts_with(['"', 'r']) && ron::from_str::<String>(own).is_ok_and(|own| own == key);
            self.space();
            if self.peek()? != b':' {
                return None;
            }
            self.at += 1;
            if same {
                return Some(start);
            }
            self.skip();
            self.comma();
        }
    }
}

/// Number of hashes of a raw string that begins here.
fn raw_string(bytes: &[u8]) -> Option<usize> {
    let bytes = bytes.strip_prefix(b"b").unwrap_or(bytes);
    let rest = bytes.strip_prefix(b"r")?;
    let hashes = rest.iter().take_while(|b| **b == b'#').count();
    (rest.get(hashes) == Some(&b'"')).then_some(hashes)
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
