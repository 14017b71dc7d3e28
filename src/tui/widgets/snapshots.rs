//! What each widget looks like, with a map of its styles, in each glyph set.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{bars, chart, dialog, heat_table, help, legend, paragraph, raster, status, tree};
use crate::app::action::Action;
use crate::app::args::FORMATS;
use crate::app::edit::Editor;
use crate::app::keymap::{Context, Keymap};
use crate::app::overlay::{Prompt, PromptKind};
use crate::app::settings::GlyphSet;
use crate::text::{Lang, NumberFormat};
use crate::tui::colour::CellKind;
use crate::tui::draw::{Look, put};
use crate::tui::glyphs::Glyphs;
use crate::tui::scale::Scale;
use crate::tui::snapshot::{text, with_styles};
use crate::tui::theme::{Depth, Theme};

fn look(set: GlyphSet, lang: Lang) -> Look {
    Look::new(Theme::new("dark", Depth::Ansi16), Glyphs::of(set), lang)
}

fn drawn((width, height): (u16, u16), draw: impl Fn(Rect, &mut Buffer)) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    draw(area, &mut buf);
    buf
}

const SCORES: [[f64; 4]; 4] = [
    [1.1193, f64::NEG_INFINITY, -1e9, -1e9],
    [2.075, -0.4421, -1e9, -1e9],
    [0.3, 0.0, f64::NAN, -1e9],
    [-2.1, 0.25, 1.5, f64::INFINITY],
];

fn table(look: &Look, size: (u16, u16), offset: (usize, usize), cursor: (usize, usize)) -> Buffer {
    const TOKENS: [&str; 4] = ["我", "爱", "水", "课"];
    drawn(size, |area, buf| {
        heat_table::HeatTable {
            size: (4, 4),
            row_label: &|r| TOKENS[r].to_owned(),
            column_label: &|c| TOKENS[c].to_owned(),
            cell: &|r, c| {
                let value = SCORES[r][c];
                let masked = value < -1e8 && value.is_finite();
                heat_table::HeatCell {
                    value,
                    text: if masked { "mask".to_owned() } else { NumberFormat::default().format(value) },
                    kind: if masked { CellKind::Masked } else { CellKind::of(value) },
                    changed: ((r, c) == (2, 0)).then_some(super::heat_table::Change { grade: 2, up: true }),
                }
            },
            offset,
            cursor: Some(cursor),
            lit: heat_table::Lit { rows: &[3], ..heat_table::Lit::default() },
            scale: Scale::signed(-2.1, 2.075),
            widest: 9,
            grow: 0,
        }
        .render(area, buf, look);
    })
}

#[test]
fn heat_tables() {
    for &set in GlyphSet::ALL {
        let look = look(set, Lang::En);
        insta::assert_snapshot!(format!("heat_table_{set}"), with_styles(&table(&look, (40, 5), (0, 0), (1, 0))));
    }
    // Too small for everything: what is there, what is not, and the cursor in sight.
    let look = look(GlyphSet::Unicode, Lang::En);
    insta::assert_snapshot!("heat_table_window", with_styles(&table(&look, (17, 4), (0, 0), (3, 2))));
}

#[test]
fn the_cursor_cell_is_reversed_and_the_lit_row_underlined() {
    use ratatui::style::Modifier;
    let look = look(GlyphSet::Unicode, Lang::En);
    let buf = table(&look, (40, 5), (0, 0), (1, 0));
    let reversed = |y: u16| (0..40).filter(|x| buf[(*x, y)].modifier.contains(Modifier::REVERSED)).count();
    assert_eq!([1, 2, 3, 4].map(reversed), [0, 6, 0, 0]);
    assert!(buf[(8, 4)].modifier.contains(Modifier::UNDERLINED));
}

