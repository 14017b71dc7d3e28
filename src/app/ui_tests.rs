//! Keys as strings in, state and effects out.

use super::action::Action;
use super::effect::{Effect, Report};
use super::input::Input;
use super::key::KeySeq;
use super::messages::Level;
use super::overlay::{Item, Overlay};
use super::settings::GlyphSet;
use super::settings::Settings;
use super::ui::{Focus, Ui};
use super::view::View;
use crate::text::{Lang, Msg, NumberFormat};

struct Run {
    ui: Ui,
    effects: Vec<Effect>,
    rest: Vec<String>,
}

fn new() -> Run {
    let mut ui = Ui::new(Settings::default());
    ui.step_label = "23".to_owned();
    ui.export_stem = "water_class-step23".to_owned();
    Run { ui, effects: Vec::new(), rest: Vec::new() }
}

impl Run {
    fn press(mut self, keys: &str) -> Self {
        for key in keys.parse::<KeySeq>().unwrap().0 {
            for action in self.ui.input(&Input::Key(key), &()) {
                self.act(action);
            }
        }
        self
    }

    fn type_in(mut self, text: &str) -> Self {
        for c in text.chars() {
            let input = Input::Key(super::key::Key::char(c));
            for action in self.ui.input(&input, &()) {
                self.act(action);
            }
        }
        self
    }

    fn act(&mut self, action: Action) {
        let rest = self.ui.update(action, &());
        self.effects.append(&mut self.ui.effects);
        self.rest.extend(rest.map(|a| a.line()));
    }
}

fn exists() -> Report {
    Report::Exists { why: Msg::new("export.file.exists"), again: Effect::Redraw }
}

#[test]
fn keys_reach_the_session() {
    let run = new().press("right . , > < enter backspace");
    assert_eq!(run.rest, ["next", "next", "prev", "in", "out", "follow", "back"]);
    let run = new().press("tab right ]d ] right");
    assert_eq!(run.ui.focus, Focus::Stage);
    assert_eq!(run.rest, ["right", "next-diff", "right"]);
}

#[test]
fn full_width_letters_count() {
    let run = new().type_in("？");
    assert!(matches!(run.ui.overlays[..], [Overlay::Help { .. }]));
}

#[test]
fn commands_do_what_keys_do() {
    let run = new().press(":").type_in("step 23").press("enter");
    assert_eq!(run.rest, ["step 23"]);
    assert!(run.ui.overlays.is_empty());
    let run = run.press(": up enter");
    assert_eq!(run.rest, ["step 23", "step 23"], "history");
    let run = new().press(":").type_in("set lang zh").press("enter");
    assert_eq!(run.ui.settings.lang, Lang::Zh);
    let run = new().press(":").type_in("set glyphs ascii").press("enter");
    assert_eq!(run.ui.settings.glyphs, GlyphSet::Ascii);
    let run = new().press(":").type_in("nxet").press("enter");
    let said = run.ui.messages.current().unwrap().text.to_string();
    assert!(said.contains("next"), "{said}");
    let run = new().press(":").type_in("vie").press("tab").type_in("he");
    let run = run.press("tab enter");
    assert_eq!(run.ui.view, View::Heads);
}

#[test]
fn letters_are_text_while_typing() {
    let run = new().press("/").type_in("quick? ").press("enter");
    assert_eq!(run.rest, ["search quick?"]);
    assert!(run.effects.is_empty());
    assert_eq!(run.ui.last_search, Some(("quick?".to_owned(), true)));
    let run = new().press("#").type_in("Q1[2,0]").press("enter");
    assert_eq!(run.rest, ["go Q1[2,0]"]);
    let run = new().press("#").type_in("40.1").press("enter");
    assert_eq!(run.rest, ["step 40.1"]);
}

