//! A channel: one connection to a primary, opened anew whenever it is no good any more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{Pipeline, Value, aio::MultiplexedConnection};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::AbortHandle,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    counters::Counters,
    dial::{Hello, Opened, Task},
    error::CallError,
    finder::Finder,
};

/// Calls in a row without a reply after which a connection is given up.
const MAX_STRIKES: u32 = 2;

/// How often a connection is looked at: whether it answers, from a primary.
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// A connection that lived shorter than this counts as a failed attempt.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// Pauses between attempts double from the first one to the longest one: while somebody calls, and
/// while nobody does.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_IDLE_PAUSE: Duration = Duration::from_secs(2);

/// A connection to whatever primary its finder finds, shared by any number of calls.
///
/// Its keeper, a task, opens the connection and replaces it when it ends, when [`MAX_STRIKES`]
/// calls in a row had no reply (the peer is gone without a word, or hangs), when a call was told
/// that the server is a replica, and when a probe finds that it became one.
pub(super) struct Channel {
    state: watch::Receiver<State>,
    shared: Arc<Shared>,
    _keeper: Task,
}

#[derive(Clone)]
enum State {
    Down(Outage),
    Up(Live),
}

#[derive(Clone)]
struct Outage {
    since: Instant,
    reason: Arc<str>,
}

/// A connection in use.
#[derive(Clone)]
pub(super) struct Live {
    /// Connections of a channel are numbered from 1.
    number: u64,
    connection: MultiplexedConnection,
    driver: AbortHandle,
    shared: Arc<Shared>,
}

/// What the calls tell the keeper.
struct Shared {
    counters: Arc<Counters>,
    strikes: AtomicU32,
    /// The newest connection that is to be replaced.
    unfit: AtomicU64,
    replace: Notify,
    /// Whether anybody called since the last attempt to connect.
    called: AtomicBool,
    wanted: Notify,
}

impl Channel {
    /// Begins to connect, on `runtime`.
    pub(super) fn open(
        runtime: &Handle,
        finder: Arc<Finder>,
        name: String,
        counters: Arc<Counters>,
    ) -> Self {
        let shared = Arc::new(Shared {
            counters,
            strikes: AtomicU32::new(0),
            unfit: AtomicU64::new(0),
            replace: Notify::new(),
            called: AtomicBool::new(true),
            wanted: Notify::new(),
        });
        let down = State::Down(Outage::now("not connected yet".into()));
        let (sender, state) = watch::channel(down);
        let keeper = Keeper {
            alarm: finder.alarm(),
            finder,
            name,
            state: sender,
            shared: Arc::clone(&shared),
        };
        Self {
            state,
            shared,
            _keeper: Task::spawn_on(runtime, keeper.run()),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(live) if live.works())
    }

    /// The connection, as soon as there is one.
    ///
    /// A call waits out a blip, not an outage: once the connection has been lost for `patience`,
    /// calls fail at once, so that an outage does not pile up work.
    ///
    /// # Errors
    /// Why there is no connection.
    pub(super) async fn ready(
        &self,
        patience: Duration,
        deadline: Instant,
    ) -> Result<Live, Arc<str>> {
        let mut state = self.state.clone();
        loop {
            let (until, reason) = match &*state.borrow_and_update() {
                State::Up(live) if live.works() => return Ok(live.clone()),
                // the keeper is about to notice
                State::Up(_) => (deadline, "the connection was lost".into()),
                State::Down(outage) => (
                    deadline.min(outage.since + patience),
                    Arc::clone(&outage.reason),
                ),
            };
            self.shared.called.store(true, Ordering::Relaxed);
            self.shared.wanted.notify_one();
            match timeout_at(until, state.changed()).await {
                Ok(Ok(())) => {}
                // the keeper ends only with its runtime
                Ok(Err(_)) => return Err("the link is shut down".into()),
                Err(_) => return Err(reason),
            }
        }
    }
}

impl Live {
    /// Sends the commands and awaits all their replies.
    ///
    /// # Errors
    /// [`CallError::Unknown`] at the deadline, or when the connection is cut. After the bytes were
    /// handed over, nobody knows how far they came.
    pub(super) async fn send(
        mut self,
        pipeline: &Pipeline,
        deadline: Instant,
    ) -> Result<Vec<Value>, CallError> {
        let call = self
            .connection
            .send_packed_commands(pipeline, 0, pipeline.len());
        let counters = &self.shared.counters;
        match timeout_at(deadline, call).await {
            Ok(Ok(replies)) => {
                self.shared.strikes.store(0, Ordering::Relaxed);
                Ok(replies)
            }
            Ok(Err(error)) => {
                counters.cut.add();
                self.replace();
                let reason = format!("the connection was lost: {error}");
                Err(CallError::Unknown(reason.into()))
            }
            Err(_) => {
                counters.time_outs.add();
                self.strike();
                Err(CallError::Unknown("no reply within the deadline".into()))
            }
        }
    }

