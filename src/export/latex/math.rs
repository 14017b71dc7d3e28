//! A line of arithmetic as people type it (`√(σ²+ε)`, `Q1·K1ᵀ`, `1e-9`) as LaTeX mathematics.

use std::fmt::Write as _;

/// Roots nest no deeper than this; a deeper one is a bare sign.
const DEEPEST: usize = 8;

/// What a character is in mathematics.
pub(super) enum Class {
    /// A command.
    Symbol(&'static str),
    /// A superscript.
    Super(&'static str),
    /// A subscript.
    Sub(&'static str),
    /// Nothing special.
    Other,
}

/// What `c` is.
pub(super) fn class(c: char) -> Class {
    let symbol = match c {
        '×' => "\\times ",
        '·' | '⋅' => "\\cdot ",
        '÷' => "\\div ",
        '±' => "\\pm ",
        '−' => "-",
        '√' => "\\surd ",
        '∞' => "\\infty ",
        '≈' => "\\approx ",
        '≠' => "\\ne ",
        '≤' => "\\le ",
        '≥' => "\\ge ",
        '∈' => "\\in ",
        '→' => "\\to ",
        '←' => "\\leftarrow ",
        '⊙' => "\\odot ",
        '∑' | 'Σ' => "\\Sigma ",
        '∂' => "\\partial ",
        '∇' => "\\nabla ",
        'Δ' => "\\Delta ",
        'α' => "\\alpha ",
        'β' => "\\beta ",
        'γ' => "\\gamma ",
        'ε' => "\\varepsilon ",
        'η' => "\\eta ",
        'θ' => "\\theta ",
        'λ' => "\\lambda ",
        'μ' | 'µ' => "\\mu ",
        'π' => "\\pi ",
        'ρ' => "\\rho ",
        'σ' => "\\sigma ",
        'τ' => "\\tau ",
        'φ' => "\\varphi ",
        '…' => "\\dots ",
        '‖' => "\\Vert ",
        '½' => "\\tfrac{1}{2}",
        _ => "",
    };
    if !symbol.is_empty() {
        return Class::Symbol(symbol);
    }
    match c {
        'ᵀ' => Class::Super("\\top "),
        '⁰' => Class::Super("0"),
        '¹' => Class::Super("1"),
        '²' => Class::Super("2"),
        '³' => Class::Super("3"),
        '⁴' => Class::Super("4"),
        '⁵' => Class::Super("5"),
        '⁶' => Class::Super("6"),
        '⁷' => Class::Super("7"),
        '⁸' => Class::Super("8"),
        '⁹' => Class::Super("9"),
        '⁻' => Class::Super("-"),
        'ˣ' => Class::Super("x"),
        '₀' => Class::Sub("0"),
        '₁' => Class::Sub("1"),
        '₂' => Class::Sub("2"),
        '₃' => Class::Sub("3"),
        '₄' => Class::Sub("4"),
        '₅' => Class::Sub("5"),
        '₆' => Class::Sub("6"),
        '₇' => Class::Sub("7"),
        '₈' => Class::Sub("8"),
        '₉' => Class::Sub("9"),
        'ₖ' => Class::Sub("k"),
        'ᵢ' => Class::Sub("i"),
        'ⱼ' => Class::Sub("j"),
        _ => Class::Other,
    }
}

/// `text` as mathematics.
pub(super) fn math(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    convert(text, 0, &mut out);
    // A trailing space is one that a command needed.
    out.truncate(out.trim_end().len());
    out
}

fn convert(text: &str, depth: usize, out: &mut String) {
    let mut rest = text;
    let mut word_before = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        if c.is_ascii_digit() {
            let n = number_len(rest);
            push_number(&rest[..n], out);
            rest = &rest[n..];
            word_before = true;
            continue;
        }
        if c.is_ascii_alphabetic() {
            let n = word_len(rest);
            push_word(&rest[..n], out);
            rest = &rest[n..];
            word_before = true;
            continue;
        }
        if c == ' ' {
            // Spaces mean nothing in mathematics, except between words.
            let word_after =
                after.chars().next().is_some_and(|n| n.is_alphanumeric() && matches!(class(n), Class::Other));
            out.push_str(if word_before && word_after { "\\ " } else { " " });
            rest = after;
            continue;
        }
        word_before = c == ')' || c == ']';
        rest = match c {
            '√' => root(after, depth, out),
            '_' | '&' | '%' | '$' | '#' | '{' | '}' => {
                out.push('\\');
                out.push(c);
                after
            }
            '\\' => {
                out.push_str("\\backslash ");
                after
            }
            '~' => {
                out.push_str("\\sim ");
                after
            }
            '^' => {
                out.push_str("\\text{\\textasciicircum}");
                after
            }
            c => match class(c) {
                Class::Symbol(command) => {
                    out.push_str(command);
                    after
                }
                Class::Super(_) => run(rest, '^', out),
                Class::Sub(_) => run(rest, '_', out),
                Class::Other if c.is_ascii() => {
                    out.push(c);
                    after
                }
                Class::Other => {
                    let n =
                        rest.find(|c: char| c.is_ascii() || !matches!(class(c), Class::Other)).unwrap_or(rest.len());
                    let _ = write!(out, "\\text{{{}}}", &rest[..n]);
                    word_before = true;
                    &rest[n..]
                }
            },
        };
    }
}

/// What follows a root sign: a parenthesis, a number or a name.
fn root<'t>(after: &'t str, depth: usize, out: &mut String) -> &'t str {
    let (inner, rest) = if let Some(open) = after.strip_prefix('(')
        && let Some(end) = closing(open)
        && depth < DEEPEST
    {
        (&open[..end], &open[end + 1..])
    } else {
        let n = match after.chars().next() {
            Some(c) if c.is_ascii_digit() => number_len(after),
            Some(c) if c.is_ascii_alphabetic() => word_len(after),
            _ => 0,
        };
        (&after[..n], &after[n..])
    };
    if inner.is_empty() {
        out.push_str("\\surd ");
    } else {
        out.push_str("\\sqrt{");
        convert(inner, depth + 1, out);
        out.push('}');
    }
    rest
}

