//! What the engine's errors say in the catalogue's languages. The engine itself knows no catalogue.

use crate::tensor::slice::SliceError;
use crate::text::{Msg, escape};
use crate::trace::train::Stopped;

impl From<SliceError> for Msg {
    fn from(error: SliceError) -> Self {
        match error {
            SliceError::EmptyPart(text) => Msg::new("slice.empty_part").arg("text", escape(&text)),
            SliceError::NoEquals(part) => Msg::new("slice.no_equals").arg("part", escape(&part)),
            SliceError::UnknownAxis(axis) => Msg::new("slice.unknown_axis").arg("axis", escape(&axis)),
            SliceError::AxisTwice(axis) => Msg::new("slice.axis_twice").arg("axis", escape(&axis)),
            SliceError::NotANumber(text) => Msg::new("slice.not_a_number").arg("text", escape(&text)),
            SliceError::NoSuchAxis { axis, shape } => {
                Msg::new("slice.no_such_axis").arg("axis", axis).arg("shape", shape)
            }
            SliceError::Outside { axis, index, len } => {
                Msg::new("slice.outside").arg("axis", axis).arg("index", index).arg("len", len)
            }
            SliceError::Nothing { axis, slice } => Msg::new("slice.nothing").arg("axis", axis).arg("slice", slice),
        }
    }
}

/// Updates count from 1 for a reader.
impl From<&Stopped> for Msg {
    fn from(stopped: &Stopped) -> Self {
        match stopped {
            Stopped::Build { update, error } => Msg::new("train.build").arg("update", update + 1).arg("why", error),
            Stopped::Run { update, error } => Msg::new("train.run").arg("update", update + 1).arg("why", error),
            Stopped::NotFinite { update, path, given, nan } => Msg::new(match (given, nan) {
                (true, _) => "train.not_finite.given",
                (false, true) => "train.not_finite.nan",
                (false, false) => "train.not_finite.infinite",
            })
            .arg("update", update + 1)
            .arg("path", path),
            Stopped::NoLabels { update, sentences } => {
                let numbers: Vec<String> = sentences.iter().map(|s| (s + 1).to_string()).collect();
                Msg::new("train.no_labels").arg("update", update + 1).arg("sentences", numbers.join(", "))
            }
            Stopped::NoSuchUpdate { update, made } => {
                Msg::new("train.no_such_update").arg("update", update + 1).arg("made", made)
            }
        }
    }
}
