//! Texts of the command line from the catalogue.
//!
//! The key of an argument is `cli.<command>.<argument>`; those of the debugger itself are `cli.open.…`, those
//! of every command `cli.global.…`. What clap would say in English (headings, defaults, possible values) is
//! said in the reader's language.

use clap::{Arg, Command};

use crate::text::catalogue::find;
use crate::text::{Lang, Msg, tr};

/// `root` with all its texts in `lang`.
pub(super) fn localise(root: Command, lang: Lang) -> Command {
    let about = tr(lang, "cli.about");
    let root = texts(root, lang, "open")
        .about(about)
        .long_about(None::<&'static str>)
        .after_help(tr(lang, "cli.after_help"))
        .subcommand_help_heading(tr(lang, "cli.heading.commands"))
        .subcommand_value_name(tr(lang, "cli.value_name.command"))
        .disable_help_subcommand(true);
    let mut root = root.mut_subcommands(|command| {
        let scope = command.get_name().replace('-', "_");
        let about = tr(lang, &format!("cli.{scope}.about"));
        let command = texts(command, lang, &scope).about(about).long_about(None::<&'static str>);
        match find(&format!("cli.{scope}.after.help")) {
            Some(key) => command.after_help(tr(lang, key)),
            None if scope == "play" => command.after_help(grammar(lang)),
            None => command,
        }
    });
    // Usage lines are known once the commands know their parents.
    root.build();
    usage(root, lang).mut_subcommands(|command| usage(command, lang))
}

/// How the expressions and breakpoints in commands are written.
fn grammar(lang: Lang) -> String {
    let mut text = format!("{}:", crate::debug::grammar::title().render(lang));
    for line in crate::debug::grammar::lines() {
        text.push_str("\n  ");
        text.push_str(&line.render(lang));
    }
    text
}

fn texts(command: Command, lang: Lang, scope: &str) -> Command {
    command.mut_args(|arg| {
        let heading = if arg.get_id().as_str().starts_with("input_") {
            "cli.heading.inputs"
        } else if is_global(&arg) {
            "cli.heading.global"
        } else if arg.is_positional() {
            "cli.heading.arguments"
        } else {
            "cli.heading.options"
        };
        let help = help(&arg, lang, &key(scope, &arg));
        let takes_values = arg.get_action().takes_values();
        let arg = arg.help(help).long_help(None::<&'static str>).help_heading(tr(lang, heading));
        if takes_values {
            // A negative number is a value that is out of range, not an unknown option.
            arg.hide_possible_values(true).hide_default_value(true).allow_negative_numbers(true)
        } else {
            arg
        }
    })
}

/// Options of every command, and `--version`, which stands among them.
fn is_global(arg: &Arg) -> bool {
    arg.is_global_set() || arg.get_id() == "version"
}

/// Key of an argument's help.
pub(super) fn key(scope: &str, arg: &Arg) -> String {
    let id = arg.get_id().as_str();
    match id.strip_prefix("input_") {
        // The inputs of a checkpoint are the same for every command.
        Some(id) => format!("cli.inputs.{id}"),
        None if is_global(arg) => format!("cli.global.{id}"),
        None => format!("cli.{scope}.{id}"),
    }
}

/// The text, then the possible values and the default.
fn help(arg: &Arg, lang: Lang, key: &str) -> String {
    let mut help = tr(lang, key).to_owned();
    if arg.get_action().takes_values() {
        let values: Vec<String> = arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect();
        if !values.is_empty() {
            let text = Msg::new("cli.possible_values").arg("values", values.join(", "));
            help.push_str(&text.render(lang));
        }
        let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
        if !defaults.is_empty() {
            let text = Msg::new("cli.default").arg("value", defaults.join(", "));
            help.push_str(&text.render(lang));
        }
    }
    help
}

fn usage(mut command: Command, lang: Lang) -> Command {
    let usage = command.render_usage().to_string();
    let line = usage.trim_start_matches("Usage:").trim().replace("[OPTIONS]", tr(lang, "cli.value_name.options"));
    let template =
        format!("{{about-with-newline}}\n{} {{usage}}\n\n{{all-args}}{{after-help}}", tr(lang, "cli.heading.usage"));
    command.override_usage(line).help_template(template)
}
