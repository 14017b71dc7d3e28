//! Questions about the cells of steps: drawn by a seed, answered with a number or a token, wrong answers explained by
//! the arithmetic that gives them. Worksheets and the debugger's quiz both ask from here; nothing here knows a screen.

mod slips;

use std::collections::HashSet;

pub use slips::{Slip, slips};

use crate::explain::{Explainer, Style};
use crate::program::Op;
use crate::session::{Session, Steps};
use crate::tensor::DType;
use crate::text::{Lang, Msg, NumberFormat};
use crate::trace::RunError;
use crate::trace::derive::Cell;

/// What is requested about a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its value.
    Value,
    /// Which token wins: an id or a word.
    Token,
    /// Whether a mask hides it: 1 or 0.
    Hidden,
    /// Which tensors its arithmetic reads.
    Operands,
}

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Position of the step in its list.
    pub step: usize,
    /// Position of the view in the step.
    pub view: usize,
    /// Index of the cell in the view.
    pub index: Vec<usize>,
    /// Run.
    pub run: usize,
    /// The cell.
    pub cell: Cell,
    /// What the cell is called, such as `score1[0][1]`.
    pub name: String,
    /// What is requested.
    pub kind: Kind,
}

/// How an answer was.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Right, within the rounding.
    Right,
    /// Right as far as it goes, but with too few decimals to be sure.
    Coarse {
        /// Decimals that are needed.
        decimals: u8,
    },
    /// Wrong; how it may have come about, the most probable first.
    Wrong(Vec<Msg>),
    /// Not a number, token or list of tensors.
    Unreadable,
}

/// Most explanations of a wrong answer.
const MAX_EXPLANATIONS: usize = 2;

/// The questions of a quiz, and what was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quiz {
    /// Questions, in order.
    pub questions: Vec<Question>,
    /// The question that is open.
    pub at: usize,
    /// Answers, one a question that was closed: whether the first try was right, and the tries.
    pub closed: Vec<(bool, usize)>,
    tries: usize,
}

impl Quiz {
    /// A quiz over these questions.
    pub fn new(questions: Vec<Question>) -> Self {
        Self { questions, ..Self::default() }
    }

    /// The open question.
    pub fn open(&self) -> Option<&Question> {
        self.questions.get(self.at)
    }

    /// Answers the open question: a right answer closes it.
    ///
    /// # Errors
    /// Where the run cannot run. `Ok(None)` where no question is open.
    pub fn answer(&mut self, s: &Session, steps: &Steps, text: &str, digits: u8) -> Result<Option<Verdict>, RunError> {
        let Some(question) = self.open() else { return Ok(None) };
        let verdict = question.check(s, steps, text, digits)?;
        match verdict {
            Verdict::Right => {
                self.closed.push((self.tries == 0, self.tries + 1));
                (self.at, self.tries) = (self.at + 1, 0);
            }
            Verdict::Wrong(_) => self.tries += 1,
            Verdict::Coarse { .. } | Verdict::Unreadable => {}
        }
        Ok(Some(verdict))
    }

    /// Gives the open question up; it counts as wrong.
    pub fn give_up(&mut self) {
        if self.open().is_some() {
            self.closed.push((false, self.tries));
            (self.at, self.tries) = (self.at + 1, 0);
        }
    }

    /// Questions right at the first try, and questions closed.
    pub fn score(&self) -> (usize, usize) {
        (self.closed.iter().filter(|c| c.0).count(), self.closed.len())
    }
}

