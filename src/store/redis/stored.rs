//! Records as the scripts keep them, for reading.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::wire::{WireError, unpack};
use crate::{
    domain::{
        ConfigVersion, CostMs, DriverId, DurationMs, Epoch, EventId, Fence, Finite, Generation,
        Place, UnixMs, VehicleClass, WindowId, WindowSeq,
    },
    protocol::{
        AnnouncedEnd, Cell, Claim, ClaimOutcome, ClaimState, ClaimTrace, Cooldown, DriverRecord,
        DriverStatus, Event, EventType, Fingerprint, IntakePlace, Leader, Presence, Reason,
        RequestRecord, RequestState, Source, TripEnd,
    },
};

/// The region's own state.
#[derive(Debug, Deserialize)]
pub(super) struct StoredRegion {
    pub(super) generation: Generation,
    #[serde(default)]
    pub(super) quarantined_until_ms: Option<UnixMs>,
    pub(super) epoch: Epoch,
    #[serde(default)]
    pub(super) leader: Option<Leader>,
    pub(super) last_sealed: WindowSeq,
    pub(super) last_event: EventId,
    pub(super) config_version: ConfigVersion,
    pub(super) double_claims: u64,
    pub(super) fences_not_risen: u64,
}

/// A value, or `false` where Lua cannot keep a hole in a list.
struct Maybe<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either<T> {
            Nothing(#[expect(dead_code, reason = "it is always false")] bool),
            Just(T),
        }
        Ok(Self(match Either::deserialize(d)? {
            Either::Nothing(_) => None,
            Either::Just(value) => Some(value),
        }))
    }
}

/// A newest ping, in the order of `ping.lua`.
#[derive(Deserialize)]
struct StoredPresence(
    f64,
    f64,
    String,
    UnixMs,
    UnixMs,
    u8,
    Maybe<Finite>,
    Maybe<Finite>,
    Maybe<VehicleClass>,
    Maybe<Finite>,
    Maybe<UnixMs>,
    Maybe<Vec<f64>>,
);

impl StoredPresence {
    fn presence(self) -> Result<Presence, WireError> {
        let Self(
            lat,
            lng,
            cell,
            at_ms,
            received_ms,
            status,
            heading,
            speed,
            class,
            rate,
            idle,
            end,
        ) = self;
        let seen_ms = at_ms.min(received_ms);
        let place = |lat, lng| {
            Place::new(lat, lng).map_err(|_| WireError::Missing("a place that was kept"))
        };
        Ok(Presence {
            place: place(lat, lng)?,
            cell: u64::from_str_radix(&cell, 16)
                .map(Cell::of_index)
                .map_err(|_| WireError::Missing("a cell that was kept"))?,
            at_ms,
            received_ms,
            status: match status {
                0 => DriverStatus::Available,
                1 => DriverStatus::Busy,
                _ => DriverStatus::Offline,
            },
            heading_deg: heading.0,
            speed_kmh: speed.0,
            vehicle_class: class.0,
            acceptance_rate: rate.0,
            idle_since_ms: idle.0,
            trip_end: match end.0.as_deref() {
                Some([lat, lng, at_ms, rest @ ..]) => Some(AnnouncedEnd {
                    end: TripEnd {
                        place: place(*lat, *lng)?,
                        at_ms: UnixMs::new(*at_ms as i64),
                    },
                    // older scripts did not keep it: then the newest ping bounds it
                    told_ms: match rest {
                        [told_ms, ..] => UnixMs::new(*told_ms as i64),
                        [] => seen_ms,
                    },
                }),
                _ => None,
            },
        })
    }
}

/// What the protocol keeps of a driver beside its presence.
#[derive(Default, Deserialize)]
struct StoredDriver {
    #[serde(default)]
    claim: Option<Claim>,
    #[serde(default)]
    cooldowns: Vec<Cooldown>,
    #[serde(default)]
    undeliverable_ping: Option<UnixMs>,
}

/// A driver, from its fields in `pos` and `drivers`.
pub(super) fn driver(pos: &[u8], record: Option<&[u8]>) -> Result<DriverRecord, WireError> {
    let presence = if pos.is_empty() {
        None
    } else {
        Some(unpack::<StoredPresence>(pos)?.presence()?)
    };
    let stored = match record {
        Some(record) => unpack::<StoredDriver>(record)?,
        None => StoredDriver::default(),
    };
    Ok(DriverRecord {
        presence,
        claim: stored.claim,
        cooldowns: stored.cooldowns,
        undeliverable_ping: stored.undeliverable_ping,
    })
}

/// The claim of a driver, from its field in `drivers`.
pub(super) fn claim(record: &[u8]) -> Result<Option<Claim>, WireError> {
    Ok(unpack::<StoredDriver>(record)?.claim)
}

/// A request; the names are short because there are many.
#[derive(Deserialize)]
struct StoredRequest {
    #[serde(rename = "d", default)]
    draft: Option<String>,
    #[serde(rename = "fp", default)]
    fingerprint: Option<Fingerprint>,
    #[serde(rename = "at")]
    requested_at_ms: UnixMs,
    #[serde(rename = "dl")]
    deadline_ms: UnixMs,
    #[serde(rename = "st")]
    state: RequestState,
    #[serde(rename = "en")]
    entered: WindowSeq,
    #[serde(rename = "iw", default)]
    intake_window: Option<WindowSeq>,
    #[serde(rename = "ic", default)]
    intake_closes_at_ms: Option<UnixMs>,
    #[serde(rename = "ow", default)]
    own_window: Option<WindowId>,
    #[serde(rename = "n")]
    attempts: u32,
    #[serde(rename = "cl")]
    claims: Vec<StoredTrace>,
    #[serde(rename = "ed", default)]
    ended_at_ms: Option<UnixMs>,
}

