//! The quiz and the tour of the debugger: questions about the steps that are listed, and ten stops for newcomers.

use crate::app::action::Action;
use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::args::Text;
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::quiz::Open;
use crate::debug::quiz::{Quiz, Verdict, draw};
use crate::text::{Msg, NumberFormat, escape};

/// Questions of a quiz, unless a number is given.
const QUESTIONS: usize = 10;

/// `A..B [N] [SEED]`, `A` alone, nothing for the step `here`.
fn settings(text: &str, here: u32) -> Option<((u32, u32), usize, u64)> {
    let mut words = text.split_whitespace();
    let range = match words.next() {
        None => (here, here),
        Some("all") => (1, u32::MAX),
        Some(range) => match range.split_once("..") {
            Some((a, b)) => (a.parse().ok()?, if b.is_empty() { u32::MAX } else { b.parse().ok()? }),
            None => (range.parse().ok()?, range.parse().ok()?),
        },
    };
    let count = words.next().map_or(Some(QUESTIONS), |w| w.parse().ok())?;
    let seed = words.next().map_or(Some(1), |w| w.parse().ok())?;
    words.next().is_none().then_some((range, count, seed))
}

/// `quiz 17..31 [N] [SEED]`, `quiz skip`, `quiz off`, `quiz save FILE`.
pub fn quiz(app: &mut App, Text(text): &Text) {
    command(app, text);
    hide(app);
}

fn command(app: &mut App, text: &str) {
    let App { nav, ui, quiz, .. } = app;
    if text == "off" {
        let score = score(quiz.as_ref());
        *quiz = None;
        return ui.say(Level::Info, score.unwrap_or_else(|| Msg::new("quiz.none")));
    }
    if text == "skip" {
        return give_up(app);
    }
    if let Some(path) = text.strip_prefix("save ") {
        return save(app, path.trim());
    }
    let here = nav.step().and_then(|s| s.number.first().copied()).unwrap_or(1);
    let Some((range, count, seed)) = settings(text, here) else {
        return ui.say(Level::Error, Msg::new("quiz.usage").arg("text", escape(text)));
    };
    match draw(&nav.session, &nav.steps, range, count, seed) {
        Err(e) => ui.say(Level::Error, Msg::new("cli.cannot_run").arg("why", e)),
        Ok(questions) if questions.is_empty() => ui.say(Level::Error, Msg::new("quiz.nothing")),
        Ok(questions) => {
            let asked = format!("{}..{} {count} {seed}", range.0, range.1);
            *quiz = Some(Open { quiz: Quiz::new(questions), asked });
            ask(app);
        }
    }
}

/// Goes to the open question and asks it; without one, says the score.
fn ask(app: &mut App) {
    let App { nav, ui, quiz, .. } = app;
    let Some(open) = quiz.as_ref() else { return ui.say(Level::Info, Msg::new("quiz.none")) };
    let (at, all) = (open.quiz.at, open.quiz.questions.len());
    let Some(question) = open.quiz.open().cloned() else {
        if let Some(score) = score(quiz.as_ref()) {
            ui.say(Level::Done, score);
        }
        return;
    };
    nav.jump_to(question.step);
    nav.select(question.view, &question.index);
    let msg = Msg::new("quiz.question").arg("number", at + 1).arg("all", all);
    ui.say(Level::Info, msg.arg("what", question.text().render(ui.settings.lang)));
}

/// `answer TEXT`: right, or why not.
pub fn answer(app: &mut App, Text(text): &Text) {
    try_answer(app, text);
    hide(app);
}

