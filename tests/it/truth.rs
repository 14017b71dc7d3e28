//! The pictures are true: NaN, infinities and spikes are planted in random cells, and the legend of every view that has
//! one is what a scan of every cell finds, done here with nothing but the numbers.
#![cfg(feature = "tui")]

use std::path::Path;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use safetensors::{Dtype, serialize, tensor::TensorView};
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::measure::{Part, mask_scores};
use tui_transformer::app::messages::Level;
use tui_transformer::app::navigator::Plane;
use tui_transformer::app::settings::Settings;
use tui_transformer::app::views::{heads, layers, lens, map, positions, probs, token};
use tui_transformer::debug::whatif::Before;
use tui_transformer::explain::line::MASKED_BELOW;
use tui_transformer::program::{NodeId, Op};
use tui_transformer::scenario;
use tui_transformer::scenario::syntax::read;
use tui_transformer::session;
use tui_transformer::source::recording::Recording;
use tui_transformer::tensor::DType;
use tui_transformer::text::Lang;
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::shown::Shown;
use tui_transformer::tui::snapshot;
use tui_transformer::tui::theme::{Depth, Environment};

const SIZE: Rect = Rect::new(0, 0, 200, 60);

/// What is in some cells.
#[derive(Clone, Copy, Debug)]
struct Scan {
    min: f64,
    max: f64,
    nan: usize,
    infinite: (usize, usize),
    masked: usize,
}

fn scan(cells: impl Iterator<Item = (f64, bool)>) -> Scan {
    let mut found = Scan { min: f64::INFINITY, max: f64::NEG_INFINITY, nan: 0, infinite: (0, 0), masked: 0 };
    for (x, masked) in cells {
        match x {
            _ if masked => found.masked += 1,
            x if x.is_nan() => found.nan += 1,
            f64::INFINITY => found.infinite.0 += 1,
            f64::NEG_INFINITY => found.infinite.1 += 1,
            x => (found.min, found.max) = (found.min.min(x), found.max.max(x)),
        }
    }
    found
}

/// Every cell of a tensor; hidden scores and what a softmax makes of them are masked.
fn tensor(app: &App, run: usize, node: NodeId) -> Scan {
    let trace = app.nav.trace(run).expect("a run");
    let value = trace.get(node).expect("a value");
    let scores = mask_scores(trace.program(), node).and_then(|id| trace.get(id));
    let hidden = |i: usize| scores.as_ref().is_some_and(|s| s.get(i) < MASKED_BELOW);
    scan((0..value.shape().len()).map(|i| (value.get(i), hidden(i))))
}

/// A frame, what it showed, and its text.
struct Frame {
    buf: Buffer,
    shown: Shown,
    text: String,
    what: String,
}

impl Frame {
    fn of(app: &App, what: &str) -> Self {
        let mut buf = Buffer::empty(SIZE);
        let environment = Environment { no_color: false, detected: Depth::True };
        let shown = draw(app, SIZE, &mut buf, &look(&app.ui.settings, environment));
        let text = snapshot::text(&buf);
        Self { buf, shown, text, what: what.to_owned() }
    }

    /// The text of a part of the screen.
    fn part(&self, area: Rect) -> String {
        let line = |y: u16| (area.left()..area.right()).map(|x| self.buf[(x, y)].symbol()).collect::<String>();
        (area.top()..area.bottom()).map(line).collect::<Vec<_>>().join("\n")
    }

