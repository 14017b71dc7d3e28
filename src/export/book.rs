//! A whole walkthrough as one page in both languages: nothing is loaded, and it reads without scripts.
//!
//! Every number that a table shows has an id; the derivation of a cell links each operand to the cell where it was made.
//! The script only adds keys, the language switch and the light on operands, all from these links.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::Options;
use super::doc::TensorDoc;
use super::document::{COMPARISON, step_formula, tensor};
use super::html::{colour, largest, markup, safe};
use super::table::tables;
use crate::explain::{Explainer, Line, Style};
use crate::session::{Session, Steps, stages};
use crate::text::{Lang, Msg, escape, tr};
use crate::trace::derive::Cell;
use crate::walkthrough::{LocalizedText, Step, View};

const STYLE: &str = include_str!("../../assets/book/style.css");
const SCRIPT: &str = include_str!("../../assets/book/script.js");
const LANGS: [(Lang, &str); 2] = [(Lang::En, "en"), (Lang::Zh, "zh")];
/// Most derivations of a step.
const MAX_LINES: usize = 4000;

/// The name of the page of a scenario: its own, without what a file name should not have.
pub fn file_name(s: &Session) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let name: String = s.scenario.name.chars().map(plain).collect();
    format!("{}.html", if name.is_empty() { "scenario" } else { &name })
}

/// Writes the page of all steps of `steps`.
///
/// # Errors
/// Those of `out`; a run that cannot run.
pub fn write(s: &Session, steps: &Steps, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let book = Book { s, steps, options, shown: shown(s, steps, options)? };
    book.head(out)?;
    for (at, step) in steps.list().iter().enumerate() {
        book.step(out, at, step)?;
    }
    writeln!(out, "<div id=\"bar\" aria-live=\"polite\"></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>")
}

struct Book<'s> {
    s: &'s Session,
    steps: &'s Steps,
    options: &'s Options,
    /// Cells that some table shows: step, view, position.
    shown: HashSet<(usize, usize, usize)>,
}

fn values(s: &Session, view: &View) -> io::Result<TensorDoc> {
    Ok(tensor(s, s.trace(view.run).map_err(|e| io::Error::other(e.clone()))?, view))
}

fn shown(s: &Session, steps: &Steps, options: &Options) -> io::Result<HashSet<(usize, usize, usize)>> {
    let mut all = HashSet::new();
    for (at, step) in steps.list().iter().enumerate() {
        for (v, view) in step.views.iter().enumerate() {
            let doc = values(s, view)?;
            if doc.shape.is_empty() {
                all.insert((at, v, 0));
            }
            for table in &tables(&doc, options).tables {
                let columns = || table.columns.iter().flatten();
                let flats = table.rows.iter().flatten().flat_map(|r| columns().map(|c| table.flat(*r, *c)));
                all.extend(flats.map(|flat| (at, v, flat)));
            }
        }
    }
    Ok(all)
}

/// A text in both languages, each in an element that the page's language shows or hides.
fn both(tag: &str, of: &dyn Fn(Lang) -> String) -> String {
    let (en, zh) = (of(Lang::En), of(Lang::Zh));
    if en == zh {
        return if en.is_empty() { String::new() } else { format!("<{tag}>{en}</{tag}>") };
    }
    format!("<{tag} class=\"en\">{en}</{tag}><{tag} class=\"zh\" lang=\"zh-CN\">{zh}</{tag}>")
}

fn word(key: &str) -> String {
    both("span", &|lang| markup(tr(lang, key)))
}

fn paragraphs(text: &LocalizedText) -> String {
    let split =
        |lang| -> Vec<String> { text.render(lang).split('\n').filter(|p| !p.trim().is_empty()).map(safe).collect() };
    let all = |texts: &[String], open: &str| texts.iter().fold(String::new(), |page, p| page + open + p + "</p>\n");
    let (en, zh) = (split(Lang::En), split(Lang::Zh));
    if en == zh {
        return all(&en, "<p>");
    }
    all(&en, "<p class=\"en\">") + &all(&zh, "<p class=\"zh\" lang=\"zh-CN\">")
}

fn given(en: &str, zh: &str) -> LocalizedText {
    LocalizedText::Given { en: en.into(), zh: zh.into() }
}

