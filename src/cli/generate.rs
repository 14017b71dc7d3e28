//! `generate`: tokens from a prefix.

use std::path::PathBuf;

use super::value;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// The run whose model and source are used; the scenario's first inference run unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Text to go on from.
    #[arg(long, value_name = "TEXT", conflicts_with = "prefix_ids")]
    pub prompt: Option<String>,
    /// Token ids to go on from.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub prefix_ids: Vec<u32>,
    /// At most so many new tokens.
    #[arg(long, value_name = "N", default_value = "20", value_parser = value::count)]
    pub max_new: usize,
    /// The most probable token each time.
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "beams"])]
    pub greedy: bool,
    /// Sample at this temperature.
    #[arg(long, value_name = "T", value_parser = value::positive, conflicts_with = "beams")]
    pub temperature: Option<f64>,
    /// Sample among the K most probable.
    #[arg(long, value_name = "K", value_parser = value::count, conflicts_with = "beams")]
    pub top_k: Option<usize>,
    /// Sample among the most probable that hold P of the probability.
    #[arg(long, value_name = "P", value_parser = value::probability, conflicts_with = "beams")]
    pub top_p: Option<f64>,
    /// Seed of the drawing.
    #[arg(long, value_name = "S", default_value = "0")]
    pub seed: u64,
    /// Beam search with so many beams.
    #[arg(long, value_name = "B", value_parser = value::count)]
    pub beams: Option<usize>,
    /// Keep keys and values of earlier positions.
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub kv_cache: value::Switch,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Whether tokens are drawn at random.
    pub fn samples(&self) -> bool {
        self.temperature.is_some() || self.top_k.is_some() || self.top_p.is_some()
    }
}
