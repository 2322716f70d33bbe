//! Where a node stands between its start and its end.

use tokio::sync::watch;

use super::problem::{Code, Problem};

/// A node's phases, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not serving yet.
    Starting,
    /// Serving.
    Ready,
    /// Said to be not ready, so that balancers look elsewhere; still taking everything.
    Unready,
    /// New work is refused; what is under way goes on, and so do claims and reads.
    IntakeStopped,
    /// Connections are ended as they fall idle; streams end.
    Draining,
}

/// The phase of a node, which only goes forward.
#[derive(Debug, Clone)]
pub struct Lifecycle(watch::Sender<Phase>);

impl Default for Lifecycle {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Starting))
    }
}

impl Lifecycle {
    /// The present phase.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Goes on to a later phase; an earlier one is ignored.
    pub fn advance(&self, to: Phase) {
        self.0.send_if_modified(|phase| {
            let forward = *phase < to;
            *phase = to.max(*phase);
            forward
        });
    }

    /// Waits for the end of streams.
    pub async fn draining(&self) {
        let mut phases = self.0.subscribe();
        // the sender lives in self: waiting ends with the phase alone
        let _ = phases.wait_for(|phase| *phase >= Phase::Draining).await;
    }

    /// Whether new work is taken.
    ///
    /// # Errors
    /// 503 `shutting_down`.
    pub fn takes_work(&self) -> Result<(), Problem> {
        if self.phase() < Phase::IntakeStopped {
            return Ok(());
        }
        Err(Problem::new(
            Code::ShuttingDown,
            "this node is about to stop: send new work to another",
        ))
    }
}
