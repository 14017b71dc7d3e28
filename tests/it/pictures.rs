//! What must hold of the screens at every step: operands of the derivation are there, the legend is an exact scan, `=`
//! never joins tables whose values differ, large screens are used.
#![cfg(feature = "tui")]

use std::path::Path;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::breakpoints::trail;
use tui_transformer::app::measure::mask_scores;
use tui_transformer::app::messages::Level;
use tui_transformer::app::navigator::{Plane, TableModel};
use tui_transformer::app::settings::Settings;
use tui_transformer::app::views::{compare, heads, probs, step};
use tui_transformer::debug::whatif::Before;
use tui_transformer::explain::Explainer;
use tui_transformer::explain::line::MASKED_BELOW;
use tui_transformer::program::{NodeId, Op, Role};
use tui_transformer::scenario;
use tui_transformer::session;
use tui_transformer::tensor::DType;
use tui_transformer::trace::AnyValue;
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::shown::Shown;
use tui_transformer::tui::snapshot;
use tui_transformer::tui::theme::{Depth, Environment};

const COLOURS: Environment = Environment { no_color: false, detected: Depth::True };

const SCENARIOS: [&str; 4] = ["water_class", "bert_block", "modern_decoder", "gpt_block"];

fn app(name: &str) -> App {
    let loaded = scenario::load(Path::new(name)).unwrap();
    let session = Arc::new(session::open(loaded.scenario, None, session::Options::default()).unwrap());
    App::new(session, None, Settings::default())
}

fn command(app: &mut App, line: &str) {
    let outcome = crate::common::front::run(app, &Action::parse(line).unwrap());
    let wrong = outcome.messages.iter().find(|m| m.level == Level::Error);
    assert!(wrong.is_none(), "{line}: {wrong:?}");
}

fn frame(app: &App, (width, height): (u16, u16)) -> (Buffer, Shown) {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    let shown = draw(app, area, &mut buf, &look(&app.ui.settings, COLOURS));
    (buf, shown)
}

/// Every step of the walkthrough.
fn steps(app: &mut App, mut f: impl FnMut(&App, &str)) {
    let labels: Vec<String> = app.nav.steps.list().iter().map(tui_transformer::walkthrough::Step::label).collect();
    for label in labels {
        command(app, &format!("step {label}"));
        f(app, &label);
    }
}

#[test]
fn the_operands_of_the_derivation_are_on_the_screen() {
    for name in SCENARIOS {
        let mut app = app(name);
        steps(&mut app, |app, label| {
            let Some((run, cell)) = app.nav.cell() else { return };
            let Some(trace) = app.nav.trace(run) else { return };
            let program = trace.program();
            let x = Explainer::new(&trace);
            let reads = x.reads(cell);
            // What is only moved (a lookup, a reshape) has the moved number itself on the screen.
            let moved = program.node(cell.node).op.moves_only();
            for size in [(80, 24), (200, 60)] {
                let (buf, shown) = frame(app, size);
                for read in &reads {
                    let node = program.node(read.node);
                    let zero_shift = matches!(node.op, Op::Unary(_)) && x.value(*read) == 0.0;
                    let constant = node.inline || matches!(node.op, Op::Leaf(_)) && node.shape.len() == 1;
                    if moved || zero_shift || constant || step::State::is_words(&app.nav) {
                        continue;
                    }
                    let there = shown.tables.iter().any(|t| t.run == run && t.node == read.node);
                    assert!(there, "{name} step {label} {size:?}: {}\n{}", node.path, snapshot::text(&buf));
                }
            }
        });
    }
}

