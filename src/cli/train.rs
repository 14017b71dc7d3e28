//! `train`: updates of the weights.

use std::path::PathBuf;

use clap::ValueEnum;

use super::value;

/// An optimiser by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OptimizerName {
    /// Stochastic gradient descent, with momentum where it is given.
    Sgd,
    /// Adam.
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
}

/// Arguments. What is not given is as in the scenario.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// The training run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Optimiser.
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<OptimizerName>,
    /// Learning rate.
    #[arg(long, value_name = "X", value_parser = value::positive)]
    pub lr: Option<f64>,
    /// Momentum of SGD.
    #[arg(long, value_name = "M", value_parser = value::fraction)]
    pub momentum: Option<f64>,
    /// Weight decay.
    #[arg(long, value_name = "W", value_parser = value::not_negative)]
    pub weight_decay: Option<f64>,
    /// Gradients are scaled down to this norm.
    #[arg(long, value_name = "NORM", value_parser = value::positive)]
    pub clip: Option<f64>,
    /// Updates over which the learning rate rises from 0.
    #[arg(long, value_name = "N")]
    pub warmup: Option<usize>,
    /// Number of updates.
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub steps: Option<usize>,
    /// Sequences an update.
    #[arg(long, value_name = "B", value_parser = value::count)]
    pub batch: Option<usize>,
    /// Seed of the weights, batches and dropout.
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Where the trained weights go.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Weights to go on from.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
