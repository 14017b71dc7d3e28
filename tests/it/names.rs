//! The typed names of nodes: printing and parsing are inverses, and the builder gives what parsing would.

use std::path::Path;

use proptest::prelude::*;
use tui_transformer::program::{Block, Name, Pass, Program, Role, Side, Site, Stack, Step};
use tui_transformer::scenario::{EMBEDDED, load};
use tui_transformer::session::{Options, open};

fn holds(what: &str, program: &Program) {
    for (_, node) in program.nodes() {
        assert_eq!(node.name.to_string(), *node.path, "{what}");
        assert_eq!(Name::parse(&node.path), node.name, "{what}: {}", node.path);
    }
    for (_, scope) in program.scopes() {
        assert_eq!(scope.name.to_string(), *scope.path, "{what}");
        assert_eq!(Name::parse(&scope.path), scope.name, "{what}: {}", scope.path);
    }
}

#[test]
fn every_name_of_the_embedded_scenarios_is_the_parse_of_its_path() {
    for (name, _) in EMBEDDED {
        let loaded = load(Path::new(name)).expect("embedded");
        let session = open(loaded.scenario, None, Options::default()).unwrap_or_else(|p| panic!("{name}: {p:?}"));
        for run in &session.runs {
            holds(&format!("{name} {}", run.name), &run.program);
        }
    }
}

#[test]
fn paths_say_what_their_nodes_are() {
    let name = Name::parse("gen.3.decoder.0.cross_attn.k.weight");
    assert_eq!((name.call, name.site), (Some(3), Site::Layer(Stack::Decoder, 0, Block::CrossAttention)));
    assert_eq!((&name.role, name.last()), (&Role::Key, &Role::Weight));
    assert_eq!(name.outer(), Some(Name::parse("gen.3.decoder.0.cross_attn.k")));

    let name = Name::parse("grad.decoder.0.norm2.out.from.decoder.0.ffn.hidden.product.term");
    let Pass::Gradient(gradient) = &name.pass else { panic!("{name:?}") };
    assert_eq!(name.role, Role::Out);
    assert_eq!(name.last(), &Role::Step(Step::Term));
    let reader = gradient.from.as_ref().map(|reader| (reader.site, reader.role.clone()));
    assert_eq!(reader, Some((Site::Layer(Stack::Decoder, 0, Block::FeedForward), Role::Hidden)));
    assert_eq!(name.gradient_of(), Some(Name::parse("decoder.0.norm2.out")));

    let name = Name::parse("update.encoder.0.self_attn.v.weight.v");
    assert_eq!((&name.pass, &name.role, name.last()), (&Pass::Update, &Role::Value, &Role::SecondMoment));
    assert_eq!(Name::parse("embed.weight").site, Site::Embedding(None));
    assert_eq!(Name::parse("embed.source.norm.gamma").site, Site::EmbeddingNorm(Side::Source));
    // A name of somebody else's model is kept as it is.
    let theirs = Name::parse("model.layers.0.self_attn.q_proj.weight");
    assert_eq!((theirs.site, theirs.last()), (Site::Root, &Role::Weight));
}

proptest! {
    /// Any text prints as it was, and what it prints reads back as the same name.
    #[test]
    fn any_text_is_a_path(parts in prop::collection::vec(
        prop_oneof![
            Just("grad"), Just("update"), Just("gen"), Just("from"), Just("encoder"), Just("decoder"), Just("embed"),
            Just("source"), Just("norm"), Just("norm1"), Just("norm01"), Just("0"), Just("7"), Just("007"),
            Just("self_attn"), Just("experts"), Just("tiles"), Just("post_norm1"), Just("q"), Just("v"), Just("weight"), Just("sum_2"), Just("sum_1"),
            Just("residual2"), Just("residual"), Just("sublayer9_dropped"), Just("cache"), Just("rotary"), Just(""),
            Just("层"), Just("loss"), Just("4294967296"),
        ],
        0..9,
    )) {
        let path = parts.join(".");
        let name = Name::parse(&path);
        prop_assert_eq!(name.to_string(), path.clone());
        prop_assert_eq!(Name::parse(&name.to_string()), name);
    }
}

/// What a command prints, and its exit code.
fn printed(args: &[&str]) -> (String, Option<i32>) {
    let command = Path::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let out = std::process::Command::new(command).args(args).output().expect("runs");
    (String::from_utf8(out.stdout).expect("UTF-8"), out.status.code())
}

/// `PE` is the whole table of positions at every step, also where a step shows one row of it.
#[test]
fn a_symbol_of_the_scenario_is_the_same_at_every_step() {
    let sum = "print max(abs(X_enc_in - X_src - PE))";
    let (text, code) = printed(&["--lang", "en", "play", "water_class", "-e", sum, "-e", "step 9", "-e", sum]);
    assert_eq!((text.matches("- PE)) = 0\n").count(), code), (2, Some(0)), "{text}");
    // Row 1, column 0 is sin(1/1), and is called so at the step that shows that row only.
    assert!(text.contains("PE[1][0] = sin(1/1) = 0.8415"), "{text}");
    let (text, _) = printed(&["--lang", "en", "play", "water_class", "-e", "step 1", "-e", "go PE[3,1]"]);
    assert!(text.contains("PE[3][1] = cos(3/1) = -0.99"), "{text}");
}

#[test]
fn a_step_that_is_not_there_is_an_error_everywhere() {
    for args in [["snapshot", "water_class", "--step", "99"], ["play", "water_class", "--step", "96"]] {
        assert_eq!(printed(&args).1, Some(2), "{args:?}");
    }
}
