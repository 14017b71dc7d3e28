//! Expected documents of every format, reviewed by eye; and properties that must hold for any text.

use super::doc::{CellValues, DerivationDoc, StepDoc, TensorDoc};
use super::*;

fn labels(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&t| t.to_owned()).collect()
}

fn tensor(symbol: &str, shape: &[usize], values: CellValues) -> TensorDoc {
    TensorDoc {
        symbol: symbol.to_owned(),
        path: format!("encoder.0.{symbol}"),
        slice: String::new(),
        shape: shape.to_vec(),
        axes: ["head", "query", "key"][3 - shape.len()..].to_vec(),
        rows: Vec::new(),
        columns: Vec::new(),
        values,
        masked: false,
        sentences: Vec::new(),
        names: Vec::new(),
        blanks: std::collections::BTreeMap::new(),
        reference: None,
    }
}

/// A usual step: Chinese labels, masked scores, derivations.
fn usual() -> StepDoc {
    let words = labels(&["我", "爱", "water"]);
    StepDoc {
        scenario: "water_class".into(),
        run: "training".into(),
        step: vec![23],
        section: "5.10".into(),
        phase: "encoder.1".into(),
        title: "缩放后的注意力分数 score1".into(),
        formula: "score1 = Q1 · K1ᵀ / √2".into(),
        note: "除以 √d_k。\nSee *also* step 24.".into(),
        inputs: Vec::new(),
        tensors: vec![TensorDoc {
            path: "encoder.0.self_attn.scores".into(),
            slice: "head=0".into(),
            rows: words.clone(),
            columns: words,
            masked: true,
            ..tensor(
                "score1",
                &[3, 3],
                CellValues::F64(vec![
                    1.119_279_421_836,
                    -1e9,
                    -1e9 + 0.5,
                    2.075_015,
                    -0.000_01,
                    f64::NEG_INFINITY,
                    100.0,
                    f64::NAN,
                    f64::INFINITY,
                ]),
            )
        }],
        table: None,
        derivations: vec![
            DerivationDoc {
                symbol: "score1".into(),
                index: vec![0, 0],
                text: "score1[0][0] = (1.5829)/1.4142 = 1.1193".into(),
                value: 1.119_279_421_836,
            },
            DerivationDoc {
                symbol: "score1".into(),
                index: vec![0, 1],
                text: "score1[0][1] = (0.0558)/1.4142 + (-1e9) ≈ -∞".into(),
                value: -1e9,
            },
        ],
        derivations_left_out: 7,
    }
}

/// Everything unusual: control characters, markup, formulas, no elements, scalars, three axes, f32, masks, ids.
fn awkward() -> StepDoc {
    let hostile = labels(&["=1+1", "a|b\x1b[31m", "<b>&\"'", "[PAD]_#%$~^{}\\", "-\n\t\u{202e}x"]);
    let mut cube =
        tensor("cube", &[2, 2, 2], CellValues::F32(vec![0.1, -0.0, 1e-7, -2.5, 16_777_216.0, 3.0, f32::MIN, 0.3]));
    cube.rows = labels(&["你好", "b"]);
    let mut line = tensor("row", &[5], CellValues::Int(vec![-5, 0, 42, i64::MAX, 7]));
    line.columns = hostile;
    StepDoc {
        scenario: "@evil`".into(),
        run: "run".into(),
        step: vec![40, 1],
        section: String::new(),
        phase: "a_b".into(),
        title: "# title | with <tags> & \x07\u{9b}2J".into(),
        formula: String::new(),
        note: String::new(),
        inputs: Vec::new(),
        tensors: vec![
            cube,
            line,
            tensor("loss", &[], CellValues::F64(vec![1.432_5])),
            tensor("none", &[0, 3], CellValues::F64(Vec::new())),
            tensor("mask", &[1, 2], CellValues::Bool(vec![true, false])),
        ],
        table: None,
        derivations: vec![DerivationDoc {
            symbol: "loss".into(),
            index: Vec::new(),
            text: "loss = -ln(0.2387) = 1.4325 ``` </pre>".into(),
            value: f64::NEG_INFINITY,
        }],
        derivations_left_out: 0,
    }
}

