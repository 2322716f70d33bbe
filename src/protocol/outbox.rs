//! The outbox: every change that the outside must hear of, written in the step that makes it
//! (INV-7), in order, kept for a while, read by cursor.

use std::{collections::VecDeque, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::rules::{EVENT_MEMORY_MS, KEPT_EVENTS};
use crate::domain::{
    ConfigVersion, CostMs, DriverId, DurationMs, EventId, Fence, Generation, RequestId, UnixMs,
    WindowSeq,
};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// A request was taken in.
    Requested,
    /// A driver is held for a request.
    Assigned,
    /// The dispatch tier gave a held driver back.
    Released,
    /// Nobody confirmed in time; the driver is free.
    LeaseExpired,
    /// The trip is on.
    Confirmed,
    /// The trip ended.
    Completed,
    /// The request was cancelled.
    Cancelled,
    /// The request waited too long.
    Expired,
    /// The region's configuration changed.
    ConfigChanged,
    /// The store's data began a new life.
    GenerationChanged,
}

/// Where an assignment was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The region's window, solved as a whole.
    Batch,
    /// The region's window, by the greedy fallback.
    Fallback,
    /// The dispatch tier's own window.
    Own,
    /// A trip that the dispatch tier told after data loss; events tell it as a reason.
    Reconciled,
}

/// Why something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The driver declined.
    Declined,
    /// The driver did not answer.
    Timeout,
    /// The offer did not reach the driver.
    Undeliverable,
    /// The driver cancelled.
    DriverCancelled,
    /// The trip was driven.
    Done,
    /// The rider cancelled after the confirm.
    RiderCancelled,
    /// The rider was not there.
    NoShow,
    /// The trip outlasted the longest one allowed.
    TripTimeout,
    /// After data loss the dispatch tier told otherwise.
    Reconciled,
    /// `max_wait_ms` ran out.
    MaxWait,
}

/// One change, as clients read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the region's outbox.
    pub id: EventId,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// When, by the store's clock.
    pub at_ms: UnixMs,
    /// The request concerned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<RequestId>,
    /// The driver concerned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver_id: Option<DriverId>,
    /// The claim's fence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fence: Option<Fence>,
    /// The pair's travel time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub eta: Option<DurationMs>,
    /// The pair's cost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<CostMs>,
    /// End of the lease.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_until_ms: Option<UnixMs>,
    /// Length of the lease.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_ms: Option<DurationMs>,
    /// The window of the region that decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_seq: Option<WindowSeq>,
    /// How it was decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<Source>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Reason>,
    /// Who changed the configuration.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub actor: Option<Arc<str>>,
    /// What changed in the configuration, a JSON document.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changes: Option<Arc<str>>,
    /// The configuration's new version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config_version: Option<ConfigVersion>,
}

impl Event {
    /// An event of `kind` with nothing else told yet; its id is given by the outbox.
    pub(crate) fn new(kind: EventType) -> Self {
        Self {
            id: EventId::default(),
            kind,
            at_ms: UnixMs::default(),
            request_id: None,
            driver_id: None,
            fence: None,
            eta: None,
            cost: None,
            lease_until_ms: None,
            lease_ms: None,
            window_seq: None,
            source: None,
            reason: None,
            actor: None,
            changes: None,
            config_version: None,
        }
    }
}

/// A place in a region's outbox, after the event of that id: `<generation>-<id>`, opaque to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The generation whose events it counts.
    pub generation: Generation,
    /// The last event read.
    pub id: EventId,
}

/// A text is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor has the form <generation>-<id>")]
pub struct CursorError;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.generation, self.id)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let number = |part: &str| {
            if part.bytes().all(|b| b.is_ascii_digit()) {
                part.parse::<u64>().map_err(|_| CursorError)
            } else {
                Err(CursorError)
            }
        };
        let (generation, id) = text.split_once('-').ok_or(CursorError)?;
        Ok(Self {
            generation: number(generation)?.try_into().map_err(|_| CursorError)?,
            id: number(id)?.try_into().map_err(|_| CursorError)?,
        })
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Where a reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// Before the oldest event kept.
    Oldest,
    /// After the newest.
    Latest,
    /// After the event of a cursor.
    Cursor(Cursor),
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// The generation in whose cursors the page is told: an event's cursor is `<generation>-<id>`.
    pub generation: Generation,
    /// The events, in order.
    pub events: Vec<Event>,
    /// Where to go on; always usable.
    pub next: Cursor,
}

/// The reader's place is gone: events were dropped, or the store began a new life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the cursor is gone; the oldest usable one is {oldest}")]
pub struct CursorGone {
    /// Reading after this gives everything that is kept.
    pub oldest: Cursor,
}

/// The events of a region that are kept, oldest first. Ids have no gaps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Outbox {
    last: EventId,
    events: VecDeque<Event>,
}