#[test]
fn block_heatmaps() {
    for &set in GlyphSet::ALL {
        let look = look(set, Lang::En);
        let buf = drawn((24, 6), |area, buf| {
            raster::Raster {
                rows: 0..512,
                columns: 0..768,
                sample: &|rows, columns| {
                    let parts = rows.iter().flat_map(|r| columns.iter().map(move |c| (r.start, c.start)));
                    let pixel = |(r, c): (usize, usize)| {
                        let v = (r as f64 - 256.0) / 256.0 * (c as f64 / 768.0);
                        let kind = if c > 600 && r < 100 { CellKind::Masked } else { CellKind::of(v) };
                        (v, kind)
                    };
                    parts.map(pixel).collect()
                },
                scale: Scale::signed(-1.0, 1.0),
                cursor: Some((300, 400)),
                window: Some((0..100, 0..200)),
                row_label: Some(&|r: usize| r.to_string()),
                column_label: Some(&|c: usize| c.to_string()),
                most: (4, 2),
            }
            .render(area, buf, &look);
        });
        insta::assert_snapshot!(format!("blocks_{set}"), with_styles(&buf));
    }
}

#[test]
fn legends() {
    let look = look(GlyphSet::Unicode, Lang::En);
    let buf = drawn((40, 5), |area, buf| {
        let row = |y| Rect::new(0, y, area.width, 1);
        let digits = NumberFormat::default();
        legend::render(row(0), buf, &Scale::signed(-2.1, 2.0), digits, &look);
        legend::render(row(1), buf, &Scale::positive(0.0, 1.0), digits, &look);
        let log = Scale::positive(0.0, 1.0).with_log(true);
        legend::render(row(3), buf, &log, digits, &look);
        let log = Scale::signed(-2.1, 2.0).with_log(true);
        legend::render(row(4), buf, &log, digits, &look);
        legend::render(Rect::new(0, 2, 10, 1), buf, &Scale::signed(-2.1, 2.0), digits, &look);
    });
    insta::assert_snapshot!("legends", with_styles(&buf));
}

fn lines() -> Vec<tree::Line> {
    let line = |depth, branch, text: &str, right: &str| tree::Line {
        depth,
        branch,
        text: text.to_owned(),
        right: right.to_owned(),
        ..tree::Line::default()
    };
    let mut lines = vec![
        line(0, tree::Branch::Folded, "Input", "1-13"),
        line(0, tree::Branch::Unfolded, "编码器第一层", "14-38"),
        line(1, tree::Branch::Leaf, "23 score1", ""),
        line(1, tree::Branch::Leaf, "24 score2", ""),
        line(0, tree::Branch::Folded, "Encoder 2", "39-51"),
    ];
    lines[2].marks.bookmark = true;
    lines[3].marks.failed = true;
    lines
}

#[test]
fn trees() {
    let lines = lines();
    for &set in GlyphSet::ALL {
        let look = look(set, Lang::En);
        let buf = drawn((24, 5), |area, buf| {
            tree::Tree { len: lines.len(), line: &|i| lines[i].clone(), selected: Some(2), offset: 0, focused: true }
                .render(area, buf, &look);
        });
        insta::assert_snapshot!(format!("tree_{set}"), with_styles(&buf));
    }
}

#[test]
fn bar_lists() {
    let bar = |label: &str, value, marked| bars::Bar { label: label.to_owned(), value, marked, before: None };
    let all = [bar("love", 0.5261, true), bar("简单", 0.31, false), bar("courses", 0.002, false)];
    for &set in GlyphSet::ALL {
        let look = look(set, Lang::En);
        let buf = drawn((36, 3), |area, buf| {
            bars::Bars { bars: &all, full: 1.0, digits: NumberFormat::default(), selected: Some(1), offset: 0 }
                .render(area, buf, &look);
        });
        insta::assert_snapshot!(format!("bars_{set}"), with_styles(&buf));
    }
}

#[test]
fn charts() {
    let wave = |name: &str, f: fn(f64) -> f64| chart::Series {
        name: name.to_owned(),
        values: (0..40).map(|i| f(f64::from(i) / 6.0)).collect(),
    };
    let series = [wave("sin", f64::sin), wave("cos", f64::cos)];
    for &set in GlyphSet::ALL {
        let look = look(set, Lang::En);
        let buf = drawn((44, 9), |area, buf| {
            chart::Chart { series: &series, digits: NumberFormat::Decimals(2), ends: ("0", "39"), cursor: Some(10) }
                .render(area, buf, &look);
        });
        insta::assert_snapshot!(format!("chart_{set}"), with_styles(&buf));
    }
}

