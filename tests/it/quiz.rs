//! The quiz over the hand-calculated class: right answers are accepted, typical wrong ones are explained by the
//! arithmetic that gives them, and worksheets ask the same questions.

use std::process::{Command, Stdio};

use tui_transformer::debug::quiz::{Kind, Question, Quiz, Verdict, draw};
use tui_transformer::explain::Explainer;
use tui_transformer::scenario::{EMBEDDED, syntax};
use tui_transformer::session::{self, Options, Session, Steps};
use tui_transformer::trace::derive::Arithmetic;

fn water_class() -> Session {
    let text = EMBEDDED.iter().find(|e| e.0 == "water_class").expect("embedded").1;
    session::open(syntax::read("water_class", text).expect("reads"), None, Options::default()).expect("opens")
}

fn check(s: &Session, q: &Question, text: &str) -> Verdict {
    q.check(s, &s.steps, text, 4).expect("runs")
}

/// The keys of the explanations of a wrong answer.
fn why(s: &Session, q: &Question, said: f64) -> Vec<&'static str> {
    match check(s, q, &format!("{said:.6}")) {
        Verdict::Wrong(why) => why.iter().map(|m| m.key).collect(),
        other => panic!("{}: {said} is {other:?}", q.name),
    }
}

/// Wrong answers that a student gives, from the recorded numbers: a sign lost, a cell of the same table, an operand, a
/// term whose sign is lost.
fn typical(s: &Session, q: &Question) -> Vec<f64> {
    let explainer = Explainer::new(s.trace(q.run).expect("runs"));
    let value = explainer.value(q.cell);
    let mut all = vec![-value];
    if let Arithmetic::Dot(a, b) = explainer.arithmetic(q.cell) {
        let terms = a.cells().zip(b.cells()).map(|(a, b)| explainer.value(a) * explainer.value(b));
        all.extend(terms.map(|t| value - 2.0 * t));
    }
    let view = &s.steps.list()[q.step].views[q.view];
    all.extend((0..view.shape().len()).map(|flat| {
        let shape = view.shape();
        explainer.value(view.cell(&shape.unflat(flat)[..shape.rank()]))
    }));
    all.extend(explainer.reads(q.cell).into_iter().map(|c| explainer.value(c)));
    let mut out: Vec<f64> = Vec::new();
    for x in all {
        let far = |y: f64| (x - y).abs() > 2e-4;
        if x.is_finite() && x.abs() < 1e6 && far(value) && out.iter().all(|y| far(*y)) {
            out.push(x);
        }
    }
    out
}

#[test]
fn every_step_accepts_what_is_right_and_explains_three_wrong_answers() {
    let s = water_class();
    let (mut steps, mut explained) = (0, 0);
    for step in s.steps.list() {
        let number = step.number[0];
        let questions = draw(&s, &s.steps, (number, number), 6, 7).expect("runs");
        let Some(first) = questions.first() else { continue };
        steps += 1;
        for q in &questions {
            let answer = q.answer(&s, &s.steps, 4).expect("runs");
            let answer = answer.split(' ').next().unwrap_or("");
            assert_eq!(check(&s, q, answer), Verdict::Right, "step {number}: {} = {answer}", q.name);
            let operands = Question { kind: Kind::Operands, ..q.clone() };
            let names = operands.answer(&s, &s.steps, 4).expect("runs");
            if !names.is_empty() {
                assert_eq!(check(&s, &operands, &names), Verdict::Right, "step {number}: {names}");
            }
        }
        let asked: Vec<&Question> = questions.iter().filter(|q| q.kind == Kind::Value).collect();
        let mut reported = 0;
        for q in &asked {
            let wrong = typical(&s, q);
            for x in wrong.iter().take(3) {
                assert!(!why(&s, q, *x).is_empty(), "step {number}: {} = {x} is not explained", q.name);
                reported += 1;
            }
        }
        assert!(reported >= 3 || asked.is_empty() || typical(&s, asked[0]).len() < 3, "step {number}: {}", first.name);
        explained += reported;
    }
    assert!(steps >= 80, "{steps} steps are asked about");
    assert!(explained >= 240, "{explained} wrong answers");
}

/// The first question about a view of this symbol, at this index.
fn question(s: &Session, symbol: &str, index: &[usize]) -> Question {
    let wanted = |q: &&Question| s.steps.list()[q.step].views[q.view].symbol == symbol && q.index == index;
    let all = draw(s, &s.steps, (1, u32::MAX), usize::MAX, 1).expect("runs");
    all.iter().find(wanted).unwrap_or_else(|| panic!("{symbol}{index:?}")).clone()
}

