//! The debugger's state and how actions change it. Knows no terminal.
//!
//! An [`Input`](input::Input) becomes an [`Action`](action::Action) through the [keymap](keymap::Keymap); updating
//! with an action changes the state and returns [`Effect`](effect::Effect)s for what must be done outside.
//! [`Ui`](ui::Ui) is the part that knows nothing of traces.

pub mod action;
mod ahead;
pub mod answer;
#[allow(clippy::module_inception)]
pub mod app;
pub mod args;
pub mod breakpoints;
pub mod checks;
pub mod command;
pub mod commands;
pub mod config;
pub mod edit;
pub mod effect;
pub mod executor;
pub mod find;
pub mod grammar;
pub mod head_facts;
pub mod hint;
pub mod input;
pub mod jumps;
mod kept;
pub mod key;
pub mod keymap;
pub mod lens_table;
pub mod live;
pub mod measure;
pub mod medians;
pub mod messages;
pub mod motion;
pub mod navigator;
pub mod of_session;
pub mod overlay;
pub mod page;
pub mod play;
pub mod quiz;
mod record;
pub mod row_facts;
pub mod settings;
pub mod similar;
pub mod slot;
pub mod ui;
mod update;
pub mod view;
pub mod views;
pub mod what_if;

#[cfg(test)]
mod ui_tests;
