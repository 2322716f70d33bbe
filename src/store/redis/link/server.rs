//! A server: the lanes to one primary.

use std::sync::{Arc, OnceLock};

use tokio::{runtime::Handle, time::Instant};

use super::{
    channel::{Channel, Live},
    counters::Counters,
    error::CallError,
    finder::Finder,
    lane::{InFlight, Lane, LinkOptions, Place},
};

/// One primary, with its own connections and limits for each lane. They are opened when they are
/// first used.
pub(super) struct Server {
    finder: Arc<Finder>,
    lanes: [LaneOf; 3],
    options: LinkOptions,
    counters: Arc<Counters>,
    /// Where the connections live, whoever calls.
    runtime: Handle,
}

struct LaneOf {
    lane: Lane,
    channels: Box<[OnceLock<Channel>]>,
    in_flight: Arc<InFlight>,
}

/// A connection and a place among the calls in flight.
pub(super) struct Ready {
    pub(super) live: Live,
    place: Place,
}

impl Server {
    pub(super) fn new(
        finder: Finder,
        options: LinkOptions,
        counters: Arc<Counters>,
        runtime: Handle,
    ) -> Arc<Self> {
        let lanes = Lane::ALL.map(|lane| LaneOf {
            lane,
            channels: (0..options.connections(lane))
                .map(|_| OnceLock::new())
                .collect(),
            in_flight: InFlight::new(options.max_in_flight),
        });
        Arc::new(Self {
            finder: Arc::new(finder),
            lanes,
            options,
            counters,
            runtime,
        })
    }

    /// A connection for a call in `slot`, which has the same one as long as nothing happens to it.
    ///
    /// # Errors
    /// Never anything but [`CallError::NotExecuted`]: too many calls, or no connection in time.
    pub(super) async fn ready(
        &self,
        lane: Lane,
        slot: u16,
        deadline: Instant,
    ) -> Result<Ready, CallError> {
        let lane = &self.lanes[lane.index()];
        let Some(place) = lane.in_flight.enter() else {
            self.counters.turned_away.add();
            let reason = format!("{} calls are in flight already", self.options.max_in_flight);
            return Err(CallError::NotExecuted(reason.into()));
        };
        let channel = self.channel(lane, usize::from(slot));
        match channel.ready(self.options.deadline, deadline).await {
            Ok(live) => Ok(Ready { live, place }),
            Err(reason) => Err(CallError::NotExecuted(reason)),
        }
    }

    /// The slot's own channel, or one that is up when that is down.
    fn channel<'a>(&self, lane: &'a LaneOf, slot: usize) -> &'a Channel {
        let own = slot % lane.channels.len();
        let own = lane.channels[own].get_or_init(|| {
            Channel::open(
                &self.runtime,
                Arc::clone(&self.finder),
                format!("kheya-{}", lane.lane),
                Arc::clone(&self.counters),
            )
        });
        if own.is_up() {
            return own;
        }
        let opened = lane.channels.iter().filter_map(OnceLock::get);
        opened
            .into_iter()
            .find(|channel| channel.is_up())
            .unwrap_or(own)
    }

    pub(super) fn in_flight(&self, lane: Lane) -> usize {
        self.lanes[lane.index()].in_flight.now()
    }

    pub(super) fn finder(&self) -> &Finder {
        &self.finder
    }
}

impl Ready {
    /// Sends on this connection, and gives the place back afterwards.
    pub(super) async fn send(
        self,
        pipeline: &redis::Pipeline,
        deadline: Instant,
    ) -> Result<Vec<redis::Value>, CallError> {
        let Self { live, place } = self;
        let replies = live.send(pipeline, deadline).await;
        drop(place);
        replies
    }
}