/// Draws `count` questions about the steps with numbers `from..=to`: results first, each step in turn, so that no step
/// has two before every step has one. The same seed draws the same cells on every machine.
///
/// # Errors
/// Where a run cannot run.
pub fn draw(
    s: &Session,
    steps: &Steps,
    (from, to): (u32, u32),
    count: usize,
    seed: u64,
) -> Result<Vec<Question>, RunError> {
    let mut pools = Vec::new();
    for (at, step) in steps.list().iter().enumerate() {
        if step.number.first().is_some_and(|n| (from..=to).contains(n)) {
            let mut pool = candidates(s, steps, at)?;
            shuffle(&mut pool, seed ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            if !pool.is_empty() {
                pools.push(pool);
            }
        }
    }
    // Which steps have a question more is drawn too.
    let mut order: Vec<usize> = (0..pools.len()).collect();
    shuffle(&mut order, seed);
    let mut out = Vec::new();
    let mut round = 0;
    while out.len() < count && pools.iter().any(|p| p.len() > round) {
        let open = order.iter().filter(|i| pools[**i].len() > round);
        out.extend(open.take(count - out.len()).map(|i| pools[*i][round].clone()));
        round += 1;
    }
    out.sort_by(|a, b| (a.step, a.view, &a.index).cmp(&(b.step, b.view, &b.index)));
    Ok(out)
}

/// Most cells of a step that are looked at.
const MAX_CELLS: usize = 4096;

/// The cells of a step that can be asked about: those that are computed, each number once.
fn candidates(s: &Session, steps: &Steps, at: usize) -> Result<Vec<Question>, RunError> {
    let step = &steps.list()[at];
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    for (v, view) in step.views.iter().enumerate() {
        let explainer = Explainer::new(s.trace(view.run).map_err(Clone::clone)?);
        let node = s.runs[view.run].program.node(view.node);
        let shape = view.shape();
        for flat in 0..shape.len().min(MAX_CELLS) {
            let index = shape.unflat(flat)[..shape.rank()].to_vec();
            let cell = view.cell(&index);
            let kind = match (&node.op, node.dtype) {
                (Op::ArgMax, _) => Kind::Token,
                (_, DType::Bool) => Kind::Hidden,
                (_, DType::Int) => continue,
                (_, DType::Float) => Kind::Value,
            };
            let value = explainer.value(cell);
            let given = explainer.reads(cell).is_empty();
            if kind == Kind::Value && (given || !value.is_finite()) || !seen.insert((kind as u8, cell)) {
                continue;
            }
            out.push(Question { step: at, view: v, run: view.run, name: view.cell_name(&index), index, cell, kind });
        }
    }
    Ok(out)
}

/// Fisher and Yates with SplitMix64.
fn shuffle<T>(all: &mut [T], seed: u64) {
    let mut state = seed;
    for i in (1..all.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let j = ((u128::from(z) * (i as u128 + 1)) >> 64) as usize;
        all.swap(i, j);
    }
}

impl Question {
    /// The question as a sentence.
    pub fn text(&self) -> Msg {
        let key = match self.kind {
            Kind::Value => "quiz.ask.value",
            Kind::Token => "quiz.ask.token",
            Kind::Hidden => "quiz.ask.hidden",
            Kind::Operands => "quiz.ask.operands",
        };
        Msg::new(key).arg("name", crate::text::escape(&self.name))
    }

    /// The answer as it would be written, with `digits` decimals.
    ///
    /// # Errors
    /// Where the run cannot run.
    pub fn answer(&self, s: &Session, steps: &Steps, digits: u8) -> Result<String, RunError> {
        let explainer = Explainer::new(s.trace(self.run).map_err(Clone::clone)?);
        let value = explainer.value(self.cell);
        Ok(match self.kind {
            Kind::Value => explainer.number(self.cell, NumberFormat::Decimals(digits)),
            Kind::Hidden => format!("{value}"),
            Kind::Token => {
                let words = s.words(s.spoken());
                let word = if words.is_empty() { String::new() } else { words.word(value as i64) };
                if word.is_empty() { format!("{value}") } else { format!("{value} {word}") }
            }
            Kind::Operands => self.read(s, steps, &explainer).join(" "),
        })
    }

    /// Its derivation as the hand calculation prints it.
    ///
    /// # Errors
    /// Where the run cannot run.
    pub fn derivation(&self, s: &Session, steps: &Steps, digits: u8, lang: Lang) -> Result<String, RunError> {
        let explainer = Explainer::new(s.trace(self.run).map_err(Clone::clone)?).speaking(lang);
        let style = Style { number: NumberFormat::Decimals(digits), most_terms: 64 };
        let names = |c| s.cell_name(steps, self.run, c, self.step);
        Ok(explainer.line(&self.name, self.cell, &style, &names).text())
    }

    /// The tensors that the arithmetic reads, by the names that the steps give them, each once.
    fn read(&self, s: &Session, steps: &Steps, explainer: &Explainer<'_>) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for cell in explainer.reads(self.cell) {
            let name = match steps.locate(self.run, cell, self.step) {
                Some(place) => steps.list()[place.step].views[place.view].symbol.clone(),
                None => s.tensor_name(steps, self.run, cell.node, &crate::tensor::Slice::all(), self.step),
            };
            if !out.contains(&name) {
                out.push(name);
            }
        }
        out
    }

    /// What `text` is as an answer. A number is right where it rounds to the value at the decimals it has, or to the
    /// value that comes of operands rounded to `digits` decimals.
    ///
    /// # Errors
    /// Where the run cannot run.
    pub fn check(&self, s: &Session, steps: &Steps, text: &str, digits: u8) -> Result<Verdict, RunError> {
        let trace = s.trace(self.run).map_err(Clone::clone)?;
        let explainer = Explainer::new(trace);
        let value = explainer.value(self.cell);
        let text = fold(text);
        Ok(match self.kind {
            Kind::Operands => {
                let split = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '，' | '、' | '；');
                let said: HashSet<String> = text.split(split).filter(|w| !w.is_empty()).map(str::to_owned).collect();
                let wanted: HashSet<String> = self.read(s, steps, &explainer).into_iter().collect();
                if said == wanted {
                    Verdict::Right
                } else if said.is_empty() {
                    Verdict::Unreadable
                } else {
                    let list = |of: Vec<&String>| {
                        let mut of: Vec<&str> = of.into_iter().map(String::as_str).collect();
                        of.sort_unstable();
                        crate::text::escape(&of.join(", ")).into_owned()
                    };
                    let (missing, more) =
                        (list(wanted.difference(&said).collect()), list(said.difference(&wanted).collect()));
                    let mut why = Vec::new();
                    if !missing.is_empty() {
                        why.push(Msg::new("quiz.operands_missing").arg("names", missing));
                    }
                    if !more.is_empty() {
                        why.push(Msg::new("quiz.operands_more").arg("names", more));
                    }
                    Verdict::Wrong(why)
                }
            }
            Kind::Token => self.check_token(s, &explainer, &text, value),
            Kind::Hidden => {
                let yes = ["1", "yes", "y", "true", "hidden", "是", "遮", "遮住", "隐藏", "掩码"];
                let no = ["0", "no", "n", "false", "visible", "否", "不", "可见"];
                let said = if yes.contains(&text.as_str()) {
                    1.0
                } else if no.contains(&text.as_str()) {
                    0.0
                } else {
                    return Ok(Verdict::Unreadable);
                };
                if said == value {
                    Verdict::Right
                } else {
                    let line = self.derivation(s, steps, digits, Lang::En)?;
                    let key = if value == 0.0 { "quiz.visible" } else { "quiz.hidden" };
                    let why = crate::text::escape(&line).into_owned();
                    Verdict::Wrong(vec![Msg::new(key).arg("line", why)])
                }
            }
            Kind::Value => {
                let Some((said, decimals)) = number(&text) else { return Ok(Verdict::Unreadable) };
                let half = 0.5 * 10f64.powi(-i32::from(decimals.min(digits))) + 1e-9 * value.abs().max(1.0);
                let rounded = slips::from_rounded(&explainer, self.cell, digits);
                let fits = |x: f64| (said - x).abs() <= half;
                if fits(value) || fits(rounded) {
                    // `1` is all there is of 1.0000.
                    let unit = 10f64.powi(i32::from(digits));
                    let exact = said == (value * unit).round() / unit || said == (rounded * unit).round() / unit;
                    let wanted = digits.min(2);
                    if exact || decimals >= wanted { Verdict::Right } else { Verdict::Coarse { decimals: wanted } }
                } else {
                    let all = slips(s, steps, self, &explainer);
                    let mut why: Vec<Msg> = Vec::new();
                    for slip in all.iter().filter(|slip| (said - slip.value).abs() <= half) {
                        if !why.contains(&slip.why) {
                            why.push(slip.why.clone());
                        }
                    }
                    why.truncate(MAX_EXPLANATIONS);
                    Verdict::Wrong(why)
                }
            }
        })
    }

    fn check_token(&self, s: &Session, explainer: &Explainer<'_>, text: &str, value: f64) -> Verdict {
        let words = s.words(s.spoken());
        let id = match text.parse::<i64>() {
            Ok(id) => id,
            Err(_) => {
                if let Some(id) = words.id(text) {
                    id
                } else {
                    // A probability is no token.
                    let Some((said, _)) = number(text) else { return Verdict::Unreadable };
                    let row = explainer.reads(self.cell);
                    let top = row.iter().map(|c| explainer.value(*c)).fold(f64::NEG_INFINITY, f64::max);
                    let near = (said - top).abs() < 5e-3;
                    return if near { Verdict::Wrong(vec![Msg::new("quiz.token_value")]) } else { Verdict::Unreadable };
                }
            }
        };
        if id as f64 == value {
            return Verdict::Right;
        }
        let row = explainer.reads(self.cell);
        let mut why = Vec::new();
        let at = |id: i64| usize::try_from(id).ok().and_then(|i| row.get(i)).map(|c| explainer.value(*c));
        let show = |x: Option<f64>| x.map_or_else(String::new, |x| NumberFormat::Decimals(4).format(x));
        if id as f64 == value + 1.0 {
            why.push(Msg::new("quiz.token_from_one"));
        }
        if let Some(of) = at(id) {
            let lower = row.iter().filter(|c| explainer.value(**c) > of).count();
            let msg = Msg::new("quiz.token_smaller").arg("said", show(Some(of))).arg("rank", lower + 1);
            why.push(msg.arg("top", show(at(value as i64))));
        } else {
            why.push(Msg::new("quiz.token_outside").arg("count", row.len()));
        }
        Verdict::Wrong(why)
    }
}