#[test]
fn paragraphs_wrap_and_know_where_their_parts_are() {
    let look = look(GlyphSet::Unicode, Lang::En);
    let plain = |t: &str| paragraph::Span::new(t, Style::new());
    let number = |t: &str, id| paragraph::Span::new(t, look.theme.accent).with_id(id);
    let spans = [
        plain("Q1[0][0] = "),
        number("0.5", 0),
        plain("×"),
        number("-0.3", 1),
        plain(" + "),
        number("0.7", 2),
        plain("×"),
        number("0.9", 3),
        plain(" = 1.1\n查询向量的第一个分量。"),
    ];
    let wrapped = paragraph::Wrapped::new(&spans, 20, &look);
    let buf = drawn((20, wrapped.height() as u16), |area, buf| {
        let places = wrapped.render(area, buf, 0, Some(2), &look);
        assert_eq!(places.len(), 4);
        for (rect, id) in places {
            let mut shown = String::new();
            for x in rect.left()..rect.right() {
                shown.push_str(buf[(x, rect.y)].symbol());
            }
            assert_eq!(shown, spans[id * 2 + 1].text);
        }
    });
    insta::assert_snapshot!("paragraph", with_styles(&buf));
    assert_eq!(wrapped.line_of(9), None);
}

#[test]
fn a_popup_keeps_its_border_over_wide_glyphs() {
    let look = look(GlyphSet::Unicode, Lang::En);
    // Once the popup begins in the middle of a wide glyph, once at its beginning.
    for width in [8, 9] {
        let buf = drawn((20, 5), |area, buf| {
            for y in 0..5 {
                put(buf, area, (0, y), &"水".repeat(10), 20, Style::new(), &look);
            }
            dialog::popup(area, buf, "t", (width, 1), &look);
        });
        for y in 1..4 {
            let shown = text(&buf);
            let line = shown.lines().nth(y).unwrap();
            assert!(line.contains(['┌', '│', '└']), "{width}: {line}");
        }
        insta::assert_snapshot!(format!("popup_{width}"), text(&buf));
    }
}

#[test]
fn forms_and_prompts() {
    for (&set, lang) in GlyphSet::ALL.iter().zip([Lang::Zh, Lang::Zh, Lang::En]) {
        let look = look(set, lang);
        let buf = drawn((50, 12), |area, buf| {
            let path = Editor::new("water_class-step23.md");
            let fields = [
                dialog::Field::Choice { label: "格式", words: &FORMATS, chosen: 1 },
                dialog::Field::Line { label: "路径", editor: &path },
            ];
            dialog::form(Rect::new(0, 0, 40, 2), buf, &fields, 1, &look);
            let mut line = Prompt::new(PromptKind::Command, "co", lang, &());
            line.cycle(true, &());
            dialog::prompt(area, buf, &line, &look);
        });
        insta::assert_snapshot!(format!("form_and_prompt_{set}"), with_styles(&buf));
    }
}

#[test]
fn help_and_status_lines() {
    let keymap = Keymap::builtin();
    for (&set, lang) in GlyphSet::ALL.iter().zip([Lang::Zh, Lang::Zh, Lang::En]) {
        let look = look(set, lang);
        let buf = drawn((78, 12), |area, buf| {
            status::ends(area, buf, "water_class · training", "23/95 · 5.10", &look);
            let body = Rect::new(0, 1, area.width, area.height - 2);
            help::render(body, buf, &keymap, 0, &look);
            let hints = [
                status::Hint { actions: vec![Action::Prev, Action::Next], word: "step" },
                status::Hint { actions: vec![Action::Follow], word: "into" },
            ];
            let foot = Rect::new(0, area.bottom() - 1, area.width, 1);
            status::hints(foot, buf, &hints, &keymap, Context::Steps, &look);
        });
        insta::assert_snapshot!(format!("help_{set}"), text(&buf));
    }
}
