//! No widget panics, or writes outside its area, at any size and with any content.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{bars, chart, dialog, heat_table, help, legend, paragraph, raster, status, tree};
use crate::app::action::Action;
use crate::app::edit::Editor;
use crate::app::keymap::{Context, Keymap};
use crate::app::messages::{Level, Message};
use crate::app::overlay::{Prompt, PromptKind};
use crate::app::settings::{GlyphSet, THEMES};
use crate::text::{Lang, Msg, NumberFormat};
use crate::tui::colour::CellKind;
use crate::tui::draw::Look;
use crate::tui::glyphs::Glyphs;
use crate::tui::scale::Scale;
use crate::tui::theme::{Depth, Theme};

/// What fills the widgets.
#[derive(Clone, Debug)]
struct Content {
    words: Vec<String>,
    values: Vec<f64>,
    size: (usize, usize),
    at: (usize, usize),
    offset: usize,
}

impl Content {
    fn word(&self, i: usize) -> String {
        self.words[i % self.words.len()].clone()
    }

    fn value(&self, i: usize) -> f64 {
        self.values[i % self.values.len()]
    }
}

fn content() -> impl Strategy<Value = Content> {
    let word = prop_oneof![
        "[a-z水课√×\u{300}\u{1b}\t👩‍🚀①]{0,12}",
        Just(String::new()),
        Just("一二三四五六七八九十".to_owned()),
    ];
    let value = prop_oneof![
        -10.0..10.0_f64,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::MAX),
        Just(-1e9),
    ];
    let n = prop_oneof![0..5_usize, Just(40), Just(3_000_000_000)];
    (
        prop::collection::vec(word, 1..8),
        prop::collection::vec(value, 1..12),
        (n.clone(), n.clone()),
        (n.clone(), n.clone()),
        prop_oneof![n, Just(usize::MAX)],
    )
        .prop_map(|(words, values, size, at, offset)| Content { words, values, size, at, offset })
}

fn draw_all(area: Rect, buf: &mut Buffer, c: &Content, look: &Look) {
    let scale = Scale::signed(-2.0, 3.0);
    heat_table::HeatTable {
        size: c.size,
        row_label: &|r| c.word(r),
        column_label: &|i| c.word(i + 1),
        cell: &|row, column| heat_table::HeatCell {
            value: c.value(row.wrapping_add(column)),
            text: c.word(row ^ column),
            kind: CellKind::of(c.value(row.wrapping_add(column))),
            changed: (row == column).then(super::heat_table::Change::default),
        },
        offset: (c.offset, c.offset / 2),
        cursor: c.at.0.is_multiple_of(2).then_some(c.at),
        lit: heat_table::Lit { rows: &[1], columns: &[2], cells: &[(0, 0)] },
        scale,
        widest: 10,
        grow: 0,
    }
    .render(area, buf, look);
    raster::Raster {
        rows: 0..c.size.0,
        columns: 0..c.size.1,
        sample: &|rows, columns| {
            let parts = rows.iter().flat_map(|r| columns.iter().map(move |k| r.start.wrapping_add(k.end)));
            parts.map(|i| (c.value(i), CellKind::of(c.value(i)))).collect()
        },
        scale,
        cursor: Some(c.at),
        window: Some((0..c.at.0, 0..c.at.1)),
        row_label: Some(&|r| c.word(r)),
        column_label: c.offset.is_multiple_of(2).then_some(&|k: usize| c.word(k)),
        most: (6, 3),
    }
    .render(area, buf, look);
    legend::render(area, buf, &scale, NumberFormat::default(), look);
    tree::Tree {
        len: c.size.0,
        line: &|i| tree::Line {
            depth: (i % 70_000) as u16,
            branch: tree::Branch::Folded,
            text: c.word(i),
            right: c.word(i + 1),
            marks: tree::Marks { failed: true, bookmark: i % 2 == 0, ..tree::Marks::default() },
            dim: false,
        },
        selected: Some(c.at.0),
        offset: c.offset,
        focused: true,
    }
    .render(area, buf, look);
    let bar = |i| bars::Bar { label: c.word(i), value: c.value(i), marked: i == 1, before: Some(c.value(i + 1)) };
    bars::Bars {
        bars: &(0..c.words.len()).map(bar).collect::<Vec<_>>(),
        full: c.value(0),
        digits: NumberFormat::default(),
        selected: Some(c.at.0),
        offset: c.offset,
    }
    .render(area, buf, look);
    let series = |i: usize| chart::Series { name: c.word(i), values: c.values[i.min(c.values.len())..].to_vec() };
    chart::Chart {
        series: &[series(0), series(3)],
        digits: NumberFormat::default(),
        ends: (&c.word(0), &c.word(1)),
        cursor: Some(c.at.0),
    }
    .render(area, buf, look);
    let spans: Vec<_> = c
        .words
        .iter()
        .enumerate()
        .map(|(i, w)| paragraph::Span::new(format!("{w}\n{w} "), Style::new()).with_id(i))
        .collect();
    paragraph::Wrapped::new(&spans, area.width, look).render(area, buf, c.offset, Some(1), look);
    let inner = dialog::popup(area, buf, &c.word(0), (area.width / 2, area.height / 2), look);
    let editor = Editor::new(&c.words.concat());
    let words: Vec<&str> = c.words.iter().map(String::as_str).collect();
    let fields = [
        dialog::Field::Choice { label: &c.words[0], words: &words, chosen: c.at.0 % 9 },
        dialog::Field::Line { label: &c.words[0], editor: &editor },
    ];
    for focus in 0..3 {
        dialog::form(inner, buf, &fields, focus, look);
    }
    let mut line = Prompt::new(PromptKind::Command, "", crate::text::Lang::En, &());
    line.editor = editor.clone();
    dialog::prompt(area, buf, &line, look);
    let keymap = Keymap::builtin();
    help::render(area, buf, &keymap, c.offset, look);
    status::ends(area, buf, &c.word(0), &c.word(1), look);
    let hint = status::Hint { actions: vec![Action::Prev, Action::Next], word: "step" };
    status::hints(area, buf, &[hint.clone(), hint], &keymap, Context::Steps, look);
    let message = Message { times: 3, ..Message::new(Level::Error, Msg::new("tui.error.key").arg("key", c.word(0))) };
    status::message(area, buf, &message, look);
}

