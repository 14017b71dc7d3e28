//! The quiz that is open.

use crate::debug::quiz::Quiz;

/// A quiz that is open.
#[derive(Clone, Debug)]
pub struct Open {
    /// Its questions and answers.
    pub quiz: Quiz,
    /// Steps, number of questions and seed, as `quiz` is written.
    pub asked: String,
}