#[test]
fn a_wrong_answer_is_named_after_its_own_arithmetic() {
    let s = water_class();
    let q = question(&s, "score1", &[0, 1]);
    let explainer = Explainer::new(s.trace(q.run).expect("runs"));
    let value = explainer.value(q.cell);
    assert!(why(&s, &q, value * 2f64.sqrt()).contains(&"slip.unscaled"));
    assert!(why(&s, &q, -value).contains(&"slip.sign"));
    let program = &s.runs[q.run].program;
    let shape = program.node(q.cell.node).shape;
    let mut at = shape.unflat(q.cell.flat)[..shape.rank()].to_vec();
    at[1] = 1;
    let other = explainer.value(tui_transformer::trace::derive::Cell { node: q.cell.node, flat: shape.flat(&at) });
    assert!(why(&s, &q, other).contains(&"slip.other_head"));
    let turned = question(&s, "score1", &[1, 0]);
    assert!(why(&s, &q, explainer.value(turned.cell)).contains(&"slip.exchanged"));
    // Too few decimals to be sure, a fraction, digits of an input method.
    assert_eq!(check(&s, &q, &format!("{value:.0}")), Verdict::Coarse { decimals: 2 });
    assert_eq!(check(&s, &q, "abc"), Verdict::Unreadable);
    let wide: String = format!("{value:.4}").chars().map(|c| char::from_u32(c as u32 + 0xfee0).unwrap()).collect();
    assert_eq!(check(&s, &q, &wide), Verdict::Right);
}

#[test]
fn a_quiz_keeps_its_score() {
    let s = water_class();
    let steps: &Steps = &s.steps;
    let mut quiz = Quiz::new(draw(&s, steps, (17, 31), 4, 3).expect("runs"));
    let say = |quiz: &mut Quiz, text: &str| quiz.answer(&s, steps, text, 4).expect("runs");
    let right = |quiz: &Quiz| {
        let answer = quiz.open().expect("open").answer(&s, steps, 4).expect("runs");
        answer.split(' ').next().unwrap_or("").to_owned()
    };
    let first = right(&quiz);
    assert_eq!(say(&mut quiz, &first), Some(Verdict::Right));
    assert!(matches!(say(&mut quiz, "123456"), Some(Verdict::Wrong(_))));
    let second = right(&quiz);
    assert_eq!(say(&mut quiz, &second), Some(Verdict::Right));
    quiz.give_up();
    assert_eq!((quiz.score(), quiz.at), ((1, 3), 3));
    quiz.give_up();
    assert_eq!(say(&mut quiz, "1"), None);
}

#[test]
fn a_worksheet_is_the_same_for_the_same_seed() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
        let output = command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C").output().expect("runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let sheet = |seed: &str| run(&["worksheet", "water_class", "--step", "17..31", "--blanks", "12", "--seed", seed]);
    let (code, text) = sheet("1");
    assert_eq!(code, Some(0));
    assert!(text.contains("## Key") && text.contains("(12) ……") && !text.contains("(13) ……"));
    assert_eq!(sheet("1").1, text);
    assert_ne!(sheet("2").1, text);
    assert_eq!(run(&["worksheet", "water_class", "--step", "500"]).0, Some(2));
}

#[test]
fn the_debugger_asks_hides_explains_and_saves() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("score.json");
    let save = format!("quiz save {}", file.to_str().expect("text"));
    let s = water_class();
    let questions = draw(&s, &s.steps, (23, 23), 2, 5).expect("runs");
    let right = |i: usize| format!("answer {}", questions[i].answer(&s, &s.steps, 4).expect("runs"));
    let (first, second) = (right(0), right(1));
    let commands = ["quiz 23 2 5", "answer 12345", &first, &second, &save, "tour"];
    let mut arguments = vec!["play", "water_class", "--json"];
    arguments.extend(commands.iter().flat_map(|c| ["-e", *c]));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let output = command.args(&arguments).stdin(Stdio::null()).env("LC_ALL", "C").output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(lines.len(), commands.len());
    assert!(lines[0]["messages"].to_string().contains("question 1 of 2"), "{}", lines[0]);
    assert_eq!(lines[0]["cell"], serde_json::Value::Null, "the answer is not shown");
    assert!(lines[1]["answers"].to_string().contains("is wrong"), "{}", lines[1]);
    assert!(lines[2]["messages"].to_string().contains("right: "), "{}", lines[2]);
    assert!(lines[3]["messages"].to_string().contains("1 of 2 right"), "{}", lines[3]);
    assert_eq!(lines[5]["answers"][0]["rows"].as_array().map(Vec::len), Some(10));
    let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(file).expect("saved")).expect("JSON");
    assert_eq!((&saved["right"], &saved["closed"]), (&1.into(), &2.into()));
}
