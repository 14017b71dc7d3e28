//! `:checks` in the debugger: findings as a list to go on from, marks of steps, from one failed step to the next.
#![cfg(feature = "tui")]

use std::sync::Arc;

use crate::common::front;
use crate::common::lints::{bare, embedded};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_transformer::app::action::Action;
use tui_transformer::app::answer::Row;
use tui_transformer::app::app::App;
use tui_transformer::app::executor::Outcome;
use tui_transformer::app::messages::Level;
use tui_transformer::app::settings::Settings;
use tui_transformer::model::config::Scale;
use tui_transformer::scenario::lint::Severity;
use tui_transformer::scenario::schema::Labels;
use tui_transformer::text::Lang;
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::theme::{Depth, Environment};

fn app(session: tui_transformer::session::Session, run: Option<usize>) -> App {
    App::new(Arc::new(session), run, Settings::default())
}

/// Two faults: a scale in each of two layers, and labels.
fn faulty() -> App {
    let session = embedded("modern_decoder", |s| {
        bare(s);
        s.model.attention.scale = Scale::SqrtDModel;
        s.labels = Labels::Unshifted;
    });
    app(session, None)
}

fn say(app: &mut App, line: &str) -> Outcome {
    front::run(app, &Action::parse(line).unwrap())
}

fn text(row: &Row) -> String {
    row.text.render(Lang::En)
}

fn at(app: &App) -> usize {
    app.nav.position()
}

fn path(app: &App) -> String {
    let (run, cell) = app.nav.cell().unwrap();
    app.nav.session.runs[run].program.node(cell.node).path.to_string()
}

fn failed(app: &App) -> Vec<(usize, Severity)> {
    let steps = 0..app.nav.steps.list().len();
    steps.filter_map(|i| Some((i, app.checks.failed(&app.nav, i)?))).collect()
}

#[test]
fn findings_are_a_list_and_each_leads_to_its_place() {
    let mut app = faulty();
    // Nothing runs before it is requested.
    assert_eq!(failed(&app), []);
    let reported = say(&mut app, "checks");
    let [answer] = &reported.answers[..] else { panic!("{reported:?}") };
    // The inference run has the scale in its calls as well: said once a layer.
    assert_eq!(answer.title.render(Lang::En), "Checks: 1 errors, 4 warnings, 0 remarks");
    let rows = &answer.rows;
    assert!(text(&rows[0]).starts_with("error: labels_unshifted: run training, step "));
    assert_eq!(rows[0].level, Level::Error);
    assert!(text(&rows[1]).starts_with("    why: ") && rows[1].action.is_none());
    assert!(text(&rows[2]).starts_with("    mend: "));
    let findings: Vec<&Row> = rows.iter().filter(|r| r.action.is_some()).collect();
    assert_eq!(findings.len(), 5);
    for row in &findings {
        app.act(row.action.clone().unwrap());
        let words = text(row);
        assert!(words.contains(&format!(" {}", path(&app))), "{words} {}", path(&app));
    }
    // Said again at once: nothing is computed anew, and the list is the same.
    assert_eq!(say(&mut app, "checks").answers, reported.answers);
}

#[test]
fn from_one_failed_step_to_the_next_around() {
    let mut app = faulty();
    let reported = say(&mut app, "next-failed");
    assert!(reported.moved);
    let scores = |l: usize| format!("decoder.{l}.self_attn.scores");
    assert!(text_of(&reported).contains(&format!("attention_scale: run training, step {}", label(&app))));
    assert!(text_of(&reported).contains(&scores(0)));
    let mut places = vec![at(&app)];
    for _ in 0..2 {
        say(&mut app, "next-failed");
        places.push(at(&app));
    }
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(path(&app), "loss.labels");
    let marks = failed(&app);
    let positions: Vec<usize> = marks.iter().map(|m| m.0).collect();
    assert_eq!(positions, places);
    let severities: Vec<Severity> = marks.iter().map(|m| m.1).collect();
    assert_eq!(severities, [Severity::Warning, Severity::Warning, Severity::Error]);
    // Around, and back.
    say(&mut app, "next-failed");
    assert_eq!(at(&app), places[0]);
    say(&mut app, "prev-failed");
    assert_eq!(at(&app), places[2]);
    say(&mut app, "prev-failed");
    assert_eq!(at(&app), places[1]);
    // Back to where one was.
    say(&mut app, "back");
    assert_eq!(at(&app), places[2]);
}

fn text_of(reported: &Outcome) -> String {
    let text = reported.messages.iter().map(|m| m.text.render(Lang::En));
    text.collect()
}

fn label(app: &App) -> String {
    app.nav.step().unwrap().label()
}

#[test]
fn the_steps_of_another_run_have_marks_of_their_own() {
    let mut app = faulty();
    say(&mut app, "checks");
    let training = failed(&app);
    say(&mut app, "run greedy");
    let greedy = failed(&app);
    // Labels are of the training run.
    assert!(greedy.iter().all(|m| m.1 == Severity::Warning) && greedy.len() == 2);
    say(&mut app, "run training");
    assert_eq!(failed(&app), training);
    // Where the run that is listed is in order, the next failed step is in another one.
    let session = embedded("encoder_char", |s| {
        bare(s);
        for run in &mut s.runs {
            if let tui_transformer::scenario::schema::Run::Encode { with, .. } = run {
                with.allow.clear();
            }
        }
    });
    let mut app = self::app(session, Some(0));
    say(&mut app, "next-failed");
    assert_eq!(app.nav.run, Some(1));
    assert!(path(&app).starts_with("encoder.0.self_attn."));
}

#[test]
fn a_run_in_order_says_so() {
    let mut app = app(embedded("gpt_block", bare), None);
    assert_eq!(text_of(&say(&mut app, "checks")), "Checks: nothing found");
    let reported = say(&mut app, "prev-failed");
    assert!(!reported.moved && reported.messages[0].level == Level::Info);
}

#[test]
fn failed_steps_are_marked_in_the_list() {
    let mut app = faulty();
    let look = look(&app.ui.settings, Environment { no_color: true, detected: Depth::None });
    let area = Rect::new(0, 0, 120, 36);
    let marked = |app: &App| {
        let mut buf = Buffer::empty(area);
        draw(app, area, &mut buf, &look);
        let cells = buf.content.chunks(usize::from(area.width));
        let lines = cells.map(|l| l.iter().map(ratatui::buffer::Cell::symbol).collect::<String>());
        lines.filter(|l| l.contains('✗')).collect::<Vec<_>>()
    };
    assert!(marked(&app).is_empty());
    say(&mut app, "next-failed");
    let lines = marked(&app);
    let label = format!("{} ", label(&app));
    assert!(lines.iter().any(|l| l.contains(&label)), "{lines:?}");
}
