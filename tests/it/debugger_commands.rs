//! The commands of the debugger as a script gives them: print, break, watch, continue, why, where-to, first-nan.

#![cfg(feature = "tui")]

use std::path::Path;
use std::sync::Arc;

use crate::common::front;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::executor::Outcome;
use tui_transformer::app::messages::Level;
use tui_transformer::app::settings::Settings;
use tui_transformer::session::{Options, open};
use tui_transformer::text::Lang;

fn app(name: &str, lang: Lang) -> App {
    let loaded = tui_transformer::scenario::load(Path::new(name)).expect("embedded");
    let session = open(loaded.scenario, None, Options::default()).expect("opens");
    let settings = Settings { lang, ..Settings::default() };
    App::new(Arc::new(session), None, settings)
}

fn tell(app: &mut App, line: &str) -> Outcome {
    front::run(app, &Action::parse(line).unwrap_or_else(|e| panic!("{line}: {e}")))
}

/// What is said, then what is found.
fn lines(app: &mut App, line: &str) -> Vec<String> {
    let reported = tell(app, line);
    let lang = app.ui.settings.lang;
    let mut all: Vec<String> = reported.messages.iter().map(|m| m.text.render(lang)).collect();
    for answer in reported.answers.iter().filter(|a| !a.rows.is_empty()) {
        all.push(answer.title.render(lang));
        all.extend(answer.rows.iter().map(|r| r.text.render(lang)));
    }
    all
}

fn step(app: &App) -> String {
    app.nav.step().expect("a step").label()
}

fn cell(app: &App) -> String {
    let d = &app.nav;
    d.view().expect("a view").cell_name(d.index())
}

#[test]
fn print_says_numbers_and_tensors() {
    let mut app = app("water_class", Lang::En);
    tell(&mut app, "step 25");
    assert_eq!(lines(&mut app, "print A1[0,:].sum()"), ["A1[0,:].sum() = 1"]);
    assert_eq!(lines(&mut app, "eval max(A1) > 0.6"), ["max(A1) > 0.6 = true"]);
    let table = lines(&mut app, "print A1[0..2,:]");
    assert_eq!(
        table,
        ["A1[0..2,:]: [query 2, key 4]", "0.2023  0.5261  0.0639  0.2078", "0.1832   0.501  0.1113  0.2045",]
    );
    // Nothing said: what one looks at; `it` is that, too.
    assert_eq!(lines(&mut app, "print")[0], "A1: [query 4, key 4]");
    assert_eq!(lines(&mut app, "print max"), ["max = 0.6888"]);
    let heads = lines(&mut app, "print encoder.0.self_attn.weights[:,0:1,:]");
    assert_eq!(heads[1], "[0, :, :]");
    assert_eq!(heads.len(), 5);
    // Enter on a row goes there.
    let reported = tell(&mut app, "print score1");
    let go = reported.answers[0].rows[2].action.clone().expect("a place");
    assert_eq!(go.line(), "go training:encoder.0.self_attn.scores[0,0,2,0]");
    front::run(&mut app, &go);
    assert_eq!((step(&app), cell(&app)), ("23".into(), "score1[2][0]".into()));
}

#[test]
fn errors_point_at_the_column_in_both_languages() {
    for (lang, says) in [
        (Lang::En, "column 6: nothing is called `A9` · did you mean `A1`?"),
        (Lang::Zh, "第 6 列：没有叫作 `A9` 的东西"),
    ] {
        let mut app = app("water_class", lang);
        let reported = tell(&mut app, "print 1 + (A9)");
        assert_eq!(reported.messages[0].level, Level::Error);
        let text = reported.messages[0].text.render(lang);
        assert!(text.starts_with(says), "{text}");
        let rows: Vec<String> = reported.answers[0].rows.iter().map(|r| r.text.render(lang)).collect();
        assert_eq!(rows, ["1 + (A9)", "     ^^"]);
    }
    let mut app = app("water_class", Lang::En);
    for (line, says) in [
        ("break A1 if max > ", "column 12"),
        ("break nothing.here", "fits `nothing.here`"),
        ("watch max", "a watch names its tensor"),
        ("why A1", "not one recorded number"),
        ("why A1[0,0] depth x", "after `depth` stands a number"),
        ("delete 7", "no breakpoint or watch `7`"),
        ("first-nan runn", "runn"),
    ] {
        // What the grammar refuses is not run.
        let text = if let Err(slip) = Action::parse(line) {
            slip.message(line, Lang::En).to_string()
        } else {
            let reported = tell(&mut app, line);
            let errors: Vec<_> = reported.messages.iter().filter(|m| m.level == Level::Error).collect();
            assert_eq!(errors.len(), 1, "{line}: {:?}", reported.messages);
            errors[0].text.render(Lang::En)
        };
        assert!(text.contains(says), "{line}: {text}");
    }
}

