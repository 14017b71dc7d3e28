//! `compare`: the first step that differs from a reference.

use std::path::PathBuf;

use clap::ValueEnum;

use super::value;

/// What a step is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// The reference's operands: the first difference is the cause.
    #[default]
    Isolated,
    /// Our own operands.
    Cumulative,
}

/// Whose measure of closeness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// RMS and largest difference, relative to the tensor.
    #[default]
    Ours,
    /// As `torch.testing.assert_close`.
    Torch,
    /// As `numpy.testing.assert_allclose`.
    Numpy,
}

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A scenario.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// A scenario, or a file of reference activations (safetensors, npz).
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// What a step is computed from.
    #[arg(long, value_name = "MODE", default_value = "isolated")]
    pub mode: ModeName,
    /// Largest relative difference; as the policy says unless given.
    #[arg(long, value_name = "R", value_parser = value::not_negative)]
    pub rtol: Option<f64>,
    /// Largest absolute difference; as the policy says unless given.
    #[arg(long, value_name = "A", value_parser = value::not_negative)]
    pub atol: Option<f64>,
    /// Whose measure of closeness.
    #[arg(long, value_name = "POLICY", default_value = "ours")]
    pub policy: PolicyName,
    /// A file that maps the reference's names to paths.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