    /// One of these lines is the legend of exactly these cells.
    fn has_legend(&self, app: &App, lines: &str, of: &str, scan: Scan) {
        let digits = app.ui.settings.digits;
        let mut pieces = Vec::new();
        if scan.min <= scan.max {
            pieces.push(digits.format_short(scan.min));
        }
        if scan.min < scan.max {
            pieces.push(digits.format_short(scan.max));
        }
        let counts = [(scan.nan, "NaN"), (scan.infinite.0, "+∞"), (scan.infinite.1, "-∞"), (scan.masked, "masked")];
        pieces.extend(
            counts
                .iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, what)| format!("{n} {}", what.chars().take(1).collect::<String>())),
        );
        // Long words may be cut. A count is a number, one blank and what it counts; cells of a table are further apart.
        let counts_none = |line: &str, what: &str| {
            let before = |at: usize| line[..at].ends_with(|c: char| c.is_ascii_digit());
            !line.match_indices(&format!(" {what}")).any(|(at, _)| before(at))
        };
        let none = |line: &str| counts.iter().all(|(n, what)| *n > 0 || counts_none(line, what));
        let found = lines.lines().any(|line| pieces.iter().all(|p| line.contains(p.as_str())) && none(line));
        assert!(found, "{} {of}: no legend with {pieces:?} in\n{lines}\n\n{}", self.what, self.text);
    }

    /// How many cells have this colour.
    fn coloured(&self, colour: Option<Color>) -> usize {
        self.buf.content.iter().filter(|c| Some(c.fg) == colour || Some(c.bg) == colour).count()
    }
}

