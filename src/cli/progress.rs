//! Progress bars: on long work, and only when somebody is looking.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on stderr that draws itself only when stderr is a terminal, and only after a moment, so
/// that short work stays quiet.
pub(super) struct Bar {
    drawn: ProgressBar,
    shown_at: Instant,
    /// Work done by each part that reports.
    parts: Mutex<Vec<u64>>,
}

const QUIET: Duration = Duration::from_millis(400);

impl Bar {
    /// A bar over `total` units of `what`, reported by `parts` workers.
    pub(super) fn new(what: &'static str, total: u64, parts: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(8));
        let style = ProgressStyle::with_template("{msg} {bar:30} {percent:>3} % {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Self {
            drawn: bar,
            shown_at: Instant::now() + QUIET,
            parts: Mutex::new(vec![0; parts]),
        }
    }

    /// Says that worker `part` has done `done` units.
    pub(super) fn done(&self, part: usize, done: u64) {
        let Ok(mut parts) = self.parts.lock() else {
            return;
        };
        parts[part] = done;
        if Instant::now() >= self.shown_at {
            self.drawn.set_position(parts.iter().sum());
        }
    }

    /// Sets the total, where it is known only once work has begun.
    pub(super) fn total(&self, total: u64) {
        self.drawn.set_length(total);
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.drawn.finish_and_clear();
    }
}