#[test]
fn escape_takes_away_one_overlay() {
    let run = new().press("? esc");
    assert!(run.ui.overlays.is_empty());
    let run = new().press("@ esc");
    assert_eq!(run.ui.view, View::Step);
    let run = new().press("f5");
    assert!(run.ui.play.on);
    assert!(!run.press("esc").ui.play.on);
    assert_eq!(new().press("? q").effects, [], "q closes help first");
    assert_eq!(new().press("q").effects, [Effect::Quit]);
}

#[test]
fn an_interruption_stops_and_a_second_one_in_a_row_leaves() {
    let run = new().press("f5 ctrl-c");
    assert!(!run.ui.play.on);
    assert_eq!(run.effects, []);
    let said = run.ui.messages.current().expect("a message").text.to_string();
    assert!(said.starts_with("F10 / q quits"), "{said}");
    assert_eq!(new().press("ctrl-c i ctrl-c").effects, []);
    assert_eq!(new().press("? ctrl-c ctrl-c").effects, []);
    assert_eq!(new().press("ctrl-c ctrl-c").effects, [Effect::Quit]);
}

#[test]
fn suspend_works_under_an_overlay() {
    assert_eq!(new().press("/ ctrl-z").effects, [Effect::Suspend]);
    assert_eq!(new().press("? ctrl-z").effects, [Effect::Suspend]);
}

#[test]
fn the_palette_finds_by_description_and_asks_for_arguments() {
    let run = new().press("f2").type_in("bookmark list").press("enter");
    assert_eq!(run.rest, ["bookmarks"]);
    let run = new().press("f2").type_in("by number").press("enter");
    assert!(matches!(
        &run.ui.overlays[..],
        [Overlay::Prompt(p)] if p.editor.text() == "step "
    ));
}

#[test]
fn the_export_form_proposes_and_follows() {
    let run = new().press("e");
    let Some(Overlay::Export(form)) = run.ui.overlays.last() else {
        panic!("no form");
    };
    assert_eq!(form.path.text(), "water_class-step23.md");
    let run = run.press("right enter");
    assert_eq!(run.rest, ["export csv 23 water_class-step23.csv"]);
    let run = new().press("e tab ctrl-u").type_in("1..5").press("tab");
    let run = run.press("ctrl-u").type_in("my q.md").press("enter");
    assert_eq!(run.rest, ["export md 1..5 my q.md"]);
}

#[test]
fn the_export_form_stays_until_the_file_is_written() {
    let wrong = |run: &Run| match run.ui.overlays.last() {
        Some(Overlay::Export(form)) => (form.field, form.wrong.is_some()),
        other => panic!("{other:?}"),
    };
    let run = new().press("e tab tab ctrl-u enter");
    assert_eq!((wrong(&run), run.rest.len()), ((2, true), 0), "no path");
    let mut run = run.type_in("a.md").press("enter");
    assert_eq!((wrong(&run), run.rest.len()), ((2, false), 1));
    run.ui.report(Report::Failed(Msg::new("tui.said.no_step")));
    assert_eq!(wrong(&run), (2, true));
    let question = exists();
    run.ui.report(question);
    let mut run = run.press("esc");
    assert_eq!(wrong(&run).0, 2, "no to the question");
    run.ui.report(Report::Done(Msg::new("tui.said.no_step")));
    assert!(run.ui.overlays.is_empty());
}

#[test]
fn lists_choose_and_delete() {
    let item = |n: u32| Item {
        label: n.to_string(),
        level: Level::Info,
        action: Some(Action::parse(&format!("step {n}")).unwrap()),
        delete: Some(Action::parse(&format!("delete {n}")).unwrap()),
        bar: None,
    };
    let mut run = new();
    run.ui.overlays.push(Overlay::List {
        title: Msg::new("tui.action.bookmarks"),
        items: (1..=3).map(item).collect(),
        selected: 0,
    });
    let run = run.press("down delete up up enter");
    assert_eq!(run.rest, ["delete 2", "step 3"]);
}

