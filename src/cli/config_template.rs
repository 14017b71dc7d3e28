//! `config-template`: a configuration file with every setting and its default.

/// Arguments: none.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Args {}
