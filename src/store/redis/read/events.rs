//! Reading the outbox.

use redis::Value;

use super::{Head, Reader};
use crate::{
    domain::EventId,
    protocol::{After, Cursor, CursorGone, Event, EventPage, MAX_PAGE},
    store::{
        StoreError,
        redis::{
            reply::{count, items, list, pairs, text},
            stored,
            wire::WireError,
        },
    },
};

impl Reader<'_> {
    pub(super) async fn events(
        &self,
        after: After,
        limit: usize,
    ) -> Result<Result<EventPage, CursorGone>, StoreError> {
        let from = match after {
            After::Oldest => "-".to_owned(),
            // the newest is read with the state: nothing comes after it
            After::Latest => "+".to_owned(),
            After::Cursor(place) => format!("{}-0", place.id.next()),
        };
        let limit = limit.min(MAX_PAGE);
        let mut pipeline = self.transaction();
        pipeline.cmd("XLEN").arg(&self.keys.events);
        pipeline
            .cmd("XRANGE")
            .arg((&self.keys.events, from, "+", "COUNT", limit.max(1)));
        let values = self.run(&pipeline).await?;
        let [_, head, kept, found] = items::<4>(&values)?;
        let Some(head) = Head::read(head)? else {
            return Err(StoreError::UnknownRegion);
        };
        let region = &head.region;
        let generation = region.generation;
        let last = region.last_event;
        let before_oldest = EventId::new(last.get().saturating_sub(count(kept)?));
        let cursor = |id| Cursor { generation, id };
        let from = match after {
            After::Oldest => before_oldest,
            After::Latest => last,
            After::Cursor(place) => {
                let kept = before_oldest <= place.id && place.id <= last;
                if place.generation != generation || !kept {
                    return Ok(Err(CursorGone {
                        oldest: cursor(before_oldest),
                    }));
                }
                place.id
            }
        };
        let mut events: Vec<Event> = Vec::new();
        if after != After::Latest {
            for entry in list(found)?.iter().take(limit) {
                events.push(told_event(entry)?);
            }
        }
        let next = cursor(events.last().map_or(from, |event| event.id));
        Ok(Ok(EventPage {
            generation,
            events,
            next,
        }))
    }
}

fn told_event(entry: &Value) -> Result<Event, WireError> {
    let [id, fields] = items::<2>(list(entry)?)?;
    let mut named = Vec::new();
    for (name, value) in pairs(fields)? {
        named.push((text(name)?, text(value)?));
    }
    stored::event(text(id)?, named.into_iter())
}
