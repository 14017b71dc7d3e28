//! A name means the same tensor to every command: every symbol of every embedded scenario, from several steps.

use std::path::Path;
use std::sync::Arc;

use crate::common::front;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::args::Place;
use tui_transformer::app::navigator::Navigator;
use tui_transformer::app::settings::Settings;
use tui_transformer::debug::whatif::{Command, Edit, EditContext, WhatIf};
use tui_transformer::scenario::{EMBEDDED, LESSONS, edit, load};
use tui_transformer::session::locate::Address;
use tui_transformer::session::{Options, Session, open};

/// All but the one that is as large as a checkpoint.
fn each(mut test: impl FnMut(&str, &Arc<Session>)) {
    for (name, _) in EMBEDDED.iter().chain(LESSONS).filter(|(name, _)| *name != "bert_base") {
        let scenario = load(Path::new(name)).expect("embedded").scenario;
        let session = open(scenario, None, Options::default()).unwrap_or_else(|p| panic!("{name}: {p:#?}"));
        test(name, &Arc::new(session));
    }
}

fn symbols(nav: &Navigator) -> Vec<String> {
    let mut all: Vec<String> = nav.steps.list().iter().flat_map(|s| &s.views).map(|v| v.symbol.clone()).collect();
    all.sort();
    all.dedup();
    all
}

/// What `print` takes the name for.
fn printed(nav: &Navigator, name: &str) -> Address {
    let timeline = nav.timeline();
    nav.scope(&timeline).find(name).unwrap_or_else(|e| panic!("{name}: {e:?}"))
}

/// The cell that `edit` would change, by path and index of the whole tensor.
fn edited(nav: &Navigator, what_if: &WhatIf, name: &str, index: &str) -> (String, Vec<usize>) {
    let text = format!("{name}{index} = 1");
    let command = Command::edit(&text).unwrap_or_else(|slip| panic!("{text}: {slip:?}"));
    let here =
        EditContext { run: nav.run_here(), steps: &nav.steps, at: nav.position(), shown: nav.step(), cursor: None };
    match what_if.resolve(&text, &command, &here) {
        Ok(Edit::Recorded(edit::Edit::Cell { path, at, .. })) => (path, at),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn print_go_and_edit_find_the_same_cell() {
    let mut compared = 0;
    each(|scenario, session| {
        let what_if = WhatIf::new(Arc::clone(session));
        let mut nav = Navigator::new(Arc::clone(session), None);
        let names = symbols(&nav);
        let last = nav.steps.list().len() - 1;
        for from in [0, last / 3, last * 2 / 3, last] {
            for name in &names {
                nav.jump_to(from);
                let what = format!("{scenario}, step {from}, {name}");
                let address = printed(&nav, name);
                let program = &session.runs[address.run].program;
                let node = program.node(address.node);
                let zeros = vec![0; address.part.shape().rank()];
                let cell = address.cell(&zeros).unwrap_or_else(|| panic!("{what}: no first cell"));
                let full = node.shape.unflat(cell.flat)[..node.shape.rank()].to_vec();
                let index = if zeros.is_empty() { String::new() } else { format!("{zeros:?}") };
                assert_eq!(edited(&nav, &what_if, name, &index), (node.path.to_string(), full), "{what}: edit");
                // The name alone goes to a view of the same tensor, with an index to that cell of it.
                nav.to_place(&Place { name: name.clone(), index: Vec::new() })
                    .unwrap_or_else(|e| panic!("{what}: {e:?}"));
                let view = nav.view().unwrap_or_else(|| panic!("{what}: go shows nothing"));
                assert_eq!((view.run, view.node), (address.run, address.node), "{what}: go");
                nav.jump_to(from);
                nav.to_place(&Place { name: name.clone(), index: zeros }).unwrap_or_else(|e| panic!("{what}: {e:?}"));
                assert_eq!(nav.cell(), Some((address.run, cell)), "{what}: go to the first cell");
                compared += 1;
            }
        }
    });
    assert!(compared > 2000, "{compared}");
}

#[test]
fn a_breakpoint_stops_first_where_the_name_goes() {
    let mut stopped = 0;
    each(|scenario, session| {
        let mut app = App::new(Arc::clone(session), None, Settings::default());
        let names = symbols(&app.nav);
        for name in &names {
            app.nav.jump_to(0);
            if app.nav.step().is_some_and(|s| s.views.iter().any(|v| v.symbol == *name)) {
                continue;
            }
            let what = format!("{scenario}, {name}");
            let address = printed(&app.nav, name);
            for line in [format!("tbreak {name}"), "continue".to_owned()] {
                let action = Action::parse(&line).unwrap_or_else(|slip| panic!("{what}: {line}: {slip:?}"));
                front::run(&mut app, &action);
            }
            let step = app.nav.step().unwrap_or_else(|| panic!("{what}: no step"));
            let shows = step.views.iter().any(|v| v.symbol == *name && (v.run, v.node) == (address.run, address.node));
            assert!(shows, "{what}: stopped at {}", step.label());
            stopped += 1;
        }
    });
    assert!(stopped > 400, "{stopped}");
}