#[test]
fn every_legend_is_an_exact_scan() {
    for name in SCENARIOS {
        let mut app = app(name);
        steps(&mut app, |app, label| {
            let (buf, shown) = frame(app, (200, 60));
            for table in &shown.tables {
                let trace = app.nav.trace(table.run).expect("a run");
                let value = trace.get(table.node).expect("a value");
                // A strip of one line has no legend.
                if value.dtype() != DType::Float || table.area.height < 6 {
                    continue;
                }
                let scores = mask_scores(trace.program(), table.node).and_then(|id| trace.get(id));
                let (mut min, mut max, mut masked, mut nan) = (f64::INFINITY, f64::NEG_INFINITY, 0, 0);
                for i in 0..value.shape().len() {
                    let v = value.get(i);
                    if scores.as_ref().is_some_and(|s| s.get(i) < MASKED_BELOW) {
                        masked += 1;
                    } else if v.is_nan() {
                        nan += 1;
                    } else if v.is_finite() {
                        (min, max) = (min.min(v), max.max(v));
                    }
                }
                let line = |y: u16| -> String {
                    (table.area.left()..table.area.right()).map(|x| buf[(x, y)].symbol()).collect()
                };
                let text: String = (table.area.top()..table.area.bottom()).map(line).collect::<Vec<_>>().join("\n");
                let digits = app.ui.settings.digits;
                let what = format!("{name} step {label} {}", trace.program().node(table.node).path);
                assert!(text.contains(&digits.format_short(min)), "{what}: {min}\n{text}");
                assert!(min >= max || text.contains(&digits.format_short(max)), "{what}: {max}\n{text}");
                assert!(
                    masked == 0 || table.area.width < 40 || text.contains(&format!("{masked} masked")),
                    "{what}\n{text}"
                );
                assert!(nan == 0 || text.contains(&format!("{nan} NaN")), "{what}\n{text}");
            }
        });
    }
}

#[test]
fn equality_leaves_no_operand_out() {
    for name in SCENARIOS {
        let mut app = app(name);
        steps(&mut app, |app, label| {
            for size in [(60, 20), (120, 36), (200, 60)] {
                let (_, shown) = frame(app, size);
                for claim in &shown.claims {
                    let trace = app.nav.trace(claim.run).expect("a run");
                    let program = trace.program();
                    // Everything that the result is computed from, looking through inline nodes, is in the claim.
                    let mut open = program.node(claim.result).inputs.to_vec();
                    while let Some(id) = open.pop() {
                        if claim.tables.contains(&id) {
                            continue;
                        }
                        let node = program.node(id);
                        assert!(node.inline, "{name} step {label} {size:?}: {} is left out", node.path);
                        open.extend(node.inputs.iter());
                    }
                }
            }
        });
    }
}

/// The plane of a table of the stage as numbers.
struct Numbers {
    rows: usize,
    cols: usize,
    value: AnyValue,
    plane: Plane,
}

impl Numbers {
    fn of(app: &App, tables: &[TableModel], run: usize, node: NodeId) -> Option<Self> {
        let plane = tables.iter().find(|t| (t.run, t.node) == (run, node))?.plane.clone();
        let value = app.nav.trace(run)?.get(node)?;
        Some(Self { rows: plane.rows, cols: plane.cols, value, plane })
    }

    /// A cell; an axis of length 1 is repeated.
    fn at(&self, row: usize, col: usize) -> f64 {
        let place = |i: usize, n: usize| if n == 1 { 0 } else { i };
        self.value.get(self.plane.flat(place(row, self.rows), place(col, self.cols)))
    }
}

/// A factor or a product of tables: what a cell of it is, and how many columns it has.
type Part<'a> = (Box<dyn Fn(usize, usize) -> f64 + 'a>, usize);

/// What a line of tables and signs says of a cell; products before sums, from left to right. Knows only what is on the
/// screen.
fn says(tables: &[Numbers], signs: &[&str], row: usize, col: usize) -> f64 {
    let table = |i: usize| -> Part<'_> {
        let t = &tables[i];
        (Box::new(move |r, c| t.at(r, c)), t.cols)
    };
    let mut sum = 0.0;
    let mut sign = 1.0;
    let mut part = table(0);
    for (i, op) in signs.iter().enumerate() {
        let next = &tables[i + 1];
        part = match *op {
            "·" => {
                let (left, inner) = part;
                let inner = inner.max(next.rows);
                (Box::new(move |r, c| (0..inner).map(|k| left(r, k) * next.at(k, c)).sum()), next.cols)
            }
            "⊙" => {
                let (left, cols) = part;
                (Box::new(move |r, c| left(r, c) * next.at(r, c)), cols.max(next.cols))
            }
            "/" => {
                let (left, cols) = part;
                (Box::new(move |r, c| left(r, c) / next.at(r, c)), cols.max(next.cols))
            }
            "+" | "-" => {
                sum += sign * part.0(row, col);
                sign = if *op == "+" { 1.0 } else { -1.0 };
                table(i + 1)
            }
            other => panic!("no sign: {other}"),
        };
    }
    sum + sign * part.0(row, col)
}

