//! The counts as tables of text, the same on the screen, in `counts` and in answers.

use crate::debug::counts::{Counts, Parameters, Work, total};
use crate::session::Session;
use crate::tensor::Precision;
use crate::text::{Align, Cells, Lang, Msg, tr};

/// A table of words and numbers; the first column is words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTable {
    /// Title.
    pub title: String,
    /// Headings.
    pub columns: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
    /// Lines below it.
    pub notes: Vec<String>,
}

impl TextTable {
    /// Headings and rows with columns under each other.
    pub fn lines(&self) -> Vec<String> {
        let cells = Cells::NARROW;
        let all = || std::iter::once(&self.columns).chain(&self.rows);
        let width = |column: usize| all().map(|r| cells.width(&r[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let align = |i| if i == 0 { Align::Left } else { Align::Right };
            let parts = row.iter().enumerate().map(|(i, text)| cells.fit(text, widths[i], align(i)));
            parts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        all().map(line).collect()
    }
}

/// Bytes of a number.
pub fn bytes_each(precision: Precision) -> u64 {
    match precision {
        Precision::F32 => 4,
        Precision::F64 => 8,
    }
}

/// 2,362,368.
pub fn quantity(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn share(part: u64, all: u64) -> String {
    format!("{:.1}%", part as f64 / all.max(1) as f64 * 100.0)
}

fn dims(shape: &[usize]) -> String {
    shape.iter().map(|n| quantity(*n as u64)).collect::<Vec<_>>().join(" × ")
}

/// All tables of the counts.
pub fn tables(c: &Counts, s: &Session, lang: Lang) -> Vec<TextTable> {
    let mut out = vec![parameters(c, s, lang), work(c, s, lang), curves(c, lang)];
    out.extend(padding(c, lang));
    out
}

fn headings(lang: Lang, keys: &[&str]) -> Vec<String> {
    keys.iter().map(|k| tr(lang, &format!("counts.{k}")).to_owned()).collect()
}

fn parameters(c: &Counts, s: &Session, lang: Lang) -> TextTable {
    let all = c.all();
    let name = |p: &Parameters| if p.times > 1 { format!("{} … {}", p.module, p.last) } else { p.module.clone() };
    let row = |p: &Parameters| {
        let shape = match p.tensors.as_slice() {
            [(_, one)] => dims(one),
            several => Msg::new("counts.tensors").arg("count", several.len()).render(lang),
        };
        vec![name(p), shape, p.times.to_string(), quantity(p.each), quantity(p.all()), share(p.all(), all)]
    };
    let bytes = quantity(all * bytes_each(s.precision));
    TextTable {
        title: tr(lang, "counts.parameters").to_owned(),
        columns: headings(lang, &["module", "shape", "times", "each", "all", "share"]),
        rows: c.parameters.iter().map(row).collect(),
        notes: vec![
            Msg::new("counts.parameters_all")
                .arg("count", quantity(all))
                .arg("bytes", bytes)
                .arg("type", format!("{:?}", s.precision).to_lowercase())
                .render(lang),
        ],
    }
}

fn work(c: &Counts, s: &Session, lang: Lang) -> TextTable {
    let all = total(&c.work);
    let row = |w: &Work| {
        vec![
            w.module.clone(),
            w.times.to_string(),
            quantity(w.flops),
            share(w.flops, all.flops),
            quantity(w.moved),
            quantity(w.kept),
        ]
    };
    let mut notes = vec![
        Msg::new("counts.work_all")
            .arg("flops", quantity(all.flops))
            .arg("moved", quantity(all.moved))
            .arg("kept", quantity(all.kept))
            .render(lang),
    ];
    notes.extend(c.training.map(|(backward, update)| {
        Msg::new("counts.training").arg("backward", quantity(backward)).arg("update", quantity(update)).render(lang)
    }));
    TextTable {
        title: Msg::new("counts.work").arg("run", crate::text::escape(&s.runs[c.run].name)).render(lang),
        columns: headings(lang, &["module", "times", "flops", "share", "moved", "kept"]),
        rows: c.work.iter().map(row).collect(),
        notes,
    }
}

fn curves(c: &Counts, lang: Lang) -> TextTable {
    let mut columns = headings(lang, &["length"]);
    for curve in &c.curves {
        let kind = tr(lang, &format!("counts.kind.{}", curve.kind.name()));
        columns.push(format!("{kind} FLOPs"));
        columns.push(Msg::new("counts.kept_of").arg("kind", kind).render(lang));
    }
    let row = |(i, n): (usize, &usize)| {
        let numbers = c.curves.iter().flat_map(|k| [quantity(k.points[i].flops), quantity(k.points[i].kept)]);
        std::iter::once(quantity(*n as u64)).chain(numbers).collect()
    };
    TextTable {
        title: Msg::new("counts.curves").arg("window", c.window).render(lang),
        columns,
        rows: c.lengths.iter().enumerate().map(row).collect(),
        notes: vec![tr(lang, "counts.curves_note").to_owned()],
    }
}

fn padding(c: &Counts, lang: Lang) -> Option<TextTable> {
    let p = c.padding.as_ref()?;
    let times = p.flops_padded as f64 / p.flops_real.max(1) as f64;
    let lengths: Vec<String> = p.real.iter().map(ToString::to_string).collect();
    Some(TextTable {
        title: Msg::new("counts.padding").arg("to", p.to).render(lang),
        columns: headings(lang, &["lengths", "flops", "flops_padded", "factor"]),
        rows: vec![vec![lengths.join(", "), quantity(p.flops_real), quantity(p.flops_padded), format!("{times:.2}")]],
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::quantity;

    #[test]
    fn thousands_are_separated() {
        let all = [0, 7, 123, 1234, 2_362_368, 23_440_896].map(quantity);
        assert_eq!(all, ["0", "7", "123", "1,234", "2,362,368", "23,440,896"]);
    }
}