    fn works(&self) -> bool {
        self.number > self.shared.unfit.load(Ordering::Relaxed) && !self.driver.is_finished()
    }

    fn strike(&self) {
        if self.shared.strikes.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_STRIKES {
            self.replace();
        }
    }

    /// No call begins on this connection any more; those that wait on it may still be answered.
    pub(super) fn replace(&self) {
        if self.shared.unfit.fetch_max(self.number, Ordering::Relaxed) < self.number {
            self.shared.replace.notify_one();
        }
    }
}

impl Outage {
    fn now(reason: Arc<str>) -> Self {
        Self {
            since: Instant::now(),
            reason,
        }
    }
}

struct Keeper {
    finder: Arc<Finder>,
    name: String,
    alarm: watch::Receiver<u64>,
    state: watch::Sender<State>,
    shared: Arc<Shared>,
}

impl Keeper {
    async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut number = 0;
        loop {
            let called = self.shared.called.swap(false, Ordering::Relaxed);
            match self.finder.open(&self.name).await {
                Ok(opened) => {
                    self.shared.counters.connects.add();
                    number += 1;
                    let opened_at = Instant::now();
                    self.keep(number, opened).await;
                    if opened_at.elapsed() > SHORT_LIFE {
                        pause = FIRST_PAUSE;
                        continue;
                    }
                }
                Err(reason) => {
                    self.shared.counters.failed_connects.add();
                    self.state.send_modify(|state| match state {
                        State::Down(outage) => outage.reason = reason,
                        State::Up(_) => *state = State::Down(Outage::now(reason)),
                    });
                }
            }
            self.rest(pause).await;
            let longest = if called {
                LONGEST_PAUSE
            } else {
                LONGEST_IDLE_PAUSE
            };
            pause = (pause * 2).min(longest);
        }
    }

    /// Lets the connection be used until it is no good any more.
    async fn keep(&mut self, number: u64, opened: Opened) {
        let Opened {
            connection,
            mut driver,
            endpoint,
            ..
        } = opened;
        self.shared.strikes.store(0, Ordering::Relaxed);
        let live = Live {
            number,
            connection,
            driver: driver.abort_handle(),
            shared: Arc::clone(&self.shared),
        };
        self.state.send_replace(State::Up(live.clone()));
        let reason = loop {
            let probe = async {
                tokio::select! {
                    () = sleep(jittered(PROBE_EVERY)) => {}
                    // another channel was told that the server is a replica
                    _ = self.alarm.changed() => {}
                }
                self.finder.probe(&live, &endpoint).await
            };
            tokio::select! {
                () = driver.ended() => break "the server closed the connection".into(),
                () = self.shared.replace.notified() => {
                    if !live.works() {
                        break "the connection hangs, or its server became a replica".into();
                    }
                }
                outcome = probe => {
                    if let Err(reason) = outcome {
                        live.replace();
                        break reason;
                    }
                }
            }
        };
        self.state.send_replace(State::Down(Outage::now(reason)));
        // whoever waits for a reply on the old connection has its whole deadline
        let deadline = self.finder.deadline();
        tokio::spawn(async move {
            let _ = timeout(deadline, driver.ended()).await;
        });
    }

    async fn rest(&self, pause: Duration) {
        sleep(jittered(pause.min(LONGEST_PAUSE))).await;
        if let Some(more) = pause.checked_sub(LONGEST_PAUSE)
            && !more.is_zero()
        {
            let _ = timeout(jittered(more), self.shared.wanted.notified()).await;
        }
    }
}

impl Live {
    /// What the server says of itself now; nothing when it does not answer in time, which counts
    /// as a call without a reply.
    pub(super) async fn hello(&self, deadline: Duration) -> Option<Hello> {
        let mut connection = self.connection.clone();
        match timeout(deadline, connection.send_packed_command(&Hello::command())).await {
            Ok(Ok(reply)) => {
                self.shared.strikes.store(0, Ordering::Relaxed);
                Some(Hello::read(&reply))
            }
            // the driver ends with the connection
            Ok(Err(_)) => None,
            Err(_) => {
                self.strike();
                None
            }
        }
    }
}

/// Between a half and the whole: nodes that lost the same server do not come back in step.
pub(super) fn jittered(time: Duration) -> Duration {
    let draw = getrandom::u32().unwrap_or(u32::MAX);
    time / 2 + time.mul_f64(f64::from(draw) / f64::from(u32::MAX) / 2.0)
}
