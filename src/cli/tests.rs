use clap::error::ErrorKind;

use super::args::{self, Cli, NAME};
use super::*;
use crate::export::{Format, select::Selection};
use crate::text::{NumberFormat, catalogue};

fn parse(line: &str, lang: Lang) -> Result<Cli, clap::Error> {
    let words: Vec<&str> = line.split(' ').collect();
    args::parse(&words, lang)
}

/// One command of arguments alone, whether it is offered yet or not.
fn parse_args<A: clap::Args + clap::FromArgMatches>(line: &str) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new(NAME));
    A::from_arg_matches(&command.try_get_matches_from(line.split(' '))?)
}

fn all_commands() -> Vec<(&'static str, clap::Command)> {
    fn of<A: clap::Args>() -> clap::Command {
        A::augment_args(clap::Command::new(NAME)).version("0").disable_help_flag(true).disable_version_flag(true)
    }
    vec![
        ("open", of::<open::Args>()),
        ("global", of::<super::global::Global>()),
        ("steps", of::<steps::Args>()),
        ("export", of::<export::Args>()),
        ("check", of::<check::Args>()),
        ("generate", of::<generate::Args>()),
        ("play", of::<play::Args>()),
        ("train", of::<train::Args>()),
        ("compare", of::<compare::Args>()),
        ("snapshot", of::<snapshot::Args>()),
        ("completions", of::<completions::Args>()),
        ("config_template", of::<config_template::Args>()),
        ("man", of::<man::Args>()),
        ("help", of::<help::Args>()),
        ("new", of::<super::new::Args>()),
        ("worksheet", of::<super::worksheet::Args>()),
    ]
}

#[test]
fn every_argument_has_a_text() {
    let mut wanted = std::collections::BTreeSet::new();
    for (scope, command) in all_commands() {
        command.clone().debug_assert();
        for arg in command.get_arguments() {
            wanted.insert(localise::key(scope, arg));
        }
        if scope != "open" && scope != "global" {
            wanted.insert(format!("cli.{scope}.about"));
        }
    }
    for key in &wanted {
        assert!(catalogue::has(key), "no text `{key}` in assets/i18n");
    }
    // And no text is left over from an argument that is gone.
    for key in catalogue::keys() {
        let scope = key.strip_prefix("cli.").and_then(|k| k.split_once('.'));
        let ours =
            scope.is_some_and(|(s, arg)| all_commands().iter().any(|(name, _)| *name == s) && !arg.contains('.'));
        assert!(!ours || wanted.contains(key), "`{key}` belongs to no argument");
    }
}

#[test]
fn commands_are_well_formed_in_both_languages() {
    for lang in [Lang::En, Lang::Zh] {
        args::command(lang).debug_assert();
        for command in args::command(lang).get_subcommands() {
            let about = command.get_about().map(ToString::to_string);
            let name = command.get_name().replace('-', "_");
            assert_eq!(about.as_deref(), Some(tr(lang, &format!("cli.{name}.about"))));
        }
    }
}

#[test]
fn help_is_in_the_readers_language() {
    for (lang, name) in [(Lang::En, "help_en"), (Lang::Zh, "help_zh")] {
        let help = args::command(lang).term_width(100).render_help().to_string();
        insta::assert_snapshot!(name, help);
        for command in ["steps", "export", "check", "compare", "record", "tensors", "tokenize", "new", "worksheet"] {
            assert!(help.contains(command), "{help}");
        }
        assert!(help.contains(tr(lang, "cli.heading.commands")), "{help}");
    }
    let zh = help::find(args::command(Lang::Zh), Some("completions")).unwrap().render_help();
    let zh = zh.to_string();
    assert!(zh.contains("用法： tui-transformer completions [选项] <SHELL>"), "{zh}");
    assert!(!zh.contains("Options") && !zh.contains("possible values"), "{zh}");
}

#[test]
fn options_stand_before_or_after_the_command() {
    for line in ["tt --lang zh --digits 6 completions bash", "tt completions bash --digits 6 --lang zh"] {
        let cli = parse(line, Lang::En).unwrap();
        assert_eq!(cli.global.lang(), Some(Lang::Zh));
        assert_eq!(cli.global.number(), Some(NumberFormat::Decimals(6)));
        assert!(!cli.open.is_given());
    }
    let cli = parse("tt my.ron --run training --step 40.1 --precision f32", Lang::En).unwrap();
    assert!(cli.command.is_none() && cli.open.is_given());
    assert_eq!(cli.open.scenario(), std::path::PathBuf::from("my.ron"));
    assert_eq!(cli.open.step, Some(Selection::One(vec![40, 1])));
    assert_eq!(cli.global.precision(), Some(crate::tensor::Precision::F32));
    let cli = parse("tt", Lang::En).unwrap();
    assert_eq!(cli.open.scenario(), std::path::PathBuf::from("water_class"));
    assert!(parse("tt -", Lang::En).unwrap().open.is_given());
}

