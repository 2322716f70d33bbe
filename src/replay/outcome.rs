//! What happens in a run: how each request ends, and what each window does.

use std::time::Duration;

use kheya_solver::Status;

use super::Policy;
use crate::domain::{CostMs, DurationMs, UnixMs};

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// It got a driver.
    Assigned {
        /// Index of the driver in the scenario.
        driver: u32,
        /// When.
        at: UnixMs,
        /// Pickup ETA in seconds.
        eta_s: f64,
    },
    /// It waited too long.
    Expired {
        /// Whether it had a candidate in some window.
        had_candidate: bool,
    },
    /// Its rider gave up.
    GaveUp {
        /// At the ETA of the driver it got; if not, while waiting for one.
        at_eta: bool,
    },
}

/// One window of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowRow {
    /// When it closed.
    pub closed_at: UnixMs,
    /// Pending requests.
    pub requests: u32,
    /// Those of them beyond the snapshot.
    pub deferred: u32,
    /// Drivers that could be chosen.
    pub drivers: u32,
    /// Candidate edges.
    pub edges: u32,
    /// Pairs chosen.
    pub assigned: u32,
    /// Requests that expired since the window before, or whose riders gave up waiting.
    pub expired: u32,
    /// Requests that looking ahead left waiting.
    pub planned: u32,
    /// Sum of the pickup ETAs in seconds.
    pub total_eta_s: f64,
    /// What the greedy rules would have cost more on the same candidates (batch only).
    pub gains: Option<WindowGains>,
}

/// What a batch window gained on the greedy rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowGains {
    /// On greedy-edge.
    pub vs_greedy_edge: CostMs,
    /// On oldest-first greedy.
    pub vs_greedy: CostMs,
    /// Whether the optimum is proven.
    pub status: Status,
}

/// All that happened in a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The rule.
    pub policy: Policy,
    /// Length of its windows; zero where it has none.
    pub window: DurationMs,
    /// How each trip's request ended, in the scenario's order.
    pub outcomes: Vec<Outcome>,
    /// The windows with at least one pending request.
    pub windows: Vec<WindowRow>,
    /// Offers that drivers declined.
    pub declined: u64,
    /// Trips that a window planned, by index, each with the close of the first that did.
    pub planned: Vec<(u32, UnixMs)>,
    /// Time of each solve (batch only), in the order of the windows. The only thing here that a
    /// second run does not repeat.
    pub solve_times: Vec<Duration>,
}
