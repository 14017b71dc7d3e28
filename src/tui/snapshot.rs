//! A drawn screen as text, as text with ANSI colours, as a picture, and as a map of its styles.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell, CellWidth as _};
use ratatui::style::{Color, Modifier, Style};

use unicode_segmentation::UnicodeSegmentation as _;

use super::theme::rgb;

/// A stretch of a line in one style.
struct Run {
    x: u16,
    width: u16,
    text: String,
    style: Style,
}

/// Symbols of line `y` with their columns and widths; what a wide glyph covers is left out.
fn symbols(buf: &Buffer, y: u16) -> Vec<(u16, u16, &Cell)> {
    let mut out = Vec::new();
    let mut x = buf.area.left();
    while x < buf.area.right() {
        let cell = &buf[(x, y)];
        let width = cell.cell_width().max(1).min(buf.area.right() - x);
        out.push((x, width, cell));
        x += width;
    }
    out
}

/// Cells of line `y` joined where `joins` says that two styles and widths go together.
fn runs(buf: &Buffer, y: u16, joins: impl Fn(&Run, u16, Style) -> bool) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for (x, width, cell) in symbols(buf, y) {
        match out.last_mut() {
            Some(run) if joins(run, width, cell.style()) => {
                run.text.push_str(cell.symbol());
                run.width += width;
            }
            _ => out.push(Run { x, width, text: cell.symbol().to_owned(), style: cell.style() }),
        }
    }
    out
}

/// The text, spaces at line ends cut.
pub fn text(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let line: String = symbols(buf, y).iter().map(|s| s.2.symbol()).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The text with ANSI sequences, as `cat` shows it.
pub fn ansi(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        for run in runs(buf, y, |r, _, style| r.style == style) {
            let codes = sgr(run.style);
            if codes.is_empty() {
                out.push_str(&run.text);
            } else {
                let _ = write!(out, "\x1b[{codes}m{}\x1b[0m", run.text);
            }
        }
        out.push('\n');
    }
    out
}

fn sgr(style: Style) -> String {
    let mut codes = Vec::new();
    for (modifier, code) in [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
    ] {
        if style.add_modifier.contains(modifier) {
            codes.push(code.to_string());
        }
    }
    for (color, base) in [(style.fg, 30), (style.bg, 40)] {
        match color {
            None | Some(Color::Reset) => {}
            Some(Color::Rgb(r, g, b)) => codes.push(format!("{};2;{r};{g};{b}", base + 8)),
            Some(Color::Indexed(n)) => codes.push(format!("{};5;{n}", base + 8)),
            Some(named) => {
                if let Some(n) = super::theme::index(named) {
                    let n = i32::from(n);
                    codes.push((if n < 8 { base + n } else { base + 60 + n - 8 }).to_string());
                }
            }
        }
    }
    codes.join(";")
}

/// Width and height of a cell in the picture.
const CELL: (f64, f64) = (9.0, 19.0);
fn is_braille(c: char) -> bool {
    ('\u{2800}'..='\u{28ff}').contains(&c)
}

/// Size of the font; a wide glyph is as wide.
const FONT: f64 = 15.0;

/// Ground and ink of a picture.
fn paper(dark: bool) -> ([u8; 3], [u8; 3]) {
    if dark { ([0x1a, 0x1b, 0x1e], [0xd8, 0xd9, 0xda]) } else { ([0xff, 0xff, 0xff], [0x20, 0x22, 0x26]) }
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The beginning of a picture, up to its ground.
fn head(buf: &Buffer, dark: bool, style: &str) -> String {
    let (w, h) = CELL;
    let (width, height) = (f64::from(buf.area.width) * w + 2.0 * w, f64::from(buf.area.height) * h + h);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"'JetBrains Mono','DejaVu Sans Mono',Menlo,Consolas,\
         'Noto Sans Mono CJK SC','Sarasa Mono SC','PingFang SC','Microsoft YaHei',monospace\" font-size=\"{FONT}\">\n\
         {style}<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n",
        hex(paper(dark).0)
    )
}

/// The screen as an SVG picture on a dark or light ground.
pub fn svg(buf: &Buffer, dark: bool) -> String {
    let mut out = head(buf, dark, "");
    lines(buf, dark, &|_| true, &mut out);
    out.push_str("</svg>\n");
    out
}

