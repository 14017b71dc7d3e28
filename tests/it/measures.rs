//! Statistics of large recorded tensors, kept next to them: the same numbers as read anew, whatever became of what was kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rstest::rstest;
use safetensors::{Dtype, serialize, tensor::TensorView};
use tempfile::TempDir;
use tui_transformer::app::measure::{Measures, Origin, Part};
use tui_transformer::program::NodeId;
use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, Options, RecordOptions, Session, open_recording, open_trace};
use tui_transformer::source::recording::Recording;
use tui_transformer::trace::stats::{Mask, Pyramid, Tally, Window, tally};

const SIDE: usize = 300;

const WINDOW: Window = Window { start: 0, rows: SIDE, cols: SIDE, row_stride: SIDE, col_stride: 1 };

/// A file with one tensor of 300 × 300 numbers, one of them NaN and one `spike`.
fn file(dir: &TempDir, spike: f32) -> PathBuf {
    let mut data: Vec<f32> = (0..SIDE * SIDE).map(|i| ((i * 7919) % 1000) as f32 / 1000.0).collect();
    data[12_345] = f32::NAN;
    data[54_321] = spike;
    let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![SIDE, SIDE], &bytes).expect("a tensor");
    let path = dir.path().join("r.safetensors");
    fs::write(&path, serialize([("t", view)], None).expect("serialises")).expect("written");
    path
}

/// The only node of a recording of one tensor.
fn first_node() -> NodeId {
    let dir = TempDir::new().expect("a folder");
    let session = recording(&file(&dir, 0.0));
    session.runs[0].program.nodes().next().expect("a node").0
}

fn recording(path: &Path) -> Arc<Session> {
    Arc::new(open_recording(Recording::open(path).expect("opens"), Options::default()).expect("a session"))
}

/// What the debugger finds out about a node, in the background as on a screen.
fn measured(session: &Arc<Session>, node: NodeId, window: Window) -> (Tally, Arc<Pyramid>) {
    let measures = Measures::default();
    let origin = Origin { session, run: 0, node, round: None, live: true };
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let (whole, pyramid) = (measures.tally(origin, Part::Whole), measures.pyramid(origin, window));
        if let (Some(whole), Some(pyramid)) = (whole, pyramid) {
            return (whole, pyramid);
        }
        assert!(Instant::now() < until, "it is measured at some time");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// As [`measured`], held against every cell read anew.
fn right(session: &Arc<Session>, node: NodeId, window: Window) -> Tally {
    let (whole, pyramid) = measured(session, node, window);
    let value = session.trace(0).expect("a trace").value(node);
    assert_eq!(whole, tally(&value, &Mask::none()));
    let anew = Pyramid::build(&value, &Mask::none(), window);
    assert_eq!(pyramid.tiles(), anew.tiles());
    let part = |p: &Pyramid| p.rect(&value, &Mask::none(), 3..window.rows, 5..window.cols - 7);
    assert_eq!(part(&pyramid), part(&anew));
    whole
}

/// The entries of a folder: name and content.
fn entries(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(list) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = list.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|p| (p.clone(), fs::read(&p).expect("readable"))).collect()
}

/// Writes an entry again with another content, its checksum right; the time of the file is long ago.
fn forge(path: &Path, mut bytes: Vec<u8>, change: impl FnOnce(&mut [u8])) {
    let end = bytes.len() - 4;
    change(&mut bytes[..end]);
    let crc = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    fs::write(path, bytes).expect("written");
}

/// Sets the time of every entry to one long ago; those that are written again have another.
fn age(folder: &Path) {
    for (path, _) in entries(folder) {
        let file = fs::File::options().write(true).open(path).expect("opens");
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1000)).expect("set");
    }
}

/// How many entries were written since [`age`].
fn young(folder: &Path) -> usize {
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1000);
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).expect("a time");
    entries(folder).iter().filter(|(path, _)| time(path) != old).count()
}