#[test]
fn continue_and_reverse_continue_stop_and_say_why() {
    let mut app = app("water_class", Lang::En);
    assert!(lines(&mut app, "continue")[0].starts_with("no breakpoints"));
    tell(&mut app, "break A1 if zeros > 0.3");
    tell(&mut app, "tbreak if zeros > 0.5");
    let said = lines(&mut app, "c");
    assert_eq!(said, ["breakpoint 2: if zeros > 0.5: R1: zeros = 0.5625"]);
    // At the first zero.
    assert_eq!((step(&app), cell(&app)), ("35".into(), "R1[0][0]".into()));
    let said = lines(&mut app, "c");
    assert_eq!(said, ["breakpoint 1: A1 if zeros > 0.3: A1: zeros = 0.375"]);
    assert_eq!((step(&app), cell(&app)), ("57".into(), "A1[0][1]".into()));
    tell(&mut app, "c");
    assert_eq!(step(&app), "69");
    assert_eq!(lines(&mut app, "c"), ["nothing stops from here to the end"]);
    assert_eq!(step(&app), "69");
    tell(&mut app, "rc");
    assert_eq!(step(&app), "57");
    // The one for once is gone.
    assert_eq!(lines(&mut app, "rc").len(), 1);
    assert_eq!(step(&app), "57");
    let list = lines(&mut app, "breaks");
    assert_eq!(list.len(), 2, "{list:?}");
    assert!(list[1].starts_with("1  break A1 if zeros > 0.3"), "{list:?}");
    // Backspace goes back to before the stop.
    tell(&mut app, "back");
    assert_eq!(step(&app), "69");
    assert_eq!(lines(&mut app, "delete all"), ["1 deleted"]);
    // Without anything: at this step; the same again takes it away.
    tell(&mut app, "break");
    assert!(app.has_break(68) && !app.has_break(67));
    tell(&mut app, "break");
    assert!(app.breaks.breakpoints().is_empty());
}

#[test]
fn what_no_step_shows_is_opened_beside_the_step() {
    let mut app = app("water_class", Lang::En);
    tell(&mut app, "break run:inference gen.*.decoder.1.norm3.out");
    for frame in 0..3 {
        tell(&mut app, "continue");
        let d = &app.nav;
        assert!(d.is_aside());
        let view = d.view().expect("a view");
        let path = &d.session.runs[view.run].program.node(view.node).path;
        assert_eq!(**path, format!("gen.{frame}.decoder.1.norm3.out"));
        assert_eq!(d.position(), 91 + frame);
    }
    assert!(lines(&mut app, "continue")[0].starts_with("nothing stops"));
    tell(&mut app, "reverse-continue");
    assert_eq!(app.nav.position(), 92);
}

