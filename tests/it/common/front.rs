//! Commands run to their end without a screen.

use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::executor::{Front, Outcome};
use tui_transformer::text::Msg;

/// It keeps what is copied.
#[derive(Default)]
pub struct Quiet {
    pub copied: Vec<String>,
}

impl Front for Quiet {
    fn copy(&mut self, text: &str, done: Msg) -> Result<Option<Msg>, Msg> {
        self.copied.push(text.to_owned());
        Ok(Some(done))
    }

    fn mouse(&mut self, _: bool) -> Result<(), Msg> {
        Ok(())
    }

    fn screen(&mut self, _: bool) -> Result<(), Msg> {
        Ok(())
    }
}

pub fn run(app: &mut App, action: &Action) -> Outcome {
    app.run(action, &mut Quiet::default())
}
