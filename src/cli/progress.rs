//! How far a long command is: a bar on standard error, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::{Lang, Msg};

/// A bar of parts done, with words next to it. It is taken away when it is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    all: usize,
    lang: Lang,
}

impl Progress {
    /// Of `all` parts. Standard error that is no terminal gets nothing, nor does one that is not `wanted`.
    pub(super) fn new(all: usize, wanted: bool, lang: Lang) -> Self {
        let target = if wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("[{bar:24}] {msg}").expect("a template without mistakes");
        let bar = ProgressBar::with_draw_target(Some(all as u64), target);
        Self { bar: bar.with_style(style.progress_chars("#--")), all, lang }
    }

    /// `done` parts are done. `words` has what else the message says.
    pub(super) fn show(&self, done: usize, words: impl FnOnce() -> Msg) {
        if !self.bar.is_hidden() {
            self.bar.set_position(done as u64);
            let msg = words()
                .arg("done", done)
                .arg("all", self.all)
                .arg("left", clock(self.bar.eta()))
                .arg("rate", format!("{:.1}", self.bar.per_sec()));
            self.bar.set_message(msg.render(self.lang));
        }
    }
}

/// Minutes and seconds.
fn clock(left: Duration) -> String {
    let seconds = left.as_secs_f64().ceil() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_rounded_up() {
        assert_eq!(clock(Duration::from_millis(89_200)), "1:30");
        assert_eq!(clock(Duration::ZERO), "0:00");
    }
}
