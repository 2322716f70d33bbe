//! Waiting for what must happen.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Waits until `happened` gives a value, and gives it with the time that it took.
///
/// # Panics
/// After `patience`, naming `what` was waited for.
pub fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut happened: impl FnMut() -> Option<T>,
) -> (T, Duration) {
    let started = Instant::now();
    loop {
        if let Some(value) = happened() {
            return (value, started.elapsed());
        }
        assert!(
            started.elapsed() < patience,
            "{what}: not within {patience:?}"
        );
        thread::sleep(LOOK_EVERY);
    }
}

/// Waits until `holds`, and gives the time that it took.
///
/// # Panics
/// After `patience`, naming `what` was waited for.
pub fn wait_until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    wait_for(what, patience, || holds().then_some(())).1
}
