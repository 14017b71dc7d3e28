//! The loss of a training run: from what a scenario says to what a program is built from.

use super::inputs::Inputs;
use crate::model::config::ModelConfig;
use crate::model::loss::{Loss, Squares};
use crate::model::params::VocabSizes;
use crate::scenario::diagnostic::Problem;
use crate::scenario::schema::{self, Reduction, SquaredReduction};
use crate::text::Msg;

/// The loss that training run `at` means; its numbers fit what the model puts out.
///
/// # Errors
/// Numbers that do not fit, or are not finite or not in their range.
pub(super) fn loss(
    given: &schema::Loss,
    at: &str,
    model: &ModelConfig,
    inputs: &Inputs,
    vocab: VocabSizes,
) -> Result<Loss, Problem> {
    let at = format!("{at}.loss");
    let words = if model.decoder.is_some() { vocab.target } else { vocab.source };
    let width = if model.output.none { model.d_model } else { words };
    let read = if model.decoder.is_some() { inputs.target.as_ref() } else { inputs.source.as_ref() };
    let (batch, tokens) = read.map_or((0, 0), |s| (s.batch, s.tokens()));
    let flat = |at: &str, rows: &[Vec<Vec<f64>>]| {
        let fits = rows.len() == batch
            && rows
                .iter()
                .all(|s| s.len() == tokens && s.iter().all(|x| x.len() == width && x.iter().all(|x| x.is_finite())));
        if fits {
            Ok(rows.iter().flatten().flatten().copied().collect())
        } else {
            let msg = Msg::new("loss.shape").arg("wanted", format!("{batch} × {tokens} × {width}"));
            Err(Problem::new(at, msg))
        }
    };
    match given {
        schema::Loss::CrossEntropy { reduction, smoothing, class_weights } => {
            let plain = *reduction == Reduction::Mean && *smoothing == 0.0 && class_weights.is_empty();
            if !(0.0..1.0).contains(smoothing) {
                let msg = Msg::new("scenario.below_one").arg("value", smoothing);
                return Err(Problem::new(format!("{at}.smoothing"), msg));
            }
            let good = class_weights.iter().all(|w| w.is_finite() && *w >= 0.0);
            if !class_weights.is_empty() && (class_weights.len() != words || !good) {
                let msg = Msg::new("loss.class_weights").arg("found", class_weights.len()).arg("wanted", words);
                return Err(Problem::new(format!("{at}.class_weights"), msg));
            }
            if !plain && (model.output.none || inputs.labels.is_none()) {
                return Err(Problem::new(at, Msg::new("loss.labels")));
            }
            Ok(if plain {
                Loss::MeanCrossEntropy
            } else {
                let class_weights = class_weights.clone();
                Loss::CrossEntropy { sum: *reduction == Reduction::Sum, smoothing: *smoothing, class_weights }
            })
        }
        schema::Loss::SquaredError { target, reduction } => {
            let reduction = match reduction {
                SquaredReduction::Mean => Squares::Mean,
                SquaredReduction::Sum => Squares::Sum,
                SquaredReduction::HalfSum => Squares::HalfSum,
            };
            Ok(Loss::SquaredError { target: flat(&format!("{at}.target"), target)?, reduction })
        }
        schema::Loss::Gradient(gradient) => Ok(Loss::Gradient(flat(&at, gradient)?)),
    }
}