/// Over all steps of all embedded scenarios, on screens of three sizes: the numbers in the tables before an `=`, joined
/// by the signs between them, are those in the table behind it. Each step is at one of the sizes, with the cursor in the
/// first or in the last plane.
#[test]
fn equality_joins_only_tables_that_are_equal() {
    let sizes = [(80, 24), (120, 36), (200, 60)];
    let mut claims = 0;
    for (name, _) in scenario::EMBEDDED {
        let mut app = app(name);
        let steps = app.nav.steps.list().len();
        for at in 0..steps {
            let label = app.nav.steps.list()[at].label();
            command(&mut app, &format!("step {label}"));
            for part in ["batch", "head"].into_iter().filter(|_| at % 2 == 1) {
                command(&mut app, &format!("{part} -1"));
            }
            let size = sizes[(at + at / 6) % 3];
            let (_, shown) = frame(&app, size);
            let tables = step::StageModel::of(&app.nav).tables;
            for claim in &shown.claims {
                let what = || {
                    let path = |n: &NodeId| app.nav.session.runs[claim.run].program.node(*n).path.to_string();
                    let all: Vec<String> = claim.tables.iter().map(path).collect();
                    format!(
                        "{name} step {label} {size:?}: {all:?} {:?} {} = {}",
                        claim.signs,
                        claim.after,
                        path(&claim.result)
                    )
                };
                let of = |node: &NodeId| Numbers::of(&app, &tables, claim.run, *node).expect("a table of the stage");
                let (operands, result): (Vec<Numbers>, Numbers) =
                    (claim.tables.iter().map(of).collect(), of(&claim.result));
                let after = claim.after.split_once(' ').map(|(op, x)| (op, x.parse::<f64>().expect("a constant")));
                claims += 1;
                for (row, col) in [(0, 0), (result.rows - 1, result.cols - 1), (result.rows / 2, result.cols / 3)] {
                    let said = says(&operands, &claim.signs, row, col);
                    // The constant is written with four decimals.
                    let (said, rounded) = match after {
                        None => (said, 1e-9),
                        Some(("/", x)) => (said / x, 1e-4),
                        Some(("×", x)) => (said * x, 1e-4),
                        Some((_, x)) => (said + x, 1e-4),
                    };
                    let is = result.at(row, col);
                    let single = if matches!(result.value, AnyValue::F32(_)) { 1e-4 } else { 0.0 };
                    let size: f64 = is.abs().max(1.0);
                    let equal =
                        said == is || said.is_nan() && is.is_nan() || (said - is).abs() <= (rounded + single) * size;
                    assert!(equal, "{} [{row},{col}]: {said} is not {is}", what());
                }
            }
        }
    }
    assert!(claims > 25, "{claims} claims");
}

/// A softmax's shift is said not to be needed where all that is shown of it is 0, and only there.
#[test]
fn a_shift_is_said_not_to_be_needed_only_where_it_is_0() {
    let mut app = app("water_class");
    let shift = |app: &mut App| {
        command(app, "step 25");
        command(app, "in");
        for _ in 0..12 {
            let step = app.nav.step().expect("a sub-step");
            let view = &step.views[0];
            let program = &app.nav.session.runs[view.run].program;
            if *program.node(view.node).name.last() == Role::Shift {
                let value = app.nav.trace(view.run).unwrap().get(view.node).unwrap();
                let zero = view.cells.flats().all(|i| value.get(i) == 0.0);
                let (buf, _) = frame(app, (200, 60));
                return (zero, snapshot::text(&buf));
            }
            command(app, "next");
        }
        panic!("step 25 has no shift");
    };
    let (zero, text) = shift(&mut app);
    assert!(zero && text.contains("(0: not needed)"), "{text}");
    command(&mut app, "edit Q1[0,0] = 1e6");
    let (zero, text) = shift(&mut app);
    assert!(!zero && text.contains("shift by the row maximum") && !text.contains("not needed"), "{text}");
}

