//! How long a solve may take: the only file of the crate that reads a clock.
//!
//! Promise: the search polls often enough (every few hundred units of work, a unit being about one
//! edge looked at) that it ends within a fraction of a millisecond of its end time. A wall-clock
//! budget keeps a share back for what must follow the search, one pass over the edges for the
//! incumbent and its bound. That pass itself is cut short at the end of the budget, but is given
//! [`CLOSING_GRACE`] in any case, so that a thread that was held up still answers with more than
//! "everyone unmatched".

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Units of work between two polls. One unit is about 2 ns, so a poll every 1 µs or so.
const POLL_EVERY: usize = 512;

/// Kept back from a wall-clock budget, at most half of it, for what follows a cut search: one pass
/// over the edges for the bound, and the incumbent, which is a few heap steps a request.
const CLOSING_NS_PER_EDGE: u64 = 3;
const CLOSING_NS_PER_REQUEST: u64 = 200;

/// What the closing pass may take even if the budget is over when it starts.
const CLOSING_GRACE: Duration = Duration::from_millis(2);

/// When a solve has to stop searching and answer with what it has.
#[derive(Clone)]
pub struct Budget(Limit);

#[derive(Clone)]
enum Limit {
    Wall(Duration),
    Until(Instant),
    Asked(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl Budget {
    /// A wall-clock budget, counted from the entry to [`solve`](crate::solve).
    pub fn wall(duration: Duration) -> Self {
        Self(Limit::Wall(duration))
    }

    /// The same budget, counted from now on by the clock: for several solves that share it.
    #[must_use]
    pub fn running(&self) -> Self {
        match self.0 {
            // a budget past the end of the clock is no budget, as ever
            Limit::Wall(duration) => Instant::now()
                .checked_add(duration)
                .map_or_else(|| self.clone(), |end| Self(Limit::Until(end))),
            Limit::Until(_) | Limit::Asked(_) => self.clone(),
        }
    }

    /// A budget that is over once `is_over` says so. It ends the search; the closing pass, linear
    /// in the number of edges, then runs to its end.
    pub fn from_fn(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Limit::Asked(Arc::new(is_over)))
    }

    /// A budget that is over after `polls` polls: stops a solve at the same place every time, on
    /// one thread.
    pub fn polls(polls: u64) -> Self {
        let left = AtomicU64::new(polls);
        Self::from_fn(move || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_err()
        })
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Limit::Wall(duration) => f.debug_tuple("Budget::wall").field(duration).finish(),
            Limit::Until(end) => f.debug_tuple("Budget::running").field(end).finish(),
            Limit::Asked(_) => f.write_str("Budget::from_fn"),
        }
    }
}

/// A budget that has started to run.
pub(crate) struct Deadline {
    limit: Running,
    search_over: AtomicBool,
}

enum Running {
    Never,
    Wall {
        search_end: Instant,
        end: Instant,
        /// Set when closing work first asks.
        closing_end: OnceLock<Instant>,
    },
    Asked(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl Running {
    /// Until `end`, less what the closing pass of a graph of this size takes. A budget past the end
    /// of the clock is no budget.
    fn until(now: Instant, end: Option<Instant>, requests: usize, edges: usize) -> Self {
        let Some(end) = end else {
            return Self::Never;
        };
        let left = end.saturating_duration_since(now);
        let closing = edges as u64 * CLOSING_NS_PER_EDGE + requests as u64 * CLOSING_NS_PER_REQUEST;
        let closing = Duration::from_nanos(closing);
        Self::Wall {
            search_end: now + left.saturating_sub(closing.min(left / 2)),
            end,
            closing_end: OnceLock::new(),
        }
    }
}

impl Deadline {
    /// Starts the budget now, for a graph of this size.
    pub(crate) fn start(budget: Option<&Budget>, requests: usize, edges: usize) -> Self {
        let limit = match budget.map(|budget| &budget.0) {
            None => Running::Never,
            Some(Limit::Asked(is_over)) => Running::Asked(Arc::clone(is_over)),
            Some(&Limit::Wall(duration)) => {
                let now = Instant::now();
                let end = now.checked_add(duration);
                Running::until(now, end, requests, edges)
            }
            Some(&Limit::Until(end)) => Running::until(Instant::now(), Some(end), requests, edges),
        };
        Self {
            limit,
            search_over: AtomicBool::new(false),
        }
    }

    /// Is it time to end the search? Stays true once it was, on every thread.
    pub(crate) fn search_is_over(&self) -> bool {
        if self.search_over.load(Ordering::Relaxed) {
            return true;
        }
        let over = match &self.limit {
            Running::Never => false,
            Running::Wall { search_end, .. } => Instant::now() >= *search_end,
            Running::Asked(is_over) => is_over(),
        };
        if over {
            self.search_over.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Does closing work have to be cut short too?
    pub(crate) fn is_over(&self) -> bool {
        match &self.limit {
            Running::Never | Running::Asked(_) => false,
            Running::Wall {
                end, closing_end, ..
            } => {
                let now = Instant::now();
                now >= *closing_end.get_or_init(|| (now + CLOSING_GRACE).max(*end))
            }
        }
    }
}

/// Counts work and polls a deadline now and then.
pub(crate) struct Meter<'d> {
    deadline: &'d Deadline,
    credit: usize,
}

impl<'d> Meter<'d> {
    pub(crate) fn new(deadline: &'d Deadline) -> Self {
        Self {
            deadline,
            credit: 0,
        }
    }

    /// A meter of the same deadline for another thread.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.deadline)
    }

    /// Accounts for `units` of work to come; true when the search has to end.
    #[inline]
    pub(crate) fn search_is_over_after(&mut self, units: usize) -> bool {
        self.spend(units) && self.deadline.search_is_over()
    }

    /// Accounts for `units` of closing work to come; true when it has to be cut short.
    #[inline]
    pub(crate) fn is_over_after(&mut self, units: usize) -> bool {
        self.spend(units) && self.deadline.is_over()
    }

    /// True when it is time to poll.
    #[inline]
    fn spend(&mut self, units: usize) -> bool {
        if let Some(left) = self.credit.checked_sub(units) {
            self.credit = left;
            return false;
        }
        self.credit = POLL_EVERY;
        true
    }
}