#[test]
fn a_scenario_before_a_command_is_refused() {
    let cli = parse("tt water_class man", Lang::En).unwrap();
    assert!(matches!(run(&cli, Lang::En), Err(Failure::User(Msg { key: "cli.open_and_command", .. }))));
}

#[test]
fn usage_errors_in_both_languages() {
    let reported = |line: &str, lang| usage::text(&parse(line, lang).unwrap_err(), lang);
    assert_eq!(reported("tt --step 9..5", Lang::Zh), "错误： --step <N>：范围 9..5 的起点大于终点\n详见 `--help`。");
    for (line, en, zh) in [
        ("tt --digits 18", "`18` is not a number of decimals from 0 to 17", "“18”不是 0 到 17 之间的小数位数"),
        ("tt --color red", "it takes auto, always, never", "可选值：auto, always, never"),
        ("tt --thme x", "Did you mean --theme?", "是否想写 --theme？"),
        ("tt completions", "missing: <SHELL>", "缺少参数：<SHELL>"),
        ("tt --theme", "--theme <NAME> needs a value", "--theme <NAME> 需要一个值"),
        ("tt --theme a --theme b", "is given twice", "重复给出"),
        ("tt --digits 4 --number-format hex", "cannot be used together", "不能同时使用"),
    ] {
        let (got_en, got_zh) = (reported(line, Lang::En), reported(line, Lang::Zh));
        assert!(got_en.contains(en), "{line}: {got_en}");
        assert!(got_zh.contains(zh), "{line}: {got_zh}");
    }
    // What was typed cannot speak to the terminal.
    assert!(!reported("tt --color \x1b[31m", Lang::En).contains('\x1b'));
}

#[test]
fn export_arguments() {
    let a: export::Args = parse_args("tt water_class --step 23 --format json").unwrap();
    assert_eq!((a.step.as_ref().is_some_and(Selection::is_several), a.format()), (false, Format::Json));
    assert_eq!(a.derivations.limit(), 20_000);
    let a: export::Args = parse_args("tt - --step 5..9 -o a.tex --derivations all").unwrap();
    assert_eq!((a.format(), a.derivations.limit()), (Format::Latex, usize::MAX));
    let a: export::Args = parse_args("tt x --step all -o - --derivations none").unwrap();
    assert_eq!(a.target(), crate::export::file::Target::Stdout);
    assert_eq!(a.derivations.limit(), 0);
    assert_eq!(parse_args::<export::Args>("tt x").unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
}

#[test]
fn the_other_arguments() {
    let g: generate::Args = parse_args("tt x --prefix-ids 4,5 --top-k 3 --kv-cache off").unwrap();
    assert_eq!((&g.prefix_ids[..], g.samples()), (&[4, 5][..], true));
    assert_eq!(g.kv_cache, Some(value::Switch::Off));
    for bad in ["--greedy --top-k 3", "--prompt a --prefix-ids 1", "--top-p 1.5", "--temperature nan", "--max-new 0"] {
        assert!(parse_args::<generate::Args>(&format!("tt x {bad}")).is_err(), "{bad}");
    }
    let t: train::Args = parse_args("tt x --optimizer adamw --lr 1e-3 --momentum 0 --steps 200").unwrap();
    assert_eq!((t.optimizer, t.steps), (Some(train::OptimizerName::Adamw), Some(200)));
    for bad in ["--lr x", "--lr inf", "--optimizer lion", "--steps 0"] {
        assert!(parse_args::<train::Args>(&format!("tt x {bad}")).is_err(), "{bad}");
    }
    let c: compare::Args = parse_args("tt a b.npz --rtol 0").unwrap();
    assert_eq!((c.mode, c.rtol), (compare::ModeName::Isolated, Some(0.0)));
    let s: snapshot::Args = parse_args("tt a --size 80x24 --step 3").unwrap();
    assert_eq!(s.size, value::Size { columns: 80, rows: 24 });
    for bad in ["80", "80x", "x24", "-1x5", "2000x10"] {
        assert!(parse_args::<snapshot::Args>(&format!("tt a --size={bad}")).is_err(), "{bad}");
    }
    let s: steps::Args = parse_args("tt a --detail grouped --expand --json").unwrap();
    assert!(s.expand && s.json && s.detail == Some(value::DetailName::Grouped));
    let c: check::Args = parse_args("tt a --run training").unwrap();
    assert_eq!((c.run.as_deref(), c.json), (Some("training"), false));
}

#[test]
fn completions_and_manual_pages_generate() {
    for lang in [Lang::En, Lang::Zh] {
        for shell in <clap_complete::Shell as clap::ValueEnum>::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut args::command(lang), NAME, &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["number-format", "completions"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
        for name in [None, Some("man"), Some("completions")] {
            let mut page = Vec::new();
            let command = help::find(args::command(lang), name).unwrap();
            clap_mangen::Man::new(command).render(&mut page).unwrap();
            let page = String::from_utf8(page).unwrap();
            assert!(page.contains(".TH ") && page.contains("\\-\\-lang"), "{name:?}");
        }
    }
    assert!(help::find(args::command(Lang::En), Some("missing")).is_err());
}