#[test]
fn a_nan_and_a_spike_show_in_every_picture() {
    let mut app = app("bert_block");
    command(&mut app, "edit encoder.0.self_attn.q.weight[100,101] = 50");
    command(&mut app, "step 7");
    let (buf, _) = frame(&app, (200, 60));
    let text = snapshot::text(&buf);
    assert!(text.contains("50"), "the legend has the spike:\n{text}");
    let theme = look(&app.ui.settings, COLOURS);
    let scale = tui_transformer::tui::scale::Scale::signed(-0.1, 50.0);
    let spike = scale.pixel(50.0, tui_transformer::tui::colour::CellKind::Value, &theme.theme, &theme.palette);
    let has = |c: Option<Color>| buf.content.iter().any(|cell| Some(cell.fg) == c || Some(cell.bg) == c);
    assert!(has(spike), "one pixel has the colour of the spike");
    command(&mut app, "undo");
    command(&mut app, "edit encoder.0.self_attn.q.weight[100,101] = nan");
    let (buf, _) = frame(&app, (200, 60));
    assert!(snapshot::text(&buf).contains("1 NaN"));
    let nan = theme.theme.nan.bg;
    let pixels = buf.content.iter().filter(|c| c.symbol() == "▀" && (Some(c.fg) == nan || Some(c.bg) == nan)).count();
    assert!(pixels > 0, "a pixel for the NaN");
}

/// NaN, infinities and a spike that are planted in an operand: the heads, probabilities and compare views count what an
/// exact scan of their tensor counts, and their ends are its ends.
#[test]
fn views_count_what_is_planted() {
    let mut app = app("water_class");
    command(&mut app, "edit Q1[0,0] = nan");
    command(&mut app, "edit V1[2,1] = 5000");
    command(&mut app, "edit K2[1,0] = inf");
    let digits = app.ui.settings.digits;
    for (step, view) in [(23, "heads"), (25, "heads"), (27, "heads"), (88, "probs"), (27, "compare"), (88, "compare")] {
        command(&mut app, &format!("step {step}"));
        command(&mut app, &format!("view {view}"));
        let (run, node) = match view {
            "heads" => heads::heads(&app.nav).unwrap(),
            "probs" => probs::Distribution::of(&app.nav).map(|d| (d.run, d.node)).unwrap(),
            _ => app.nav.view().map(|v| (v.run, v.node)).unwrap(),
        };
        let mut values: Vec<f64> = Vec::new();
        let mut take = |v: &tui_transformer::trace::AnyValue| values.extend((0..v.shape().len()).map(|i| v.get(i)));
        take(&app.nav.session.trace(run).unwrap().get(node).unwrap());
        if view == "compare" {
            // Both sides have one scale.
            match app.edits.before(&app.nav, run, node) {
                Before::Was(before) => take(&before),
                Before::Same | Before::None => {}
            }
        }
        let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        let (buf, _) = frame(&app, (200, 60));
        let text = snapshot::text(&buf);
        let what = format!("step {step} {view}\n{text}");
        for (n, mark) in [
            (values.iter().filter(|x| x.is_nan()).count(), "NaN"),
            (values.iter().filter(|x| **x == f64::INFINITY).count(), "+∞"),
        ] {
            assert!(n == 0 || text.contains(&format!("{n} {mark}")), "{n} {mark}: {what}");
        }
        if let Some(max) = finite.iter().copied().reduce(f64::max) {
            assert!(text.contains(&digits.format_short(max)), "{max}: {what}");
        }
    }
}

