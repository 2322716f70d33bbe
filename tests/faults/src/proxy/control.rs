//! What a test has ordered, as the connections see it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::watch;

use crate::waiting::wait_until;

/// Longest time that open connections take to break.
const CUTS_WITHIN: Duration = Duration::from_secs(10);

/// A way through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// Requests.
    Server,
    /// Answers.
    Client,
}

/// How late something comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delay {
    /// Not at all.
    #[default]
    None,
    /// Always so much.
    Fixed(Duration),
    /// From the first to the second, drawn evenly for each message.
    Between(Duration, Duration),
}

impl Delay {
    /// The delay of one message, for a number drawn from `[0, 1)`.
    pub(super) fn drawn(self, unit: f64) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(delay) => delay,
            Self::Between(least, most) => least + most.saturating_sub(least).mul_f64(unit),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    pub(super) delay: Delay,
    pub(super) held: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) upstream: SocketAddr,
    pub(super) refusing: bool,
    /// How often all connections were broken.
    pub(super) cuts: u64,
    pub(super) ways: [Way; 2],
}

impl State {
    pub(super) fn way(&mut self, towards: Towards) -> &mut Way {
        &mut self.ways[towards as usize]
    }
}

/// The state of now, and its changes.
#[derive(Debug)]
pub(super) struct Control {
    state: watch::Sender<State>,
    /// Open connections, by how often all had been broken when they began.
    open: Arc<Mutex<BTreeMap<u64, usize>>>,
}

/// A connection that is open.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) upstream: SocketAddr,
    pub(super) cuts: u64,
    open: Arc<Mutex<BTreeMap<u64, usize>>>,
}

impl Control {
    pub(super) fn new(upstream: SocketAddr) -> Self {
        let state = watch::Sender::new(State {
            upstream,
            refusing: false,
            cuts: 0,
            ways: [Way::default(); 2],
        });
        Self {
            state,
            open: Arc::default(),
        }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
    }

    /// Changes the state, and breaks all connections that began before.
    pub(super) fn change_and_cut(&self, change: impl FnOnce(&mut State)) {
        self.change(|state| {
            change(state);
            state.cuts += 1;
        });
        let cuts = self.now().cuts;
        wait_until("the connections break", CUTS_WITHIN, || {
            self.open.lock().unwrap().range(..cuts).next().is_none()
        });
    }

    /// A connection begins.
    pub(super) fn begin(&self) -> Begun {
        let mut open = self.open.lock().unwrap();
        let now = self.now();
        *open.entry(now.cuts).or_default() += 1;
        Begun {
            upstream: now.upstream,
            cuts: now.cuts,
            open: self.open.clone(),
        }
    }

    pub(super) fn now(&self) -> State {
        *self.state.borrow()
    }

    /// Waits until the state is so.
    pub(super) async fn when(&self, holds: impl FnMut(&State) -> bool) {
        // the sender lives in this very value
        let _ = self.state.subscribe().wait_for(holds).await;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap();
        if let Some(count) = open.get_mut(&self.cuts) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.cuts);
            }
        }
    }
}
