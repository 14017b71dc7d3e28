use super::*;

const TEXT: &str = r##"// (comment: "with ) brackets")
Scenario(
  name: "a \" ) b", /* nested /* ] */ */
  vocabulary: Words(["我", "爱)", r#"raw " ]"#, "水"]),
  model: (encoder: Some((layers: [(repeat: 2), (kv_heads: 3)]))),
  weights: (values: {"embed.weight": OutIn([[1, 2],
     [3, -4.5]]), "b": Vector([0.5])}),
  runs: [Inference(decode: Greedy(from: Text("我"), max_new: 0)), Training(optimiser: (betas: (0.9, 0.99)))],
  walkthrough: [(number: 1, views: [Of("Q", "p"), Symbol("K")])],
)"##;

fn at(path: &str) -> Option<(&'static str, bool)> {
    find(TEXT, path).map(|(i, whole)| (&TEXT[i..], whole))
}

#[test]
fn every_kind_of_path_is_found() {
    for (path, text) in [
        ("name", "name:"),
        ("vocabulary[1]", "\"爱)\""),
        ("vocabulary[3]", "\"水\""),
        ("model.encoder.layers[1].kv_heads", "kv_heads: 3"),
        ("weights.values.\"embed.weight\"", "\"embed.weight\": OutIn"),
        ("weights.values.\"embed.weight\"[1][1]", "-4.5"),
        ("weights.values.\"b\"[0]", "0.5"),
        ("weights.values.b[0]", "0.5"),
        ("runs[0].decode.max_new", "max_new: 0"),
        ("runs[0].decode.from", "from: Text"),
        ("runs[1].optimiser.betas[1]", "0.99"),
        ("walkthrough[0].views[1]", "Symbol"),
        ("walkthrough[0].views[0][1]", "\"p\""),
    ] {
        let (found, whole) = at(path).expect(path);
        assert!(found.starts_with(text) && whole, "{path}: {found:.20}");
    }
}

#[test]
fn what_is_not_written_is_found_as_near_as_it_goes() {
    let (found, whole) = at("model.attention.window").expect("near");
    assert!(found.starts_with("model:") && !whole);
    let (found, whole) = at("model.encoder.layers[0].d_k").expect("near");
    assert!(found.starts_with("(repeat: 2)") && !whole);
    assert!(find("", "a.b").is_none() && find("((((", "a[3]").is_none());
    assert!(at("nothing").is_none());
}

#[test]
fn paths_are_written_and_read_back() {
    for p in
        ["model.encoder.layers[1].kv_heads", "weights.values.\"embed.weight\"[0][3]", "symbols.\"Q\"1\".slice", "a"]
    {
        assert_eq!(path(&segments(p)), p);
    }
}

#[test]
fn lines_and_columns_count_characters_also_with_carriage_returns() {
    let text = "我爱\r\n水x\r\n";
    let at = text.find('x').expect("x");
    assert_eq!(line_column(text, at), (2, 2));
    assert_eq!(byte_at(text, (2, 2)), at);
    assert_eq!(line_column(text, 999), (3, 1));
    assert_eq!(byte_at(text, (9, 9)), text.len());
}

#[test]
fn depth_is_counted_without_strings_and_comments() {
    assert_eq!(too_deep("([\"(((\" /* (( */ // ((\n", 2), None);
    assert_eq!(too_deep("([{", 2), Some(2));
    assert_eq!(open_at("(a: [1, 2, b: (3)", 17), Some(4));
    assert_eq!(open_at("(a: [1])", 99), None);
}
