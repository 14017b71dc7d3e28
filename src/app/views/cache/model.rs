//! What each decoding call finds in the KV cache and adds to it, as a table.

use crate::app::navigator::Navigator;
use crate::app::views::stairs;
use crate::app::views::words::{MAX_SEEN, RenderedTable};
use crate::debug::cache::{self, cache_bytes};
use crate::model::generate::Calls;
use crate::session::Table;
use crate::session::generation::frame_of;
use crate::text::{Lang, Msg, tr};

/// Arithmetic of a decoding beyond which it is not computed a second time to be compared.
const MAX_FLOPS: u64 = 4_000_000_000;

/// The row of the call one is in.
pub fn row(nav: &Navigator, run: usize) -> Option<usize> {
    let view = nav.view().filter(|v| v.run == run)?;
    frame_of(nav.session.runs[run].program.node(view.node))
}

/// What each call finds in the cache and adds to it, with and without one.
///
/// # Errors
/// Where the run does not decode.
pub fn table(nav: &Navigator, run: usize, lang: Lang) -> Result<RenderedTable, Msg> {
    let s = &nav.session;
    let missing = || Msg::new("side.no_such").arg("what", "inference");
    let (calls, own) = s.calls_of(run).ok_or_else(missing)?;
    let planned = calls.count();
    let calls = calls.first(s.calls_made(run));
    let bytes = cache_bytes(&*s.generation(run, &calls, true)?, s.precision);
    let with = s.decoding_flops(run, &calls, true)?;
    let without = s.decoding_flops(run, &calls, false)?;
    let (less, more) = (&with.calls, &without.calls);
    let lengths = calls.lengths();
    let tokens = stairs::tokens_of_calls(nav, run, &lengths);
    let compared = (without.all() <= MAX_FLOPS).then(|| cache::compare(s, run, &calls, &mut ()).ok()).flatten();
    let mut rows = Vec::new();
    let (mut all_with, mut all_without) = (with.before, without.before);
    let mut lines = [Vec::new(), Vec::new()];
    for call in 0..less.len().min(lengths.len()) {
        let old = call.checked_sub(1).map_or(0, |before| lengths[before]);
        let words = |range: std::ops::Range<usize>| {
            let text = tokens.get(call).and_then(|t| t.get(range.clone()));
            let text = text.filter(|t| !t.is_empty() && t.len() <= MAX_SEEN);
            let text = text.map_or_else(String::new, |t| format!("{} ", t.join(" ")));
            format!("{text}({})", range.len())
        };
        all_with += less[call];
        all_without += more[call];
        lines[0].push(all_with as f64);
        lines[1].push(all_without as f64);
        let bits = compared.as_ref().map(|r| {
            let key = if r.different.contains(&call) { "cache.differ" } else { "cache.same" };
            tr(lang, key).to_owned()
        });
        rows.push(vec![
            (call + 1).to_string(),
            words(0..old.min(lengths[call])),
            words(old.min(lengths[call])..lengths[call]),
            bytes.get(call).map_or_else(String::new, u64::to_string),
            less[call].to_string(),
            more[call].to_string(),
            format!("{:.2}", more[call] as f64 / less[call].max(1) as f64),
            bits.unwrap_or_else(|| "—".to_owned()),
        ]);
    }
    let columns = ["call", "old", "new", "bytes", "with", "without", "times", "bits"];
    let key = if own { "cache.with" } else { "cache.without" };
    let head = Msg::new(key)
        .arg("run", crate::text::escape(&s.runs[run].name))
        .arg("with", all_with)
        .arg("without", all_without);
    let mut notes = vec![head];
    if with.before > 0 {
        notes.push(Msg::new("cache.encoder").arg("flops", with.before));
    }
    if matches!(calls, Calls::Beam { .. }) {
        notes.push(Msg::new("cache.beams"));
    }
    let left = planned - calls.count();
    if left > 0 {
        notes.push(Msg::new("walk.stopped").arg("left", left));
    }
    let notes: Vec<String> = notes.iter().map(|n| n.render(lang)).collect();
    let [with, without] = lines;
    Ok(RenderedTable {
        head: notes.join(if lang == Lang::Zh { "" } else { " " }),
        table: Table { columns: columns.map(|c| tr(lang, &format!("cache.column.{c}")).to_owned()).into(), rows },
        lines: vec![
            (tr(lang, "cache.column.with").to_owned(), with),
            (tr(lang, "cache.column.without").to_owned(), without),
        ],
        stairs: vec![(tr(lang, if own { "stairs.cache" } else { "stairs.calls" }).to_owned(), stairs::calls(nav, run))],
    })
}