fn try_answer(app: &mut App, text: &str) {
    let App { nav, ui, quiz, .. } = app;
    let digits = match ui.settings.digits {
        NumberFormat::Decimals(d) | NumberFormat::Scientific(d) => d,
        NumberFormat::Shortest | NumberFormat::Bits => 4,
    };
    let Some(open) = quiz.as_mut() else { return ui.say(Level::Info, Msg::new("quiz.none")) };
    let Some(question) = open.quiz.open().cloned() else { return ask(app) };
    let verdict = match open.quiz.answer(&nav.session, &nav.steps, text, digits) {
        Err(e) => return ui.say(Level::Error, Msg::new("cli.cannot_run").arg("why", e)),
        Ok(None) => return,
        Ok(Some(verdict)) => verdict,
    };
    match verdict {
        Verdict::Right => {
            let line = question.derivation(&nav.session, &nav.steps, digits, ui.settings.lang).unwrap_or_default();
            ui.say(Level::Done, Msg::new("quiz.right").arg("line", escape(&line)));
            ask(app);
        }
        Verdict::Coarse { decimals } => ui.say(Level::Info, Msg::new("quiz.coarse").arg("decimals", decimals)),
        Verdict::Unreadable => ui.say(Level::Warning, Msg::new("quiz.unreadable").arg("text", escape(text))),
        Verdict::Wrong(why) => {
            let mut answer = Answer::new(Msg::new("quiz.wrong").arg("text", escape(text)));
            if why.is_empty() {
                answer.push(Row::new(Msg::new("quiz.unexplained")).level(Level::Warning));
            }
            for why in why {
                answer.push(Row::new(why).level(Level::Warning));
            }
            ui.answer(answer);
        }
    }
}

fn give_up(app: &mut App) {
    let App { nav, ui, quiz, .. } = app;
    let Some(open) = quiz.as_mut() else { return ui.say(Level::Info, Msg::new("quiz.none")) };
    if let Some(question) = open.quiz.open().cloned() {
        open.quiz.give_up();
        let digits = 4;
        let line = question.derivation(&nav.session, &nav.steps, digits, ui.settings.lang).unwrap_or_default();
        ui.say(Level::Info, Msg::new("quiz.given_up").arg("line", escape(&line)));
    }
    ask(app);
}

fn score(quiz: Option<&Open>) -> Option<Msg> {
    let (right, closed) = quiz?.quiz.score();
    let all = quiz?.quiz.questions.len();
    Some(Msg::new("quiz.score").arg("right", right).arg("closed", closed).arg("all", all))
}

/// Writes the score and every question as JSON.
fn save(app: &mut App, path: &str) {
    let App { nav, ui, quiz, .. } = app;
    let Some(open) = quiz.as_ref() else { return ui.say(Level::Info, Msg::new("quiz.none")) };
    let (right, closed) = open.quiz.score();
    let questions: Vec<serde_json::Value> = open
        .quiz
        .questions
        .iter()
        .enumerate()
        .map(|(i, q)| {
            let done = open.quiz.closed.get(i);
            serde_json::json!({
                "step": nav.steps.list()[q.step].label(),
                "cell": q.name,
                "first_try": done.map(|d| d.0),
                "tries": done.map(|d| d.1),
            })
        })
        .collect();
    let json = serde_json::json!({
        "scenario": nav.session.scenario.name,
        "quiz": open.asked,
        "right": right,
        "closed": closed,
        "questions": questions,
    });
    let text = serde_json::to_string_pretty(&json).unwrap_or_default() + "\n";
    ui.effects.push(Effect::write(path, text));
}

/// Ten stops: what to look at, and the command that goes there.
pub fn tour(app: &mut App) {
    let App { nav, ui, .. } = app;
    let mut answer = Answer::new(Msg::new("tour.title"));
    let last = nav.steps.list().len().max(1);
    let near = |share: f64| ((last as f64 * share) as usize).clamp(1, last);
    let stops: [(&'static str, String); 10] = [
        ("tour.1", "next".to_owned()),
        ("tour.2", format!("step {}", near(0.2))),
        ("tour.3", "right".to_owned()),
        ("tour.4", "follow".to_owned()),
        ("tour.5", "back".to_owned()),
        ("tour.6", "in".to_owned()),
        ("tour.7", "out".to_owned()),
        ("tour.8", "view heads".to_owned()),
        ("tour.9", "view step".to_owned()),
        ("tour.10", "quiz".to_owned()),
    ];
    for (key, line) in stops {
        let text = Msg::new(key).arg("command", &line);
        let row = Row::new(text);
        answer.push(match Action::parse(&line) {
            Ok(action) => row.action(action),
            Err(_) => row,
        });
    }
    ui.answer(answer);
}

/// The value that an open question asks for is not shown.
fn hide(app: &mut App) {
    let question = app.quiz.as_ref().and_then(|open| open.quiz.open());
    app.nav.hidden = question.map(|q| (q.run, q.cell));
}