/// Where the parenthesis that is open at the start of `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A run of superscripts or subscripts as one.
fn run<'t>(text: &'t str, sign: char, out: &mut String) -> &'t str {
    let _ = write!(out, "{sign}{{");
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match class(c) {
            Class::Super(inner) if sign == '^' => out.push_str(inner.trim_end()),
            Class::Sub(inner) if sign == '_' => out.push_str(inner),
            _ => break,
        }
        rest = &rest[c.len_utf8()..];
    }
    out.push('}');
    rest
}

fn word_len(text: &str) -> usize {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let n = text.find(|c| !inside(c)).unwrap_or(text.len());
    text[..n].trim_end_matches('.').len()
}

fn number_len(text: &str) -> usize {
    let digits = |t: &str| t.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(t.len());
    if let Some(bits) = text.strip_prefix("0x") {
        return 2 + bits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(bits.len());
    }
    let n = digits(text);
    let Some(exponent) = text[n..].strip_prefix('e') else {
        return n;
    };
    let sign = usize::from(exponent.starts_with(['-', '+']));
    match exponent[sign..].find(|c: char| !c.is_ascii_digit()) {
        Some(0) => n,
        _ if exponent.len() == sign => n,
        Some(m) => n + 1 + sign + m,
        None => text.len(),
    }
}

fn push_number(text: &str, out: &mut String) {
    if text.starts_with("0x") {
        let _ = write!(out, "\\mathtt{{{text}}}");
    } else if let Some((mantissa, exponent)) = text.split_once('e') {
        if mantissa != "1" {
            let _ = write!(out, "{mantissa}\\times ");
        }
        let _ = write!(out, "10^{{{}}}", exponent.trim_start_matches('+'));
    } else {
        out.push_str(text);
    }
}

fn push_word(word: &str, out: &mut String) {
    match word {
        "ln" | "log" | "exp" | "max" | "min" | "sin" | "cos" | "tanh" => {
            let _ = write!(out, "\\{word} ");
        }
        _ if word.len() == 1 => out.push_str(word),
        _ => {
            let _ = write!(out, "\\mathrm{{{}}}", word.replace('_', "\\_"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::math;

    #[test]
    fn arithmetic() {
        for (text, tex) in [
            ("0.5×-0.3 + 0.7", "0.5\\times -0.3 + 0.7"),
            ("(0.0286)/√(1.0933+ε)", "(0.0286)/\\sqrt{1.0933+\\varepsilon }"),
            ("Q1 · K1ᵀ / √2", "\\mathrm{Q1} \\cdot  \\mathrm{K1}^{\\top} / \\sqrt{2}"),
            ("√d_k", "\\sqrt{\\mathrm{d\\_k}}"),
            ("-1e9 ≈ -∞", "-10^{9} \\approx  -\\infty"),
            ("1.5e-7", "1.5\\times 10^{-7}"),
            ("2e", "2e"),
            ("-ln(0.2387)", "-\\ln (0.2387)"),
            ("σ² + x₁₂", "\\sigma ^{2} + x_{12}"),
            ("0x3ff0", "\\mathtt{0x3ff0}"),
            ("每行 max", "\\text{每行}\\ \\max"),
            ("a%b\\c{}", "a\\%b\\backslash c\\{\\}"),
            ("√", "\\surd"),
            ("√(", "\\surd ("),
        ] {
            assert_eq!(math(text), tex, "{text}");
        }
    }

    #[test]
    fn deep_nesting_ends() {
        let deep = "√(".repeat(10_000) + &")".repeat(10_000);
        assert!(math(&deep).contains("\\surd"));
    }
}