fn looks() -> Vec<Look> {
    GlyphSet::ALL
        .iter()
        .copied()
        .zip([Depth::True, Depth::Ansi16, Depth::None])
        .zip(THEMES)
        .map(|((set, depth), theme)| Look::new(Theme::new(theme, depth), Glyphs::of(set), Lang::Zh))
        .collect()
}

/// Draws into a part of a larger buffer and asserts that the rest is untouched.
fn check(area: Rect, c: &Content, look: &Look) {
    let mut buf = Buffer::empty(Rect::new(0, 0, 220, 70));
    for y in 0..70 {
        buf.set_string(0, y, "~".repeat(220), Style::new());
    }
    draw_all(area, &mut buf, c, look);
    for y in 0..70 {
        for x in 0..220 {
            let symbol = buf[(x, y)].symbol();
            if !area.contains((x, y).into()) {
                assert_eq!(symbol, "~", "({x}, {y}) outside {area:?}");
            }
            assert!(!symbol.contains(char::is_control), "{symbol:?}");
        }
    }
    // And where the frame is smaller than the area that is requested.
    let mut small = Buffer::empty(Rect::new(0, 0, area.width / 2, area.height / 2));
    draw_all(area, &mut small, c, look);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_content_at_any_place(
        c in content(),
        (x, y, width, height) in (0..12_u16, 0..6_u16, 0..=200_u16, 0..=60_u16),
        which in 0..3_usize,
    ) {
        check(Rect::new(x, y, width, height), &c, &looks()[which]);
    }
}

#[test]
fn every_small_size() {
    let c = Content {
        words: ["水课水课水课", "a", "", "long words indeed"].map(str::to_owned).into(),
        values: vec![0.5, -1.0, f64::NAN, f64::INFINITY, 2.0],
        size: (40, 40),
        at: (20, 30),
        offset: 3,
    };
    for (i, look) in looks().iter().enumerate() {
        for width in (i as u16..30).chain([80, 120, 200]) {
            for height in (0..9).chain([24, 60]) {
                check(Rect::new(1, 1, width, height), &c, look);
            }
        }
    }
}