#[test]
fn existing_files_are_asked_about() {
    let mut run = new();
    run.ui.report(exists());
    let no = run.press("esc");
    assert!(no.ui.overlays.is_empty() && no.effects.is_empty());
    let mut run = new();
    run.ui.report(exists());
    assert_eq!(run.press("enter").effects, [Effect::Redraw]);
}

#[test]
fn digits_theme_language_and_mouse_change_while_running() {
    let run = new().press("d d D T L M");
    assert_eq!(run.ui.settings.digits, NumberFormat::Decimals(5));
    assert_eq!(run.ui.settings.theme, "light");
    assert_eq!(run.ui.settings.lang, Lang::Zh);
    assert_eq!(run.effects, [Effect::Mouse(true)]);
    let run = new().press(":").type_in("set theme lihgt").press("enter");
    assert_eq!(run.ui.settings.theme, "dark");
    assert!(run.ui.messages.current().unwrap().text.to_string().contains("light"));
}

#[test]
fn a_count_repeats_a_motion_and_a_digit_alone_shows_its_view() {
    let lines = |keys: &str| new().press(keys).rest;
    assert_eq!(lines("3 ."), ["next"; 3]);
    assert_eq!(lines("2 3 G"), ["step 23"]);
    assert_eq!(lines("2 3 g g"), ["step 23"]);
    assert_eq!(lines("tab 1 0 right"), vec!["right"; 10]);
    assert_eq!(lines("tab 0 $"), ["row-start", "row-end"], "columns of a table");
    // No motion comes after it.
    let mut run = new().press("2");
    assert_eq!((run.ui.view, run.ui.count.as_str()), (View::Step, "2"));
    assert!(run.ui.count_interval().is_some());
    for action in run.ui.input(&Input::Tick, &()) {
        run.act(action);
    }
    assert_eq!((run.ui.view, run.ui.count.as_str()), (View::Heads, ""));
    let run = new().press("4 ?");
    assert_eq!(run.ui.view, View::Probs);
    assert_eq!(run.ui.overlays.len(), 1);
    let run = new().press("2 esc .");
    assert_eq!((run.ui.view, run.rest.len()), (View::Step, 1), "Esc forgets the count");
    let run = new().press("2 3 ?");
    assert_eq!(run.ui.view, View::Step, "two digits are no view's key");
}

#[test]
fn no_key_is_swallowed_by_a_popup() {
    let run = new().press("? x");
    let said = run.ui.messages.current().expect("a message").text.to_string();
    assert!(said.contains('x'), "{said}");
}

#[test]
fn other_ways_to_leave() {
    for line in ["q", "q!", "x", "wq", "exit"] {
        let run = new().press(":").type_in(line).press("enter");
        assert_eq!(run.effects, [Effect::Quit], "{line}");
    }
}

#[test]
fn pasting_goes_into_the_open_line() {
    let mut run = new().press(":");
    run.ui.input(&Input::Paste("step 5\n".to_owned()), &());
    assert_eq!(run.press("enter").rest, ["step 5"]);
}

#[test]
fn what_was_done_can_be_replayed() {
    let run = new().press("right enter");
    let run = run.press(":").type_in("go Q1").press("enter");
    let lines: Vec<String> = run.ui.record.iter().map(Action::line).collect();
    assert_eq!(lines, ["next", "follow", "go Q1"]);
}

#[test]
fn texts_scroll_back_at_once_from_their_end() {
    let mut run = new().press("? G");
    // What a frame would say.
    run.ui.scrolling = super::overlay::Scrolling { end: 30, page: 20 };
    let at = |run: &Run| match run.ui.overlays[..] {
        [Overlay::Help { scroll }] => scroll,
        _ => panic!("{:?}", run.ui.overlays),
    };
    let run = run.press("k");
    assert_eq!(at(&run), 29);
    let run = run.press("ctrl-u");
    assert_eq!(at(&run), 19);
    let run = run.press("G ctrl-d j");
    assert_eq!(at(&run), 30);
    let run = run.press("pageup");
    assert_eq!(at(&run), 10);
}