impl Book<'_> {
    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let scenario = &self.s.scenario;
        let (_, lang) = LANGS.into_iter().find(|l| l.0 == self.options.lang).unwrap_or(LANGS[0]);
        let tag = if lang == "zh" { "zh-CN" } else { "en" };
        let title = given(&scenario.title.en, &scenario.title.zh);
        let title = |lang| {
            let text = title.render(lang);
            safe(if text.is_empty() { &scenario.name } else { &text })
        };
        // The page itself forbids every request.
        writeln!(
            out,
            "<!DOCTYPE html>\n<html lang=\"{tag}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body data-lang=\"{lang}\">",
            title(self.options.lang)
        )?;
        writeln!(out, "<h1>{}</h1>", both("span", &title))?;
        write!(out, "{}", paragraphs(&given(&scenario.note.en, &scenario.note.zh)))?;
        writeln!(
            out,
            "<p class=\"js\"><button id=\"language\" lang=\"\">中文 / English</button> {}</p>",
            word("book.keys")
        )?;
        writeln!(out, "<nav><details><summary>{}</summary>\n<ol>", word("book.contents"))?;
        for step in self.steps.list() {
            let title = both("span", &|lang| safe(&step.title.render(lang)));
            writeln!(out, "<li value=\"{}\"><a href=\"#s{}\">{title}</a></li>", step.label(), step.label())?;
        }
        writeln!(out, "</ol></details></nav>")
    }

    fn step(&self, out: &mut dyn Write, at: usize, step: &Step) -> io::Result<()> {
        let number = step.label();
        let section = if step.section.is_empty() { String::new() } else { format!("{} · ", safe(&step.section)) };
        let title = both("span", &|lang| safe(&step.title.render(lang)));
        writeln!(out, "<section id=\"s{number}\">\n<h2 tabindex=\"-1\">{number} · {section}{title}</h2>")?;
        let run = &self.s.runs[step.run].name;
        writeln!(out, "<p class=\"place\">{} · {}</p>", safe(run), safe(&step.phase))?;
        let formula = step_formula(self.s, self.steps, at, step);
        if !formula.is_empty() {
            writeln!(out, "<p><code>{}</code></p>", safe(&formula))?;
        }
        let mut lines = String::new();
        for (v, view) in step.views.iter().enumerate() {
            let doc = values(self.s, view)?;
            self.tensor(out, at, v, &doc)?;
            self.lines(&mut lines, at, v, view)?;
        }
        if step.views.is_empty() && step.phase == COMPARISON {
            for (lang, class) in LANGS {
                if let Some(table) = stages(self.s, step.run, lang).map_err(io::Error::other)? {
                    write_texts(out, &table, class)?;
                }
            }
        }
        write!(out, "{}", paragraphs(&step.note))?;
        if !lines.is_empty() {
            writeln!(out, "<details open><summary>{}</summary>\n{lines}</details>", word("book.arithmetic"))?;
        }
        writeln!(out, "</section>")
    }

    fn tensor(&self, out: &mut dyn Write, at: usize, v: usize, doc: &TensorDoc) -> io::Result<()> {
        let symbol = safe(&doc.symbol);
        let place = safe(&doc.place());
        if doc.shape.is_empty() {
            let value = doc.shown(0, self.options.number);
            let id = self.id(at, v, 0);
            return writeln!(
                out,
                "<p><b>{symbol}</b> = <span id=\"c{id}\">{value}</span> <code class=\"place\">{place}</code></p>"
            );
        }
        writeln!(
            out,
            "<figure>\n<figcaption>{symbol} <code class=\"place\">{place} · {}</code></figcaption>",
            markup(&doc.shape_text())
        )?;
        let top = largest(doc);
        let made = tables(doc, self.options);
        for table in &made.tables {
            if !table.label.is_empty() {
                writeln!(out, "<p><code>{}</code></p>", markup(&table.label))?;
            }
            write!(out, "<table>\n<tr>{}", if table.has_rows { "<td></td>" } else { "" })?;
            for &column in &table.columns {
                write!(out, "<th scope=\"col\">{}</th>", markup(&table.column_label(column)))?;
            }
            writeln!(out, "</tr>")?;
            for &row in &table.rows {
                write!(out, "<tr>")?;
                if table.has_rows {
                    write!(out, "<th scope=\"row\">{}</th>", markup(&table.row_label(row)))?;
                }
                for &column in &table.columns {
                    let (Some(r), Some(c)) = (row, column) else {
                        write!(out, "<td>…</td>")?;
                        continue;
                    };
                    let flat = table.flat(r, c);
                    let colour = match colour(doc, flat, top) {
                        white if white == "#ffffff" => String::new(),
                        colour => format!(" style=\"background:{colour}\""),
                    };
                    let name = table.name(row, column).map(|n| format!("<small> {}</small>", markup(&n)));
                    let shown = table.cell(row, column, self.options) + &name.unwrap_or_default();
                    write!(out, "<td id=\"c{}\"{colour}>{shown}</td>", self.id(at, v, flat))?;
                }
                writeln!(out, "</tr>")?;
            }
            writeln!(out, "</table>")?;
        }
        if made.left_out > 0 {
            let text = |lang| markup(&Msg::new("export.blocks_left_out").arg("count", made.left_out).render(lang));
            writeln!(out, "{}", both("p", &text))?;
        }
        writeln!(out, "</figure>")
    }

    /// `17-0-3`: step, view, position.
    fn id(&self, at: usize, view: usize, flat: usize) -> String {
        format!("{}-{view}-{flat}", self.steps.list()[at].label())
    }

    /// The derivations of a view's cells, one a line; a cell that is only given has none.
    fn lines(&self, out: &mut String, at: usize, v: usize, view: &View) -> io::Result<()> {
        let trace = self.s.trace(view.run).map_err(|e| io::Error::other(e.clone()))?;
        let explainers = LANGS.map(|(lang, _)| Explainer::new(trace).speaking(lang));
        let style = Style { number: self.options.number, most_terms: 64 };
        let shape = view.shape();
        for flat in (0..shape.len()).filter(|flat| self.shown.contains(&(at, v, *flat))).take(MAX_LINES) {
            let index = shape.unflat(flat)[..shape.rank()].to_vec();
            let cell = view.cell(&index);
            let names = |c| self.s.cell_name(self.steps, view.run, c, at);
            let lines = explainers.each_ref().map(|e| e.line(&view.cell_name(&index), cell, &style, &names));
            if lines[0].cells().all(|c| c == cell) {
                continue;
            }
            let texts = lines.map(|line| self.linked(at, view.run, cell, &line));
            let text = both("span", &|lang| if lang == Lang::En { texts[0].clone() } else { texts[1].clone() });
            let text = if texts[0] == texts[1] { &texts[0] } else { &text };
            let _ = writeln!(out, "<div class=\"d\" id=\"d{}\">{text}</div>", self.id(at, v, flat));
        }
        Ok(())
    }

    /// A line whose numbers lead to the cells that show them.
    fn linked(&self, at: usize, run: usize, of: Cell, line: &Line) -> String {
        let mut out = String::new();
        for span in &line.spans {
            let text = markup(&escape(&span.text));
            let place = span.cell.filter(|c| *c != of).and_then(|c| self.steps.locate(run, c, at));
            let target = place.and_then(|p| {
                let view = &self.steps.list()[p.step].views[p.view];
                let flat = view.shape().flat(&p.index);
                self.shown.contains(&(p.step, p.view, flat)).then(|| self.id(p.step, p.view, flat))
            });
            match target {
                Some(id) => {
                    let _ = write!(out, "<a href=#c{id}>{text}</a>");
                }
                None => out.push_str(&text),
            }
        }
        out
    }
}

fn write_texts(out: &mut dyn Write, table: &super::doc::Table, class: &str) -> io::Result<()> {
    write!(out, "<figure class=\"{class}\"><table class=\"text\">\n<tr>")?;
    for heading in &table.columns {
        write!(out, "<th scope=\"col\">{}</th>", safe(heading))?;
    }
    writeln!(out, "</tr>")?;
    for row in &table.rows {
        write!(out, "<tr>")?;
        for (i, cell) in row.iter().enumerate() {
            let (open, close) = if i == 0 { ("<th scope=\"row\">", "</th>") } else { ("<td>", "</td>") };
            write!(out, "{open}{}{close}", safe(cell))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table></figure>")
}