/// Full-width digits and signs as an input method leaves them, and spaces around.
fn fold(text: &str) -> String {
    let one = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '−' | '–' => '-',
        '。' => '.',
        c => c,
    };
    text.trim().chars().map(one).collect()
}

/// A number as it was typed, and how many decimals it has. A fraction such as `1/3` is exact.
fn number(text: &str) -> Option<(f64, u8)> {
    if let Some((a, b)) = text.split_once('/') {
        let x = a.trim().parse::<f64>().ok()? / b.trim().parse::<f64>().ok()?;
        return x.is_finite().then_some((x, 17));
    }
    let x: f64 = text.parse().ok().filter(|x: &f64| x.is_finite())?;
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let decimals = mantissa.split_once('.').map_or(0, |(_, d)| d.len() as i64) - exponent.parse::<i64>().ok()?;
    Some((x, decimals.clamp(0, 17) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_typed() {
        assert_eq!(number("0.25"), Some((0.25, 2)));
        assert_eq!(number("-3"), Some((-3.0, 0)));
        assert_eq!(number("1.5e-3"), Some((0.0015, 4)));
        assert_eq!(number("3/4"), Some((0.75, 17)));
        assert_eq!(number("inf"), None);
        assert_eq!(number("x"), None);
        assert_eq!(fold(" －０．５ "), "-0.5");
        assert_eq!(fold("−0.5"), "-0.5");
    }

    #[test]
    fn shuffles_are_permutations_and_follow_the_seed() {
        let of = |seed| {
            let mut all: Vec<usize> = (0..20).collect();
            shuffle(&mut all, seed);
            all
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let mut sorted = of(3);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