/// Share of cells that are a space on the default background, not reversed.
fn blank(buf: &Buffer, area: Rect) -> f64 {
    let cells = (area.top()..area.bottom()).flat_map(|y| (area.left()..area.right()).map(move |x| (x, y)));
    let (mut all, mut blank) = (0, 0);
    for at in cells {
        let cell = &buf[at];
        all += 1;
        let bare = cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.contains(Modifier::REVERSED);
        blank += u32::from(bare);
    }
    f64::from(blank) / f64::from(all.max(1))
}

#[test]
fn large_screens_are_used() {
    let (mut sum, mut n) = (0.0, 0);
    for name in SCENARIOS {
        let mut app = app(name);
        let list = app.nav.steps.list().len();
        for at in (0..list).step_by((list / 8).max(1)) {
            let label = app.nav.steps.list()[at].label();
            command(&mut app, &format!("step {label}"));
            for view in ["step", "heads", "probs"] {
                command(&mut app, &format!("view {view}"));
                let (buf, _) = frame(&app, (200, 60));
                sum += blank(&buf, buf.area);
                n += 1;
            }
        }
    }
    let mean = sum / f64::from(n);
    assert!(mean <= 0.60, "{:.1} % of a large screen are blank on average", mean * 100.0);
}

/// At 200×60 at most half of the view's own pane is blank, and 60 % of the whole screen, on average over steps all through
/// each embedded scenario; no single one is nearly empty.
#[test]
fn large_panes_are_used() {
    let mut wrong = Vec::new();
    for (name, _) in scenario::EMBEDDED {
        let mut app = app(name);
        let list = app.nav.steps.list().len();
        for view in ["step", "heads", "probs", "compare"] {
            let (mut sum, mut whole, mut n) = (0.0, 0.0, 0);
            for at in (0..list).step_by((list / 6).max(1)) {
                let label = app.nav.steps.list()[at].label();
                command(&mut app, &format!("step {label}"));
                // A run has these or not; ids have no differences.
                let float = |v: &tui_transformer::walkthrough::View| {
                    app.nav.session.runs[v.run].program.node(v.node).dtype == DType::Float && v.shape().len() > 1
                };
                let there = match view {
                    "heads" => heads::heads(&app.nav).is_some(),
                    "probs" => probs::Distribution::of(&app.nav).is_some(),
                    "compare" => app.nav.view().is_some_and(float),
                    _ => !step::State::is_words(&app.nav),
                };
                let ids = app.nav.view().is_some_and(|v| !float(v));
                if there {
                    command(&mut app, &format!("view {view}"));
                    let (buf, shown) = frame(&app, (200, 60));
                    let share = blank(&buf, shown.main);
                    (sum, whole, n) = (sum + share, whole + blank(&buf, buf.area), n + 1);
                    // Ids have no colours.
                    if share > 0.65 && !ids {
                        wrong.push(format!("{name} step {label} {view}: {:.0} %", share * 100.0));
                    }
                }
            }
            let (mean, screen) = (sum / f64::from(n.max(1)), whole / f64::from(n.max(1)));
            if mean > 0.5 || screen > 0.6 {
                wrong.push(format!("{name} {view}: {:.0} % ({:.0} %) on average", mean * 100.0, screen * 100.0));
            }
        }
    }
    assert!(wrong.is_empty(), "blank panes:\n{}", wrong.join("\n"));
}

#[test]
fn borders_are_whole_and_nothing_panics_at_any_size() {
    for name in SCENARIOS {
        let mut app = app(name);
        for &view in tui_transformer::app::view::View::ALL {
            command(&mut app, &format!("view {}", view.name()));
            for size in [(24, 6), (80, 24), (160, 50), (200, 60)] {
                let (buf, _) = frame(&app, size);
                let last = |y: u16| buf[(size.0 - 1, y)].symbol().to_owned();
                if size.1 > 6 {
                    for y in 2..size.1 - 2 {
                        assert_eq!(last(y), "│", "{name} {} {size:?} line {y}:\n{}", view.name(), snapshot::text(&buf));
                    }
                }
            }
        }
    }
}