#[test]
fn what_was_measured_is_kept_next_to_a_recording() {
    let dir = TempDir::new().expect("a folder");
    let path = file(&dir, 77.0);
    let folder = dir.path().join("r.safetensors.measures");
    let node = first_node();
    let first = right(&recording(&path), node, WINDOW);
    assert_eq!((first.nan, first.max), (1, 77.0));
    let kept = entries(&folder);
    assert_eq!(kept.len(), 2, "the tally and the pyramid");
    // Opened again they are used as they are: nothing is written.
    age(&folder);
    assert_eq!(right(&recording(&path), node, WINDOW), first);
    assert_eq!((young(&folder), entries(&folder)), (0, kept));
    // Another file of the same name and size is another.
    file(&dir, -99.0);
    let other = right(&recording(&path), node, WINDOW);
    assert_eq!((other.min, other.max), (-99.0, 0.999_f32.into()));
    assert_eq!((young(&folder), entries(&folder).len()), (2, 2), "in the place of the first");
}

#[test]
fn a_frame_reads_no_more_at_once_of_many_small_planes_than_of_a_large_one() {
    let dir = TempDir::new().expect("a folder");
    let session = recording(&file(&dir, 77.0));
    let node = first_node();
    // Twelve planes, as the heads of a layer: each is small enough to be read at once, all of them are not.
    let planes = (0..12).map(|i| Window { start: i * SIDE * 15, rows: 100, ..WINDOW });
    let planes: Vec<Part> = planes.map(Part::Plane).collect();
    let measures = Measures::default();
    let origin = |live| Origin { session: &session, run: 0, node, round: None, live };
    let frame = || -> Vec<Option<Tally>> {
        measures.begin_frame();
        planes.iter().map(|part| measures.tally(origin(true), *part)).collect()
    };
    let first = frame();
    assert!(first[0].is_some(), "the first plane is read for the frame that shows it");
    assert!(first.iter().any(Option::is_none), "the frame does not wait for all planes");
    assert!(measures.is_waiting(), "and is drawn again");
    let until = Instant::now() + Duration::from_mins(1);
    let last = loop {
        let seen = frame();
        if seen.iter().all(Option::is_some) {
            break seen;
        }
        assert!(Instant::now() < until, "all are read at some time");
        std::thread::sleep(Duration::from_millis(2));
    };
    // Where nobody watches, all are there at once, and are the same.
    let alone = Measures::default();
    let at_once: Vec<Option<Tally>> = planes.iter().map(|part| alone.tally(origin(false), *part)).collect();
    assert_eq!(at_once, last);
}

#[rstest]
#[case::cut("cut")]
#[case::a_byte("byte")]
#[case::empty("empty")]
#[case::larger_maximum("maximum")]
#[case::smaller_minimum("minimum")]
#[case::no_nan("nan")]
#[case::all_blocks("all")]
fn a_kept_measure_that_lies_is_not_believed(#[case] how: &str) {
    let dir = TempDir::new().expect("a folder");
    let path = file(&dir, 77.0);
    let folder = dir.path().join("r.safetensors.measures");
    let node = first_node();
    let first = right(&recording(&path), node, WINDOW);
    let kept = entries(&folder);
    for (path, bytes) in &kept {
        let n = bytes.len();
        match how {
            "cut" => fs::write(path, &bytes[..n / 2]).expect("written"),
            "empty" => fs::write(path, b"").expect("written"),
            "byte" => {
                let mut bytes = bytes.clone();
                bytes[n / 2] ^= 1;
                fs::write(path, bytes).expect("written");
            }
            // The last tally: six counts, the range, two sums.
            "maximum" => forge(path, bytes.clone(), |b| b[n - 28..n - 20].copy_from_slice(&1e30_f64.to_le_bytes())),
            "minimum" => forge(path, bytes.clone(), |b| b[n - 36..n - 28].copy_from_slice(&(-1e30_f64).to_le_bytes())),
            "nan" => forge(path, bytes.clone(), |b| {
                // One more in the last block, one finite number less.
                let at = n - 84;
                let finite = u64::from_le_bytes(b[at..at + 8].try_into().expect("8 bytes"));
                b[at..at + 8].copy_from_slice(&0_u64.to_le_bytes());
                b[at + 8..at + 16].copy_from_slice(&finite.to_le_bytes());
            }),
            _ => forge(path, bytes.clone(), |b| b[n - 84..].fill(0xff)),
        }
    }
    age(&folder);
    assert_eq!(right(&recording(&path), node, WINDOW), first, "{how}");
    assert_eq!((young(&folder), entries(&folder)), (2, kept), "{how}: made again");
}