/// Screens one after another, each with the seconds that it stays, as one SVG picture that moves by itself and begins
/// again: styles only, no script. A frame draws the lines that differ from the one before; where nothing moves the
/// first one is seen.
pub fn film(frames: &[(Buffer, f64)], dark: bool) -> String {
    let Some((first, _)) = frames.first() else { return String::new() };
    let total: f64 = frames.iter().map(|f| f.1).sum();
    let mut style = String::from("<style>");
    let mut begin = 0.0;
    for (i, (_, seconds)) in frames.iter().enumerate() {
        if i > 0 {
            let share = begin / total * 100.0;
            let _ = write!(
                style,
                ".f{i}{{visibility:hidden;animation:f{i} {total:.2}s step-end infinite}}\
                 @keyframes f{i}{{0%{{visibility:hidden}}{share:.3}%{{visibility:visible}}100%{{visibility:visible}}}}"
            );
        }
        begin += seconds;
    }
    style.push_str("</style>\n");
    let mut out = head(first, dark, &style);
    lines(first, dark, &|_| true, &mut out);
    let (w, h) = CELL;
    for (i, pair) in frames.windows(2).enumerate() {
        let (before, now) = (&pair[0].0, &pair[1].0);
        let _ = writeln!(out, "<g class=\"f{}\">", i + 1);
        let row = |buf: &Buffer, y: u16| -> Vec<Cell> {
            (buf.area.left()..buf.area.right()).map(|x| buf[(x, y)].clone()).collect()
        };
        let differs = |y: u16| before.area != now.area || row(before, y) != row(now, y);
        let width = f64::from(now.area.width) * w;
        for y in (now.area.top()..now.area.bottom()).filter(|y| differs(*y)) {
            let top = h / 2.0 + f64::from(y - now.area.y) * h;
            let fill = hex(paper(dark).0);
            let _ = writeln!(out, "<rect x=\"{w}\" y=\"{top}\" width=\"{width}\" height=\"{h}\" fill=\"{fill}\"/>");
        }
        lines(now, dark, &differs, &mut out);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// Draws the lines that `wanted` takes.
fn lines(buf: &Buffer, dark: bool, wanted: &dyn Fn(u16) -> bool, out: &mut String) {
    let (w, h) = CELL;
    let (ground, ink) = paper(dark);
    // The colours that are really seen: reversed ones exchanged, dim ones halfway to the ground.
    let seen = |style: Style| {
        let fg = style.fg.and_then(rgb);
        let bg = style.bg.and_then(rgb);
        let (mut fg, bg) = if style.add_modifier.contains(Modifier::REVERSED) {
            (bg.unwrap_or(ground), Some(fg.unwrap_or(ink)))
        } else {
            (fg.unwrap_or(ink), bg)
        };
        if style.add_modifier.contains(Modifier::DIM) {
            let back = bg.unwrap_or(ground);
            for (a, b) in fg.iter_mut().zip(back) {
                *a = u8::midpoint(*a, b);
            }
        }
        (fg, bg)
    };
    let left = |x: u16| w + f64::from(x - buf.area.x) * w;
    let top = |y: u16| h / 2.0 + f64::from(y - buf.area.y) * h;
    for y in (buf.area.top()..buf.area.bottom()).filter(|y| wanted(*y)) {
        for run in runs(buf, y, |r, _, style| seen(r.style).1 == seen(style).1) {
            if let Some(bg) = seen(run.style).1 {
                let _ = writeln!(
                    out,
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{h}\" fill=\"{}\"/>",
                    left(run.x),
                    top(y),
                    f64::from(run.width) * w,
                    hex(bg)
                );
            }
        }
    }
    for y in (buf.area.top()..buf.area.bottom()).filter(|y| wanted(*y)) {
        // Wide glyphs are in runs of their own, so that a font of other proportions cannot shift what follows.
        let wide = |r: &Run| usize::from(r.width) > r.text.chars().count();
        for run in runs(buf, y, |r, width, style| r.style == style && wide(r) == (width > 1)) {
            let trimmed = run.text.trim();
            let underlined = run.style.add_modifier.contains(Modifier::UNDERLINED);
            if trimmed.is_empty() && !underlined {
                continue;
            }
            let mut attributes = format!("fill=\"{}\"", hex(seen(run.style).0));
            for (modifier, attribute) in [
                (Modifier::BOLD, " font-weight=\"bold\""),
                (Modifier::ITALIC, " font-style=\"italic\""),
                (Modifier::UNDERLINED, " text-decoration=\"underline\""),
            ] {
                if run.style.add_modifier.contains(modifier) {
                    attributes.push_str(attribute);
                }
            }
            let cells = if wide(&run) { 2.0 } else { 1.0 };
            if wide(&run) || run.text.chars().any(is_braille) {
                // Renderers that do not know textLength would let narrower glyphs run together, and wider ones (most
                // fonts borrow their braille) run apart: each has its place.
                let _ = write!(out, "<text y=\"{}\" {attributes}>", top(y) + h * 0.75);
                let mut x = left(run.x) + (cells - 1.0) * (2.0 * w - FONT) / 2.0;
                for glyph in run.text.graphemes(true) {
                    let _ = write!(out, "<tspan x=\"{x}\">{}</tspan>", xml(glyph));
                    x += cells * w;
                }
                out.push_str("</text>\n");
                continue;
            }
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" \
                 xml:space=\"preserve\" {attributes}>{}</text>",
                left(run.x),
                top(y) + h * 0.75,
                f64::from(run.width) * w,
                xml(&run.text)
            );
        }
    }
}

fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no way to write these.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The text, and below it one letter a cell for its style, with what the letters mean: text snapshots alone would
/// not notice a lost highlight.
pub fn with_styles(buf: &Buffer) -> String {
    let mut styles: Vec<Style> = Vec::new();
    let mut map = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let mut line = String::new();
        for (_, width, cell) in symbols(buf, y) {
            let style = cell.style();
            let letter = if sgr(style).is_empty() {
                '.'
            } else {
                letter(styles.iter().position(|s| *s == style).unwrap_or_else(|| {
                    styles.push(style);
                    styles.len() - 1
                }))
            };
            line.extend(std::iter::repeat_n(letter, usize::from(width)));
        }
        map.push_str(line.trim_end_matches('.'));
        map.push('\n');
    }
    let mut out = format!("{}--\n{map}--\n", text(buf));
    for (at, style) in styles.iter().enumerate() {
        let _ = writeln!(out, "{} = {}", letter(at), name(*style));
    }
    out
}