/// A claim as its request remembers it.
#[derive(Deserialize)]
struct StoredTrace {
    #[serde(rename = "d")]
    driver_id: DriverId,
    #[serde(rename = "f")]
    fence: Fence,
    #[serde(rename = "o")]
    outcome: ClaimOutcome,
    #[serde(rename = "c", default)]
    confirmed_ms: Option<UnixMs>,
    #[serde(rename = "e", default)]
    ended_ms: Option<UnixMs>,
    #[serde(rename = "l")]
    left: ClaimState,
    #[serde(rename = "b", default)]
    completed_by_call: bool,
}

/// A request, from its field in `requests`.
pub(super) fn request(record: &[u8]) -> Result<RequestRecord, WireError> {
    let stored: StoredRequest = unpack(record)?;
    let draft = match &stored.draft {
        Some(draft) => Some(Arc::new(serde_json::from_str(draft)?)),
        None => None,
    };
    let claims = stored.claims.into_iter().map(|trace| ClaimTrace {
        driver_id: trace.driver_id,
        fence: trace.fence,
        outcome: trace.outcome,
        confirmed_ms: trace.confirmed_ms,
        ended_ms: trace.ended_ms,
        left: trace.left,
        completed_by_call: trace.completed_by_call,
    });
    Ok(RequestRecord {
        draft,
        fingerprint: stored.fingerprint,
        requested_at_ms: stored.requested_at_ms,
        deadline_ms: stored.deadline_ms,
        state: stored.state,
        entered: stored.entered,
        intake: stored.intake_window.zip(stored.intake_closes_at_ms).map(
            |(window_seq, closes_at_ms)| IntakePlace {
                window_seq,
                closes_at_ms,
            },
        ),
        own_window: stored.own_window,
        attempts: stored.attempts,
        claims: claims.collect(),
        ended_at_ms: stored.ended_at_ms,
    })
}

/// An event, from its stream id (`<event id>-0`) and fields.
pub(super) fn event<'a>(
    id: &str,
    fields: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Event, WireError> {
    let number = id.split('-').next().unwrap_or_default();
    let mut event = Event::new(EventType::Requested);
    event.id = whole(number).map(EventId::new)?;
    for (name, value) in fields {
        let at = |value| signed(value).map(UnixMs::new);
        match name {
            "type" => event.kind = word(value)?,
            "at" => event.at_ms = at(value)?,
            "request" => event.request_id = Some(word(value)?),
            "driver" => event.driver_id = Some(word(value)?),
            "fence" => event.fence = Some(Fence::new(whole(value)?)),
            "eta" => event.eta = Some(DurationMs::new(signed(value)?)),
            "cost" => event.cost = Some(CostMs::new(signed(value)?)),
            "lease_until" => event.lease_until_ms = Some(at(value)?),
            "lease" => event.lease_ms = Some(DurationMs::new(signed(value)?)),
            "window" => event.window_seq = Some(WindowSeq::new(whole(value)?)),
            "source" => event.source = Some(word::<Source>(value)?),
            "reason" => event.reason = Some(word::<Reason>(value)?),
            "actor" => event.actor = Some(value.into()),
            "changes" => event.changes = Some(value.into()),
            "config_version" => event.config_version = Some(ConfigVersion::new(whole(value)?)),
            // told by a newer node of the same store
            _ => {}
        }
    }
    Ok(event)
}

fn whole(digits: &str) -> Result<u64, WireError> {
    digits
        .parse()
        .map_err(|_| WireError::Missing("a number of an event"))
}

fn signed(digits: &str) -> Result<i64, WireError> {
    digits
        .parse()
        .map_err(|_| WireError::Missing("a number of an event"))
}

/// A value that is written as a word: an id or one of an enum.
fn word<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, WireError> {
    let value = serde::de::value::StrDeserializer::<serde_json::Error>::new(text);
    Ok(T::deserialize(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_older_scripts_kept_was_told_by_the_newest_ping_at_the_latest() {
        let kept = |end: &[f64]| {
            let (none, cell) = (false, "8861892e3dfffff");
            let at = (1_796_044_599_485_i64, 1_796_044_599_400_i64);
            let pos = (
                1.0, 2.0, cell, at.0, at.1, 1, none, none, none, none, none, end,
            );
            let pos = rmp_serde::to_vec(&pos).unwrap();
            driver(&pos, None).unwrap().presence.unwrap().trip_end
        };
        let end = [3.0, 4.0, 1_796_044_700_000.0];
        let told = |told_ms| {
            Some(AnnouncedEnd {
                end: TripEnd {
                    place: Place::new(3.0, 4.0).unwrap(),
                    at_ms: UnixMs::new(1_796_044_700_000),
                },
                told_ms: UnixMs::new(told_ms),
            })
        };
        assert_eq!(kept(&end), told(1_796_044_599_400));
        let end = [3.0, 4.0, 1_796_044_700_000.0, 1_796_044_590_000.0];
        assert_eq!(kept(&end), told(1_796_044_590_000));
    }
}
