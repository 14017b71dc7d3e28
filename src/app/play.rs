//! Auto-play: one step after the other at a speed one can change.

use std::time::Duration;

use super::args::Speed;

/// Speeds that `speed up` and `speed down` go through, in steps a second.
const SPEEDS: [f64; 9] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// The state of auto-play. It knows no clock: the event loop waits [`Play::interval`] and sends a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Play {
    /// Whether it runs.
    pub on: bool,
    per_second: f64,
}

impl Default for Play {
    fn default() -> Self {
        Self { on: false, per_second: 2.0 }
    }
}

impl Play {
    /// Steps a second.
    pub fn per_second(&self) -> f64 {
        self.per_second
    }

    /// Time from step to step while it runs.
    pub fn interval(&self) -> Option<Duration> {
        self.on.then(|| Duration::from_secs_f64(1.0 / self.per_second))
    }

    /// Changes the speed, within 0.25 and 60 steps a second.
    pub fn set(&mut self, speed: Speed) {
        let (slowest, fastest) = (SPEEDS[0], SPEEDS[SPEEDS.len() - 1]);
        self.per_second = match speed {
            Speed::Up => SPEEDS.into_iter().find(|s| *s > self.per_second).unwrap_or(fastest),
            Speed::Down => SPEEDS.into_iter().rfind(|s| *s < self.per_second).unwrap_or(slowest),
            Speed::PerSecond(s) => s.clamp(slowest, fastest),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_stay_within_bounds() {
        let mut play = Play::default();
        assert_eq!(play.interval(), None);
        play.on = true;
        for _ in 0..20 {
            play.set(Speed::Up);
        }
        assert!((play.per_second() - 60.0).abs() < 1e-9);
        for _ in 0..20 {
            play.set(Speed::Down);
        }
        assert_eq!(play.interval(), Some(Duration::from_secs(4)));
        play.set(Speed::PerSecond(3.0));
        play.set(Speed::Up);
        assert!((play.per_second() - 4.0).abs() < 1e-9);
        play.set(Speed::PerSecond(1e300));
        assert!((play.per_second() - 60.0).abs() < 1e-9);
    }
}