fn letter(at: usize) -> char {
    let letters = ('a'..='z').chain('A'..='Z').chain('0'..='9');
    letters.chain('\u{100}'..).nth(at).unwrap_or('?')
}

fn name(style: Style) -> String {
    let mut parts = Vec::new();
    if let Some(fg) = style.fg.filter(|c| *c != Color::Reset) {
        parts.push(format!("{fg}"));
    }
    if let Some(bg) = style.bg.filter(|c| *c != Color::Reset) {
        parts.push(format!("on {bg}"));
    }
    parts.extend(style.add_modifier.iter_names().map(|(name, _)| name.to_lowercase()));
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

    fn sample() -> Buffer {
        let mut buf = Buffer::empty(Rect::new(0, 0, 8, 2));
        buf.set_string(0, 0, "a水<b", Style::new().fg(Color::Red));
        buf.set_string(
            0,
            1,
            "x",
            Style::new().bg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD | Modifier::REVERSED),
        );
        buf
    }

    #[test]
    fn as_text_wide_glyphs_take_their_two_cells_once() {
        assert_eq!(text(&sample()), "a水<b\nx\n");
    }

    #[test]
    fn as_ansi() {
        assert_eq!(ansi(&sample()), "\x1b[31ma水<b\x1b[0m   \n\x1b[1;7;48;2;1;2;3mx\x1b[0m       \n");
    }

    #[test]
    fn as_svg_wide_glyphs_are_placed_by_the_grid() {
        let svg = svg(&sample(), true);
        assert!(svg.contains(">水</tspan>") && svg.contains(">&lt;b</text>"), "{svg}");
        let wide = svg.lines().find(|l| l.contains('水')).unwrap();
        assert!(wide.contains("<tspan x=\"19.5\">") && !wide.contains("textLength"), "{wide}");
        // Reversed on a ground of its own: the ink becomes the ground.
        assert!(svg.contains("<rect x=\"9\" y=\"28.5\" width=\"9\" height=\"19\" fill=\"#d8d9da\"/>"));
    }

    #[test]
    fn as_a_style_map() {
        assert_eq!(with_styles(&sample()), "a水<b\nx\n--\naaaaa\nb\n--\na = Red\nb = on #010203 bold reversed\n");
    }
}