/// A watch in the third pane has its number at each step as a column, and the range of them.
#[test]
fn a_watch_is_a_sparkline_along_the_steps() {
    let mut app = app("water_class");
    command(&mut app, "watch max(Q1)");
    command(&mut app, "step 30");
    let text = |app: &App| snapshot::text(&frame(app, (200, 60)).0);
    let trail = trail(&app.nav, &app.breaks.watches()[0]);
    assert_eq!(trail.steps.len(), app.nav.steps.list().len());
    // Not before the step that computes Q1; then the largest number that Q1 has at each step.
    let first = trail.values.iter().position(Option::is_some).expect("Q1 is computed");
    assert_eq!(app.nav.steps.list()[trail.steps[first]].label(), "17");
    let step = &app.nav.steps.list()[16];
    let view = step.views.iter().find(|v| v.symbol == "Q1").expect("Q1");
    let value = app.nav.trace(view.run).unwrap().get(view.node).unwrap();
    let largest = view.cells.flats().map(|i| value.get(i)).fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(trail.values[first], Some(largest));
    let shown = text(&app);
    let digits = app.ui.settings.digits;
    let all = || trail.values.iter().flatten().copied();
    let (min, max) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    assert!(shown.contains(&format!("{}..{}", digits.format_short(min), digits.format_short(max))), "{shown}");
    command(&mut app, "edit Q1[0,0] = 77");
    assert!(text(&app).contains("..77"), "an edit makes it anew:\n{}", text(&app));
}

/// Side by side: B − A is on the screen too, with the numbers of an exact scan at the ends of its legend.
#[test]
fn side_by_side_shows_the_difference_on_one_scale() {
    let mut app = app("water_class");
    for (sides, size) in
        [("training inference", (200, 60)), ("training inference", (120, 36)), ("head 0 head 1", (80, 24))]
    {
        command(&mut app, &format!("side-by-side {sides}"));
        let side = app.views.side.side(&app.nav).expect("a side").expect("both");
        let seen = side.pair(&app.nav.session).expect("a pair");
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for cell in seen.beside.pairs() {
            let apart = seen.values[1].get(cell.right) - seen.values[0].get(cell.left);
            (min, max) = (min.min(apart), max.max(apart));
        }
        let text = snapshot::text(&frame(&app, size).0);
        let digits = app.ui.settings.digits;
        let legend = text.lines().find(|l| l.contains("A, B")).unwrap_or_else(|| panic!("{text}"));
        let apart = legend.split("B − A").nth(1).expect("the legend of the difference");
        assert!(
            apart.contains(&digits.format_short(min)) && apart.contains(&digits.format_short(max)),
            "{min} {max}\n{text}"
        );
        assert!(text.matches("B − A").count() > 1, "{sides} {size:?}\n{text}");
    }
}

/// A picture of large planes in the compare view is read once for each size of the screen, and is what a scan finds.
#[test]
fn pictures_of_the_compare_view_are_kept() {
    let mut app = app("bert_block");
    command(&mut app, "step 7");
    command(&mut app, "view compare");
    let (first, _) = frame(&app, (200, 60));
    let pairs = compare::Pairs::of(&app.nav, &app.views.compare, &app.edits).expect("two values");
    let (again, _) = frame(&app, (200, 60));
    assert_eq!(first, again);
    let kept = |size| app.views.compare.picture(&app.nav, &pairs, 2, size).expect("nobody watches: it is there");
    assert!(Arc::ptr_eq(&kept((1, 1)), &kept((1, 1))));
    let plane = &pairs.plane;
    let cells = (0..plane.rows).flat_map(|r| (0..plane.cols).map(move |c| (r, c)));
    let apart = cells.map(|(r, c)| pairs.apart(plane.flat(r, c)).expect("both have it"));
    let (min, max) = apart.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    assert_eq!(kept((1, 1))[0].range(), Some((min, max)));
}
