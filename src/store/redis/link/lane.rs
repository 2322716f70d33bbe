//! Lanes: connections of their own for what must not wait for one another.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// What a call is for. Lanes share no connection and no limit, so a slow read of a whole region
/// delays no renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Renewals of leases, and nothing else.
    Lease,
    /// Mutations.
    Work,
    /// Reads, of any size.
    Read,
}

impl Lane {
    pub(super) const ALL: [Self; 3] = [Self::Lease, Self::Work, Self::Read];

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lease => "lease",
            Self::Work => "work",
            Self::Read => "read",
        })
    }
}

/// Limits of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkOptions {
    /// Longest call, with everything that belongs to it.
    pub deadline: Duration,
    /// Connections of `Lane::Work` to a server; at least 1.
    pub work_connections: usize,
    /// Connections of `Lane::Read` to a server; at least 1.
    pub read_connections: usize,
    /// Most calls at once, a lane and server.
    pub max_in_flight: usize,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(300),
            work_connections: 2,
            read_connections: 2,
            max_in_flight: 1_024,
        }
    }
}

impl LinkOptions {
    pub(super) const fn connections(&self, lane: Lane) -> usize {
        let connections = match lane {
            Lane::Lease => 1,
            Lane::Work => self.work_connections,
            Lane::Read => self.read_connections,
        };
        if connections == 0 { 1 } else { connections }
    }

    /// Longest attempt to connect. No caller waits for it beyond its own deadline. At most half a
    /// second: an attempt that hangs (a lost SYN is repeated after a second) is better begun anew.
    pub(super) fn connect_time(&self) -> Duration {
        self.deadline
            .clamp(Duration::from_millis(200), Duration::from_millis(500))
    }
}

/// Calls in flight, and their limit.
#[derive(Debug)]
pub(super) struct InFlight {
    now: AtomicUsize,
    most: usize,
}

impl InFlight {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            now: AtomicUsize::new(0),
            most,
        })
    }

    pub(super) fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// A place, given back when it is dropped; none when all are taken.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let taken = self.now.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(self));
        (taken < self.most).then_some(place)
    }
}

/// One call in flight.
pub(super) struct Place(Arc<InFlight>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_calls_enter_than_may() {
        let calls = InFlight::new(2);
        let first = calls.enter();
        let second = calls.enter();
        assert!(first.is_some() && second.is_some() && calls.enter().is_none());
        assert_eq!(calls.now(), 2);
        drop(first);
        assert!(calls.enter().is_some());
    }
}