fn written(format: Format, steps: &[StepDoc], options: &Options) -> String {
    let mut out = Vec::new();
    write(format, steps, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn several(lang: Lang) -> Options {
    Options { lang, array: true, ..Options::default() }
}

#[test]
fn documents() {
    for format in Format::ALL.iter().copied().filter(|f| !matches!(f, Format::Typst | Format::Ipynb)) {
        let text = written(format, &[usual(), awkward()], &several(Lang::Zh));
        insta::assert_snapshot!(format.name(), text);
    }
}

#[test]
fn a_notebook_is_one_markdown_cell_a_step() {
    let text = written(Format::Ipynb, &[usual(), awkward()], &several(Lang::En));
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&notebook["nbformat"], notebook["cells"].as_array().map(Vec::len)), (&4.into(), Some(2)));
    let lines = notebook["cells"][0]["source"].as_array().unwrap();
    let whole: String = lines.iter().map(|l| l.as_str().unwrap()).collect();
    assert_eq!(whole, written(Format::Markdown, &[usual()], &several(Lang::En)));
}

#[test]
fn typst_and_latex_are_parts_unless_they_stand_alone() {
    let part = Options { standalone: false, ..several(Lang::En) };
    let typst = written(Format::Typst, &[awkward()], &part);
    assert!(typst.starts_with("\n== ") && !typst.contains("#set page"), "{typst}");
    assert!(typst.contains("\\# title | with \\<tags\\> &"), "{typst}");
    assert!(written(Format::Typst, &[awkward()], &several(Lang::En)).starts_with("#set page"));
    let latex = written(Format::Latex, &[usual()], &part);
    assert!(latex.contains("\\providecommand") && !latex.contains("\\begin{document}"), "{latex}");
}

#[test]
fn one_step_is_one_json_object() {
    let text = written(Format::Json, &[usual()], &Options::default());
    assert!(text.starts_with("{\"scenario\":\"water_class\",\"run\":\"training\",\"step\":23,"));
    assert!(text.ends_with("}\n") && text.lines().count() == 1);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let values = &value["tensors"][0]["values"];
    assert_eq!(values[0][0].as_f64(), Some(1.119_279_421_836));
    assert_eq!(values[0][1].as_f64(), Some(-1e9));
    assert_eq!(values[1][2], "-inf");
    assert_eq!(values[2][1], "nan");
    assert_eq!(values[2][2], "inf");
    assert_eq!(value["derivations_left_out"], 7);
    let keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys[..],
        [
            "scenario",
            "run",
            "step",
            "section",
            "phase",
            "title",
            "formula",
            "note",
            "tensors",
            "derivations",
            "derivations_left_out"
        ]
    );
}

#[test]
fn json_nests_by_shape() {
    let text = written(Format::Json, &[awkward()], &several(Lang::En));
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let step = &all[0];
    assert_eq!(step["step"], "40.1");
    let values = |i: usize| step["tensors"][i]["values"].to_string();
    assert_eq!(values(0), "[[[0.1,-0.0],[1e-7,-2.5]],[[16777216.0,3.0],[-3.4028235e+38,0.3]]]");
    assert_eq!(values(2), "1.4325");
    assert_eq!(values(3), "[]");
    assert_eq!(values(4), "[[true,false]]");
    assert_eq!(step["derivations"][0]["value"], "-inf");
    // Escaped on the way, whole at the end.
    assert_eq!(step["title"], "# title | with <tags> & \x07\u{9b}2J");
    assert_eq!(step["tensors"][1]["columns"][4], "-\n\t\u{202e}x");
    assert_eq!(written(Format::Json, &[], &several(Lang::En)), "[]\n");
}