fn command(app: &mut App, line: &str) {
    let outcome = crate::common::front::run(app, &Action::parse(line).expect("a command"));
    let wrong = outcome.messages.iter().find(|m| m.level == Level::Error);
    assert!(wrong.is_none(), "{line}: {wrong:?}");
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// A decoder whose scores have more cells than are read at once, half of them hidden.
const CAUSAL: &str = "(name: \"causal\", precision: f32, vocabulary: Size(40),
    target: (ids: [[IDS]]),
    model: (d_model: 8, heads: 2, d_ff: 16, positions: Sinusoidal(), decoder: (layers: [(repeat: 2)])),
    weights: (init: [(with: Normal(std: 0.3))], seed: 3), runs: [Training(name: \"training\")])";

fn open(name: &str) -> App {
    let scenario = if name == "causal" {
        let ids: Vec<String> = (0..190).map(|i| (i * 7 % 40).to_string()).collect();
        read(name, &CAUSAL.replace("IDS", &ids.join(","))).unwrap_or_else(|e| panic!("{e:?}"))
    } else {
        scenario::load(Path::new(name)).expect("embedded").scenario
    };
    let session = session::open(scenario, None, session::Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
    App::new(Arc::new(session), None, Settings::default())
}

/// Plants in random cells of what the step makes; gives how many.
fn plant(app: &mut App, random: &mut Random) -> usize {
    let Some((run, node)) = app.nav.view().map(|v| (v.run, v.node)) else { return 0 };
    let n = app.nav.session.runs[run].program.node(node);
    if n.dtype != DType::Float || matches!(n.op, Op::Leaf(_)) {
        return 0;
    }
    let (path, shape) = (n.path.to_string(), n.shape);
    let run = app.nav.session.runs[run].name.clone();
    let values = ["nan", "inf", "-inf", "40000", "-0.00001", "-70000.5"];
    for k in 0..3 {
        let value = values[(random.below(2) + 2 * k) % values.len()];
        let at = shape.unflat(random.below(shape.len()));
        let index: Vec<String> = at[..shape.rank()].iter().map(usize::to_string).collect();
        command(app, &format!("edit {run}:{path}[{}] = {value}", index.join(",")));
    }
    3
}

/// Steps of several models, planted one after the other: the legends of all views that have one.
#[test]
fn every_views_legend_is_an_exact_scan_of_planted_tensors() {
    let mut random = Random(11);
    let mut checked = std::collections::BTreeMap::new();
    for (name, rounds) in
        [("water_class", 10), ("gpt_block", 6), ("modern_decoder", 6), ("encoder_decoder", 6), ("causal", 3)]
    {
        let mut app = open(name);
        let steps = app.nav.steps.list().len();
        for _ in 0..rounds {
            let label = app.nav.steps.list()[random.below(steps)].label();
            command(&mut app, &format!("step {label}"));
            let planted = plant(&mut app, &mut random);
            for view in ["step", "heads", "probs", "layers", "compare", "token", "positions", "map", "lens", "side"] {
                command(&mut app, &format!("view {view}"));
                let frame = Frame::of(&app, &format!("{name} step {label} {view}"));
                let n = legends(&app, view, &frame);
                *checked.entry(view).or_insert(0) += n;
            }
            for _ in 0..planted {
                command(&mut app, "undo");
            }
            command(&mut app, "view step");
        }
    }
    for (view, n) in &checked {
        assert!(*n >= 8, "{view}: {n} legends\n{checked:?}");
    }
}

/// Checks the legends of a view; gives how many.
fn legends(app: &App, view: &str, frame: &Frame) -> usize {
    let nav = &app.nav;
    let main = frame.part(frame.shown.main);
    match view {
        "step" => {
            let float = |t: &&tui_transformer::tui::shown::ShownTable| {
                // A strip of one line has no legend.
                nav.session.runs[t.run].program.node(t.node).dtype == DType::Float && t.area.height >= 6
            };
            let wide = |t: &tui_transformer::tui::shown::ShownTable| t.area.width >= 50;
            let tables: Vec<_> = frame.shown.tables.iter().filter(float).filter(|t| wide(t)).collect();
            for table in &tables {
                frame.has_legend(app, &frame.part(table.area), "table", tensor(app, table.run, table.node));
            }
            tables.len()
        }
        "heads" => heads::heads(nav).map_or(0, |(run, node)| {
            frame.has_legend(app, &main, "heads", tensor(app, run, node));
            1
        }),
        "probs" => match probs::Distribution::of(nav) {
            Some(d) if main.contains("All positions") => {
                frame.has_legend(app, &main, "probabilities", tensor(app, d.run, d.node));
                1
            }
            _ => 0,
        },
        "layers" => {
            let streams = layers::Stream::all(nav);
            let norms = |s: &layers::Stream| -> Vec<f64> {
                let trace = nav.trace(s.run).expect("a run");
                let of = |node: NodeId| {
                    let value = trace.get(node).expect("a value");
                    let width = *value.shape().dims().last().expect("an axis");
                    let row = move |r: usize| {
                        (0..width).map(|c| value.get(r * width + c).powi(2)).fold(0.0, |a, b| a + b).sqrt()
                    };
                    s.rows().map(row).collect::<Vec<f64>>()
                };
                s.stages.iter().flat_map(|stage| of(stage.node)).collect()
            };
            let all: Vec<f64> = streams.iter().flat_map(norms).collect();
            if !all.is_empty() {
                frame.has_legend(app, &main, "norms", scan(all.iter().map(|x| (*x, false))));
            }
            usize::from(!all.is_empty())
        }
        "compare" => {
            let Some(v) = nav.view().filter(|v| app.edits.count(nav) > 0 && v.shape().len() > 1) else { return 0 };
            let now = nav.trace(v.run).and_then(|t| t.get(v.node)).expect("a value");
            let before = match app.edits.before(nav, v.run, v.node) {
                Before::Was(before) => before,
                Before::Same => now.clone(),
                Before::None => return 0,
            };
            let masked = mask_scores(&nav.session.runs[v.run].program, v.node) == Some(v.node);
            let hidden = |x: f64| masked && x < MASKED_BELOW;
            let n = 0..now.shape().len();
            let both = n.clone().flat_map(|i| [before.get(i), now.get(i)]).map(|x| (x, hidden(x)));
            // Next to each other, or below each other.
            let third = |i: u16| {
                let (all, w) = (frame.shown.main, frame.shown.main.width / 3);
                format!("{}\n{main}", frame.part(Rect { x: all.x + i * w, width: w, ..all }))
            };
            frame.has_legend(app, &third(0), "A and B", scan(both));
            let apart = n.map(|i| {
                let (a, b) = (before.get(i), now.get(i));
                let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                (if same { 0.0 } else { b - a }, hidden(a) && hidden(b))
            });
            frame.has_legend(app, &third(2), "B − A", scan(apart));
            2
        }
        "token" => {
            let height = usize::from(frame.shown.main.height - 1);
            let Some(rows) = token::Rows::around(nav, height) else { return 0 };
            let mut n = 0;
            for row in rows.rows.iter().skip(rows.at.saturating_sub(3)).take(6) {
                let label = nav.steps.list()[row.step].label();
                let head = row.head.map_or_else(String::new, |h| format!(" head {}", h + 1));
                let name = format!("{label:>4} {}{head}", row.symbol);
                // Longer names are cut.
                if name.chars().count() > 25 {
                    continue;
                }
                let of_row = |l: &&str| l.trim_end().starts_with(&format!("{name} "));
                let line: Vec<&str> = main.lines().filter(of_row).collect();
                let node = nav.session.runs[row.run].program.node(row.node);
                if node.dtype == DType::Float && !line.is_empty() {
                    frame.has_legend(app, &line.join("\n"), &node.path, tensor(app, row.run, row.node));
                    n += 1;
                }
            }
            n
        }
        "positions" => positions::Encoding::of(nav).map_or(0, |e| {
            let half = Rect { width: frame.shown.main.width / 2, ..frame.shown.main };
            frame.has_legend(app, &frame.part(half), "positions", tensor(app, e.table.run, e.table.node));
            let similar = e.similar(nav).expect("nobody watches: it is there");
            let other = Rect { x: half.right(), ..half };
            let products = similar.products.iter().map(|x| (*x, false));
            frame.has_legend(app, &frame.part(other), "p·p′", scan(products));
            2
        }),
        "map" => {
            let all = map::Map::of(nav, &app.edits, &app.breaks, Lang::En);
            let blocks = all.groups.iter().flat_map(|g| &g.blocks).filter_map(|b| b.result);
            let reach = |cells: &mut dyn Iterator<Item = f64>| {
                cells.filter(|x| x.is_finite() && x.abs() < -MASKED_BELOW).fold(0.0_f64, |a, x| a.max(x.abs()))
            };
            if app.edits.count(nav) == 0 {
                return 0;
            }
            let change = |(run, node): (usize, NodeId)| {
                let now = nav.trace(run)?.get(node)?;
                let before = match app.edits.before(nav, run, node) {
                    Before::Was(before) => before,
                    Before::Same | Before::None => return None,
                };
                let n = 0..now.shape().len();
                let all = reach(&mut n.clone().flat_map(|i| [before.get(i), now.get(i)]));
                let apart = reach(&mut n.map(|i| now.get(i) - before.get(i)));
                (all > 0.0).then(|| apart / all)
            };
            let most = blocks.filter_map(change).fold(0.0, f64::max);
            frame.has_legend(app, &main, "change", scan([(0.0, false), (most, false)].into_iter()));
            1
        }
        "lens" => {
            let Some(lens) = lens::Lens::of(nav) else { return 0 };
            let Some(table) = lens.table(nav) else { return 0 };
            let rows = lens.row(0)..lens.row(lens.tokens);
            let first = table.at.iter().flat_map(|stage| &stage[rows.clone()]);
            let first = first.filter_map(|g| g.top.first()).map(|g| (g.p, false));
            frame.has_legend(app, &main, "first words", scan(first));
            1
        }
        "side" => {
            let Some(Ok(side)) = app.views.side.side(nav) else { return 0 };
            let Some(seen) = side.pair(&nav.session) else { return 0 };
            let masked = mask_scores(seen.traces[0].program(), seen.pair.left) == Some(seen.pair.left);
            let hidden = |x: f64| masked && x < MASKED_BELOW;
            let of =
                |v: &tui_transformer::trace::AnyValue| -> Vec<f64> { (0..v.shape().len()).map(|i| v.get(i)).collect() };
            let both = seen.values.iter().flat_map(of).map(|x| (x, hidden(x)));
            // Both legends share a line.
            let part = |i: usize| {
                let of_line = |l: &str| l.split("B − A").nth(i).unwrap_or_default().to_owned();
                main.lines().filter(|l| l.contains("A, B")).map(of_line).collect::<Vec<_>>().join("\n")
            };
            frame.has_legend(app, &part(0), "A, B", scan(both));
            let apart = seen.beside.pairs().map(|cell| {
                let (a, b) = (seen.values[0].get(cell.left), seen.values[1].get(cell.right));
                let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                (if same { 0.0 } else { b - a }, hidden(a) && hidden(b))
            });
            frame.has_legend(app, &part(1), "B − A", scan(apart));
            2
        }
        _ => 0,
    }
}

/// The histogram in the third pane counts every finite cell of the plane, and its ends are the plane's.
#[test]
fn the_histogram_counts_every_cell() {
    let mut app = open("causal");
    let mut random = Random(5);
    for label in ["4", "9", "11"] {
        command(&mut app, &format!("step {label}"));
        plant(&mut app, &mut random);
        let view = app.nav.view().expect("a tensor").clone();
        let plane = Plane::of_view(&view, app.nav.index());
        let origin = app.nav.origin(view.run, view.node);
        let counts = app.nav.numbers.measures.spread(origin, plane.window()).expect("nobody watches: it is there");
        let trace = app.nav.trace(view.run).expect("a run");
        let value = trace.get(view.node).expect("a value");
        let scores = mask_scores(trace.program(), view.node).and_then(|id| trace.get(id));
        let flats = (0..plane.rows).flat_map(|r| (0..plane.cols).map(move |c| (r, c)));
        let cells = flats.map(|(r, c)| plane.flat(r, c));
        let hidden = |i: usize| scores.as_ref().is_some_and(|s| s.get(i) < MASKED_BELOW);
        let found = scan(cells.map(|i| (value.get(i), hidden(i))));
        let finite = plane.rows * plane.cols - found.nan - found.infinite.0 - found.infinite.1 - found.masked;
        assert_eq!(counts.iter().sum::<u64>(), finite as u64, "step {label}");
        let tally = app.nav.tally(view.run, view.node, Part::Plane(plane.window())).expect("it is there");
        assert_eq!(tally.range(), Some((found.min, found.max)), "step {label}");
    }
}

/// Ten million cells, recorded elsewhere: a NaN, two infinities and a spike among them are counted, are in the legend, and
/// have a pixel of their own colour in the picture of their head, and nowhere else.
#[test]
fn one_cell_in_ten_million_shows() {
    const HEADS: usize = 10;
    const N: usize = 1000;
    let mut random = Random(7);
    let mut data: Vec<f32> = (0..HEADS * N * N).map(|i| (i % 1009) as f32 * 1e-3 - 0.5).collect();
    // Each in a head of its own.
    let place = |head: usize, random: &mut Random| head * N * N + random.below(N * N);
    let (nan, inf, spike) = (place(3, &mut random), place(6, &mut random), place(8, &mut random));
    data[nan] = f32::NAN;
    data[inf] = f32::INFINITY;
    data[inf ^ 1] = f32::NEG_INFINITY;
    data[spike] = 77.25;
    let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    let dir = tempfile::TempDir::new().expect("a folder");
    let path = dir.path().join("large.safetensors");
    let tensor = TensorView::new(Dtype::F32, vec![1, HEADS, N, N], &bytes).expect("a tensor");
    let name = "encoder.layer.0.attention.self.weights";
    std::fs::write(&path, serialize([(name, tensor)], None).expect("serialises")).expect("written");
    let recording = Recording::open(&path).expect("opens");
    let session = session::open_recording(recording, session::Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let mut app = App::new(Arc::new(session), None, Settings::default());
    let (mut min, mut max) = (f32::INFINITY, f32::NEG_INFINITY);
    for x in data.iter().filter(|x| x.is_finite()) {
        (min, max) = (min.min(*x), max.max(*x));
    }
    let all = Scan { min: min.into(), max: max.into(), nan: 1, infinite: (1, 1), masked: 0 };
    let theme = look(&app.ui.settings, Environment { no_color: false, detected: Depth::True }).theme;
    for (view, head) in [("step", 4), ("step", 1), ("heads", 1)] {
        command(&mut app, &format!("view {view}"));
        command(&mut app, &format!("head {head}"));
        let frame = Frame::of(&app, &format!("ten million, {view}, head {head}"));
        frame.has_legend(&app, &frame.part(frame.shown.main), "all", all);
        // The NaN is in the fourth head: all heads are in the heads view.
        let pixels = frame.coloured(theme.nan.bg);
        let there = view == "heads" || head == 4;
        assert_eq!(pixels > 0, there, "{}: {pixels} pixels\n{}", frame.what, frame.text);
    }
}