impl Outbox {
    /// Events dropped by one publish or sweep, at most.
    const MAX_TRIMMED_A_STEP: usize = 1_000;

    /// Appends `event`, giving it its id and time. At most [`KEPT_EVENTS`] stay.
    pub(crate) fn publish(&mut self, mut event: Event, now: UnixMs) {
        self.last = self.last.next();
        event.id = self.last;
        event.at_ms = now;
        self.events.push_back(event);
        while self.events.len() > KEPT_EVENTS {
            self.events.pop_front();
        }
    }

    /// Drops events over [`EVENT_MEMORY_MS`] old, a bounded number of them.
    pub(crate) fn trim(&mut self, now: UnixMs) {
        for _ in 0..Self::MAX_TRIMMED_A_STEP {
            match self.events.front() {
                Some(event) if event.at_ms + EVENT_MEMORY_MS < now => self.events.pop_front(),
                _ => break,
            };
        }
    }

    /// The id of the newest event, 0 before the first.
    pub fn last(&self) -> EventId {
        self.last
    }

    /// Events kept.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether no event is kept.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Events with an id over `id`, oldest first.
    pub fn since(&self, id: EventId) -> impl Iterator<Item = &Event> {
        let skip = id.get().saturating_sub(self.before_oldest().get());
        self.events
            .range(usize::try_from(skip).map_or(self.events.len(), |s| s.min(self.events.len()))..)
    }

    /// Drops what is kept; ids go on. For checkers whose state must not grow with history.
    pub fn forget(&mut self) {
        self.events.clear();
    }

    fn before_oldest(&self) -> EventId {
        EventId::new(self.last.get() - self.events.len() as u64)
    }

    /// Up to `limit` events after a reader's place.
    ///
    /// # Errors
    /// [`CursorGone`] when events after the place were dropped, or the place is of another
    /// generation or was never given.
    pub(crate) fn page(
        &self,
        generation: Generation,
        after: After,
        limit: usize,
    ) -> Result<EventPage, CursorGone> {
        let cursor = |id| Cursor { generation, id };
        let from = match after {
            After::Oldest => self.before_oldest(),
            After::Latest => self.last,
            After::Cursor(place) => {
                let kept = self.before_oldest() <= place.id && place.id <= self.last;
                if place.generation != generation || !kept {
                    return Err(CursorGone {
                        oldest: cursor(self.before_oldest()),
                    });
                }
                place.id
            }
        };
        let events: Vec<Event> = self.since(from).take(limit).cloned().collect();
        let next = cursor(events.last().map_or(from, |event| event.id));
        Ok(EventPage {
            generation,
            events,
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(n: u64) -> Outbox {
        let mut outbox = Outbox::default();
        for i in 0..n {
            outbox.publish(Event::new(EventType::Requested), UnixMs::new(i as i64));
        }
        outbox
    }

    #[test]
    fn a_cursor_reads_on_where_it_stopped_and_a_gone_one_says_where_to_start() {
        let generation = Generation::new(7);
        let mut outbox = filled(5);
        let page = outbox.page(generation, After::Oldest, 2).unwrap();
        assert_eq!(page.events.len(), 2);
        assert_eq!(page.next.to_string(), "7-2");
        let rest = outbox
            .page(generation, After::Cursor(page.next), 10)
            .unwrap();
        assert_eq!(rest.events.first().unwrap().id, EventId::new(3));
        assert_eq!(rest.next.id, EventId::new(5));
        outbox.trim(UnixMs::new(3_600_004));
        assert_eq!(outbox.len(), 1);
        let gone = outbox
            .page(generation, After::Cursor(page.next), 10)
            .unwrap_err();
        assert_eq!(gone.oldest.id, EventId::new(4));
        assert_eq!(
            outbox
                .page(generation, After::Cursor(gone.oldest), 10)
                .unwrap()
                .events
                .len(),
            1
        );
        let elsewhere = Cursor {
            generation: Generation::new(8),
            id: EventId::new(5),
        };
        assert!(
            outbox
                .page(generation, After::Cursor(elsewhere), 10)
                .is_err()
        );
        let ahead = Cursor {
            generation,
            id: EventId::new(6),
        };
        assert!(outbox.page(generation, After::Cursor(ahead), 10).is_err());
    }

    #[test]
    fn the_outbox_keeps_a_stated_number_of_events() {
        let outbox = filled(KEPT_EVENTS as u64 + 10);
        assert_eq!(outbox.len(), KEPT_EVENTS);
        assert_eq!(outbox.last(), EventId::new(KEPT_EVENTS as u64 + 10));
    }

    #[test]
    fn cursors_are_read_strictly() {
        for bad in [
            "",
            "7",
            "-",
            "7-",
            "-7",
            "+7-1",
            "7-1-1",
            "7-9007199254740992",
            "latest",
        ] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
        assert_eq!("7-9".parse::<Cursor>().unwrap().to_string(), "7-9");
    }
}