#[cfg(unix)]
#[rstest]
#[case::a_file_in_its_place(false)]
#[case::a_link_to_elsewhere(true)]
fn nothing_is_written_elsewhere(#[case] link: bool) {
    let dir = TempDir::new().expect("a folder");
    let path = file(&dir, 77.0);
    let elsewhere = TempDir::new().expect("a folder");
    let folder = dir.path().join("r.safetensors.measures");
    if link {
        std::os::unix::fs::symlink(elsewhere.path(), &folder).expect("a link");
    } else {
        fs::write(&folder, b"mine").expect("written");
    }
    right(&recording(&path), first_node(), WINDOW);
    assert!(entries(elsewhere.path()).is_empty());
    assert!(link || fs::read(&folder).expect("readable") == b"mine");
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 2);
}

/// A run with a tensor of 10 × 8192 numbers.
fn wide() -> Session {
    let text = r#"(name: "wide", vocabulary: Size(11), model: (d_model: 8, heads: 2, d_ff: 8192,
        encoder: (layers: [()])), weights: (seed: 7, init: [(with: Normal(std: 0.3))]),
        source: (ids: [[3, 7, 2, 9, 4, 1, 1, 2, 3, 5]]), runs: [Encode()])"#;
    let scenario = syntax::read("wide.ron", text).expect("a scenario");
    session::open(scenario, None, Options::default()).expect("opens")
}

#[test]
fn what_was_measured_is_kept_in_a_trace_folder() {
    let dir = TempDir::new().expect("a folder");
    let folder = dir.path().join("trace");
    let options = RecordOptions { overwrite: true, ..RecordOptions::default() };
    wide().record(&folder, &options).expect("recorded");
    let open = || {
        let (session, damaged) = open_trace(&folder, Options::default()).expect("opens");
        assert!(damaged.is_empty());
        Arc::new(session)
    };
    let window = Window { start: 0, rows: 10, cols: 8192, row_stride: 8192, col_stride: 1 };
    let session = open();
    let program = &session.runs[0].program;
    let (act, _) = program.nodes().find(|(_, n)| n.path.ends_with("ffn.act")).expect("a node");
    let (weight, _) = program.nodes().find(|(_, n)| n.path.ends_with("ffn.w1.weight")).expect("a node");
    let first = right(&session, act, window);
    let measures = folder.join("measures");
    assert_eq!(entries(&measures).len(), 2);
    age(&measures);
    assert_eq!(right(&open(), act, window), first);
    assert_eq!(young(&measures), 0);
    // What was edited is not what was kept.
    let trace = session.trace(0).expect("a trace");
    assert!(trace.home(act).is_some());
    let cell = tui_transformer::trace::derive::Cell { node: act, flat: 5 };
    let edited = trace.what_if(&[tui_transformer::trace::Edit { cell, value: 1e6 }]);
    assert_eq!(edited.home(act), None);
    // The folder is a trace as before, and may be replaced by another.
    wide().record(&folder, &options).expect("recorded again");
    assert!(!measures.exists() && trace.home(weight).is_none_or(|h| h.measures == measures));
}