#[test]
fn watches_show_their_value_and_stop_on_change() {
    let mut app = app("water_class", Lang::En);
    assert_eq!(lines(&mut app, "watch shape(P)[0]"), ["Watches", "1  watch shape(P)[0]: not computed yet"]);
    tell(&mut app, "step 88");
    let rows = lines(&mut app, "breaks");
    assert_eq!(rows[1], "1  watch shape(P)[0] = 4");
    assert_eq!(lines(&mut app, "continue"), ["watch 1: shape(P)[0]: 4 → 1"]);
    assert_eq!(step(&app), "92");
    tell(&mut app, "step 25");
    // Nothing said: the cell at the cursor.
    let rows = lines(&mut app, "watch");
    assert_eq!(rows[2], "2  watch training:encoder.0.self_attn.weights[0,0,0] = 0.2023");
    assert_eq!(lines(&mut app, "unwatch shape(P)[0]"), ["1 is deleted"]);
    assert_eq!(lines(&mut app, "unwatch all"), ["1 deleted"]);
    assert_eq!(lines(&mut app, "breaks").len(), 1);
}

#[test]
fn trees_name_their_cells_and_go_there() {
    let mut app = app("water_class", Lang::En);
    tell(&mut app, "step 17");
    let reported = tell(&mut app, "why Q1[0,0] depth 1 most 2");
    let rows: Vec<String> = reported.answers[0].rows.iter().map(|r| r.text.render(Lang::En)).collect();
    assert_eq!(
        rows,
        [
            "X_enc_in[0][1] = 0.7 × WQ1a[0][1] 0.9  →  0.63  45.0 %",
            "X_enc_in[0][2] = 0.8 × WQ1a[0][2] 0.5  →  0.4  28.6 %",
            "… 2 more, together 0.37  26.4 %",
        ]
    );
    let go = reported.answers[0].rows[0].action.clone().expect("a place");
    front::run(&mut app, &go);
    assert_eq!((step(&app), cell(&app)), ("12".into(), "X_enc_in[0][1]".into()));
    let down = lines(&mut app, "where-to depth 1 most 3");
    assert!(down[0].starts_with("X_enc_in[0][1] = 0.7 goes into"), "{down:?}");
    assert!(down.last().expect("rows").starts_with("… "), "{down:?}");
    let given = lines(&mut app, "why embed.weight[0,0]");
    assert_eq!(given.len(), 1);
    assert!(given[0].ends_with("is given, not computed"), "{given:?}");
    assert!(lines(&mut app, "why mean_loss depth 40 most all").len() > 100);
}

#[test]
fn no_nan_is_said_too_and_the_grammar_is_there() {
    let mut app = app("water_class", Lang::En);
    assert_eq!(lines(&mut app, "first-nan"), ["no NaN in run training"]);
    assert_eq!(lines(&mut app, "first-inf inference"), ["no ∞ in run inference"]);
    let grammar = lines(&mut app, "grammar");
    assert!(grammar.iter().any(|l| l.contains("row_sum != 1 ± 1e-6")), "{grammar:?}");
    assert!(grammar.iter().any(|l| l.contains("argmax")), "{grammar:?}");
}

#[test]
fn a_batch_of_one_is_counted_in_an_index_or_not() {
    let mut app = app("water_class", Lang::En);
    let mut value = |line: &str| {
        let lines = lines(&mut app, line);
        assert_eq!(lines.len(), 1, "{line}: {lines:?}");
        lines[0].rsplit(" = ").next().expect("a value").to_owned()
    };
    let short = value("print encoder.0.ffn.act[1,2]");
    assert_eq!(value("print encoder.0.ffn.act[0,1,2]"), short);
    assert_eq!(value("print sum(encoder.0.ffn.act[:,1,2])"), short);
    assert_eq!(value("print encoder.0.ffn.act[1,:][2]"), short, "a part has no batch");
    let reported = tell(&mut app, "print encoder.0.ffn.act[1,1,2]");
    let text = reported.messages[0].text.to_string();
    assert!(text.contains('1'), "{text}");
    assert_eq!(reported.messages[0].level, Level::Error);
    let reported = tell(&mut app, "why encoder.0.ffn.out[0,2,3]");
    assert!(reported.messages.iter().all(|m| m.level != Level::Error), "{:?}", reported.messages);
}

