//! Numbered steps, and the values that runs must reproduce.

use serde::{Deserialize, Serialize};

use super::Text;
use crate::scenario::numbers::Numbers;
use crate::tensor::Precision;

/// A tensor or a slice of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Path.
    pub path: String,
    /// Slice, such as `head=0`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub slice: String,
    /// Run, where it is not the step's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A numbered step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Number.
    pub number: u32,
    /// Section, such as `5.10`.
    #[serde(default)]
    pub section: String,
    /// Phase, such as `encoder.1`.
    #[serde(default)]
    pub phase: String,
    /// Run; the first one unless given.
    #[serde(default)]
    pub run: Option<String>,
    /// Title.
    pub title: Text,
    /// Note.
    #[serde(default)]
    pub note: Text,
    /// Formula; written from the program unless given.
    #[serde(default)]
    pub formula: String,
    /// Tensors, in reading order.
    #[serde(default)]
    pub views: Vec<ViewSpec>,
}

/// A tensor of a step: a symbol of the scenario, or one of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum ViewSpec {
    /// A symbol of the scenario's list.
    Symbol(String),
    /// Symbol, path.
    Of(String, String),
    /// Symbol, path, slice.
    Part(String, String, String),
}

/// Values that a run must reproduce.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Run; the first one unless given.
    #[serde(default)]
    pub run: Option<String>,
    /// Path.
    pub path: String,
    /// Slice.
    #[serde(default)]
    pub slice: String,
    /// Values, row-major, in one list or in lists nested as the axes are.
    #[cfg_attr(test, schemars(with = "Vec<f64>"))]
    pub values: Numbers,
    /// Largest difference; half of the fourth decimal where no limit is given at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Largest difference as a share of the expected value; added to `tolerance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// The values are as printed with so many decimals: what was computed must round to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<u8>,
    /// What is peculiar about these values; `check` prints it with a difference.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub note: Text,
    /// Figures that are wrong where they were published: `values` then has the right ones, and `check` lists both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misprints: Vec<Misprint>,
}

/// A published figure that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Misprint {
    /// Which of the expected values, counted from 0.
    pub at: usize,
    /// The figure as it was published.
    pub printed: f64,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub note: Text,
}

/// How far f32 may carry a figure of f64 from its value, in parts of the largest figure given with it: a run rounds each
/// of its operations to half a part in 2²³, and a figure gathers some dozens of these.
const F32_DRIFT: f64 = 64.0 * f32::EPSILON as f64;

/// Half of the fourth decimal.
const USUAL_TOLERANCE: f64 = 5e-5;

impl Expected {
    /// The largest difference from `value` that a run of `computed` numbers may show, where the figures are of a run of
    /// `stated` ones.
    pub fn allowed(&self, value: f64, stated: Precision, computed: Precision) -> f64 {
        // A number that lies half-way between two printed ones may have been printed as either.
        let half = |digits: u8| 0.5 * 0.1_f64.powi(digits.into()) * (1.0 + 1e-9);
        let given = self.tolerance.unwrap_or(0.0)
            + self.relative.map_or(0.0, |r| r * value.abs())
            + self.printed.map_or(0.0, half);
        let limited = self.tolerance.is_some() || self.relative.is_some() || self.printed.is_some();
        let allowed = if limited { given } else { USUAL_TOLERANCE };
        if (stated, computed) != (Precision::F64, Precision::F32) {
            return allowed;
        }
        let scale = self.values.flat().iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        allowed + F32_DRIFT * scale.max(1.0)
    }
}