#[test]
fn csv_reads_back_and_holds_every_cell() {
    let large: Vec<f64> = (0..5_000).map(|i| f64::from(i) / 7.0).collect();
    let doc = StepDoc { tensors: vec![tensor("big", &[100, 50], CellValues::F64(large.clone()))], ..usual() };
    for (format, delimiter) in [(Format::Csv, b','), (Format::Tsv, b'\t')] {
        let text = written(format, std::slice::from_ref(&doc), &Options::default());
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
        let read: Vec<f64> = reader.records().map(|r| r.unwrap()[12].parse().unwrap()).collect();
        assert_eq!(read, large);
        // Names once a tensor, or in every row.
        let named = |options: &Options| {
            let text = written(format, std::slice::from_ref(&doc), options);
            let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
            reader.records().filter(|r| !r.as_ref().unwrap()[7].is_empty()).count()
        };
        assert_eq!(named(&Options::default()), 1);
        assert_eq!(named(&Options { repeat_names: true, ..Options::default() }), 5_000);
    }
}

#[test]
fn steps_made_side_by_side_are_the_same_document() {
    let docs = [awkward(), usual(), awkward(), usual(), usual()];
    for &format in Format::ALL {
        let options = several(Lang::En);
        let mut writer = Writer::begin(format, &options, Vec::new()).expect("begins");
        writer.each(&docs, |doc| Ok(doc.clone())).expect("writes");
        let together = writer.end().expect("ends");
        assert!(together == written(format, &docs, &options).into_bytes(), "{}", format.name());
        let mut failing = Writer::begin(format, &options, Vec::new()).expect("begins");
        assert!(failing.each(&[1, 2], |_| Err(io::Error::other("no"))).is_err());
    }
}

#[test]
fn large_tensors_are_shortened_for_people() {
    let cells = 100 * 50;
    let doc = StepDoc {
        tensors: vec![tensor("big", &[20, 100, 50], CellValues::Int((0..20 * cells).collect()))],
        table: None,
        derivations: Vec::new(),
        derivations_left_out: 0,
        ..usual()
    };
    let options = Options { max_rows: 3, max_columns: 3, max_blocks: 1, ..Options::default() };
    let text = written(Format::Text, std::slice::from_ref(&doc), &options);
    assert!(
        text.contains(
            "\
big  encoder.0.big  head 20 × query 100 × key 50
big[head=0]
         0     1  …    49
  0      0     1  …    49
  1     50    51  …    99
  …      …     …  …     …
  99  4950  4951  …  4999
  … and 19 more tables
"
        ),
        "{text}"
    );
    for format in [Format::Markdown, Format::Latex, Format::Html] {
        assert!(written(format, std::slice::from_ref(&doc), &options).len() < 4_000);
    }
}

#[test]
fn people_see_no_control_characters() {
    for &format in Format::ALL {
        let text = written(format, &[awkward(), usual()], &several(Lang::En));
        let bad = text.chars().find(|&c| c != '\n' && !(c == '\t' && format == Format::Tsv) && c.is_control());
        assert_eq!(bad, None, "{}", format.name());
        assert!(!text.contains(['\u{202e}', '\u{9b}']), "{}", format.name());
    }
}

#[test]
fn values_must_fill_the_shape() {
    let doc = StepDoc { tensors: vec![tensor("short", &[2, 2], CellValues::F64(vec![1.0]))], ..usual() };
    for &format in Format::ALL {
        let error = write(format, std::slice::from_ref(&doc), &Options::default(), &mut io::sink());
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn formats_by_name_and_path() {
    for &format in Format::ALL {
        assert_eq!(Format::parse(format.name()), Ok(format));
        let path = format!("a.{}", format.extension());
        assert_eq!(Format::of_path(Path::new(&path)), Some(format));
    }
    assert!(Format::parse("xls").is_err());
    assert_eq!(Format::of_path(Path::new("a")), None);
}