#[test]
fn a_symbol_of_another_run_is_that_run_s() {
    let mut app = app("post_or_pre", Lang::En);
    let own = lines(&mut app, "print mean(post_ln:encoder.5.norm2.var)");
    let value = own[0].rsplit(" = ").next().expect("a value").to_owned();
    tell(&mut app, "go pre_ln:encoder.0.residual2");
    let other = lines(&mut app, "print mean(encoder.5.norm2.var)");
    assert!(!other[0].ends_with(&value), "{other:?}");
    let of_symbol = lines(&mut app, "print mean(post_var6)");
    assert_eq!(of_symbol, [format!("mean(post_var6) = {value}")]);
}

#[test]
fn places_in_quotes_and_places_of_the_same_name() {
    let mut app = app("water_class", Lang::En);
    tell(&mut app, "go \"Q1\"[2,1]");
    assert_eq!(cell(&app), "Q1[2][1]");
    tell(&mut app, "run backward");
    let reported = tell(&mut app, "go \"∂L/∂score1\"[0,1]");
    assert_eq!(cell(&app), "∂L/∂score1[0][1]");
    let said = reported.messages[0].text.to_string();
    assert!(said.contains("more are called so: backward:"), "{said}");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let mut app = app("water_class", Lang::En);
    for (line, says) in [
        ("go Q1[9,9]", "[9, 9] is no cell of Q1"),
        ("go encoder.0.ffn.act[0,9,0]", "is no cell of encoder.0.ffn.act"),
        ("step 999", "there are 1 to 95"),
        ("search =1e-3..abc", "no value to search for: `=0.5261`"),
        ("search =abc", "no value to search for"),
        ("side-by-side head 1 2", "no head 2 (there are 2, counted from 0)"),
        ("step 40.99", "no sub-step 99 of step 40; it has"),
        ("break 40.99", "no sub-step 40.99"),
        ("print A1.max(axis=foo)", "no axis `foo`"),
        ("edit nothing[0,0] = 1", "column 1: there is no tensor"),
        ("edit norm.kind = 3", "known here: LayerNorm"),
    ] {
        let reported = tell(&mut app, line);
        let errors = reported.messages.iter().filter(|m| m.level == Level::Error);
        let errors: Vec<_> = errors.map(|m| m.text.to_string()).collect();
        assert_eq!(errors.len(), 1, "{line}: {:?}", reported.messages);
        assert!(errors[0].contains(says), "{line}: {errors:?}");
    }
    let reported = tell(&mut app, "edit Q1[0,0] = x");
    let rows: Vec<String> = reported.answers[0].rows.iter().map(|r| r.text.to_string()).collect();
    assert_eq!(rows, ["Q1[0,0] = x", "          ^"]);
}

#[test]
fn a_number_is_a_choice_that_holds_one() {
    let mut app = app("water_class", Lang::En);
    let reported = tell(&mut app, "edit attention.scale = 0.5");
    assert!(reported.messages.iter().all(|m| m.level != Level::Error), "{:?}", reported.messages);
    assert_eq!(app.edits.count(&app.nav), 1);
}

#[test]
fn breakpoints_for_once_are_marked_and_forgotten_and_sub_steps_are_places() {
    let mut app = app("water_class", Lang::En);
    tell(&mut app, "tbreak 5");
    let list = lines(&mut app, "breaks");
    assert!(list[1].contains("tbreak 5"), "{list:?}");
    assert!(app.ui.record.iter().any(|a| a.line() == "tbreak 5"), "{:?}", app.ui.record);
    tell(&mut app, "continue");
    assert_eq!(step(&app), "5");
    assert!(!app.ui.record.iter().any(|a| a.line() == "tbreak 5"), "{:?}", app.ui.record);
    tell(&mut app, "break 40.2");
    tell(&mut app, "continue");
    assert!(step(&app).starts_with("40"), "{}", step(&app));
}

#[test]
fn values_are_searched_for_beyond_a_bound() {
    let mut app = app("water_class", Lang::En);
    tell(&mut app, "step 25");
    assert_eq!(tell(&mut app, "search > 0.68").messages, []);
    let value = app.nav.cell().and_then(|(run, c)| Some(app.nav.session.trace(run).ok()?.get(c.node)?.get(c.flat)));
    assert!(value.is_some_and(|x| x > 0.68), "{value:?}");
}
