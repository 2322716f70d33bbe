//! Drivers: presence from pings, and the record that also carries the claim and the cool-downs.
//!
//! Presence and claim never change each other: a ping does not look at the claim, and a claim's end
//! leaves the presence as the last ping told it.

use h3o::LatLng;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    claim::Claim,
    due::DueKey,
    mutation::Mutation,
    region::Region,
    rules::{MAX_DRIVERS, MAX_PINGS_A_STEP, REMEMBERED_COOLDOWNS, RegionRules},
    trip_end::{AnnouncedEnd, TripEnd},
};
use crate::domain::{
    DriverId, DurationMs, Finite, Place, RequestId, RiderId, StoreTime, UnixMs, VehicleClass,
};
use crate::supply::CELL_RESOLUTION;

/// An H3 cell of [`CELL_RESOLUTION`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cell(u64);

impl Cell {
    /// The cell in which `place` lies.
    pub fn of(place: Place) -> Self {
        // a checked place is always finite, which is all that h3o asks
        Self(
            LatLng::new(place.lat(), place.lng())
                .map_or(0, |at| at.to_cell(CELL_RESOLUTION).into()),
        )
    }

    /// A cell of its H3 index.
    pub(crate) const fn of_index(index: u64) -> Self {
        Self(index)
    }

    /// The H3 index as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What a driver says of itself.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum DriverStatus {
    /// Ready for a request.
    #[default]
    Available,
    /// On a trip that this service does not know.
    Busy,
    /// Not working.
    Offline,
}

/// An optional field of an update: left out keeps the value, `null` clears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Patch<T> {
    /// The value stays.
    #[default]
    Keep,
    /// The value goes.
    Clear,
    /// The value is this from now on.
    Set(T),
}

impl<T> Patch<T> {
    /// Whether the field is left out; for `skip_serializing_if`.
    pub const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    fn map<U>(self, told: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Keep => Patch::Keep,
            Self::Clear => Patch::Clear,
            Self::Set(value) => Patch::Set(told(value)),
        }
    }

    fn onto(self, value: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *value = None,
            Self::Set(new) => *value = Some(new),
        }
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep | Self::Clear => s.serialize_none(),
            Self::Set(value) => value.serialize(s),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(d)?.map_or(Self::Clear, Self::Set))
    }
}

/// A driver's report of itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ping {
    /// Who.
    pub id: DriverId,
    /// Where.
    pub place: Place,
    /// When, by the driver's clock.
    pub at_ms: UnixMs,
    /// What the driver says of itself.
    #[serde(default)]
    pub status: DriverStatus,
    /// Heading in degrees from north.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub heading_deg: Patch<Finite>,
    /// Speed in km/h.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub speed_kmh: Patch<Finite>,
    /// The class of the car.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub vehicle_class: Patch<VehicleClass>,
    /// Share of offers that the driver accepts, 0..=1.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub acceptance_rate: Patch<Finite>,
    /// Since when the driver has been without a trip.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub idle_since_ms: Patch<UnixMs>,
    /// Where and when the present trip ends.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub trip_end: Patch<TripEnd>,
}

impl Ping {
    /// A ping that tells the place alone.
    pub fn at(id: DriverId, place: Place, at_ms: UnixMs) -> Self {
        Self {
            id,
            place,
            at_ms,
            status: DriverStatus::Available,
            heading_deg: Patch::Keep,
            speed_kmh: Patch::Keep,
            vehicle_class: Patch::Keep,
            acceptance_rate: Patch::Keep,
            idle_since_ms: Patch::Keep,
            trip_end: Patch::Keep,
        }
    }
}

/// What is known of a driver from its pings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Presence {
    /// Newest place.
    pub place: Place,
    /// The cell of the place.
    pub cell: Cell,
    /// When the newest ping was sent, by the driver's clock.
    pub at_ms: UnixMs,
    /// When it was received, by the store's clock.
    pub received_ms: UnixMs,
    /// What the driver said of itself.
    pub status: DriverStatus,
    /// Heading in degrees.
    pub heading_deg: Option<Finite>,
    /// Speed in km/h.
    pub speed_kmh: Option<Finite>,
    /// The class of the car.
    pub vehicle_class: Option<VehicleClass>,
    /// Share of offers accepted.
    pub acceptance_rate: Option<Finite>,
    /// Since when without a trip.
    pub idle_since_ms: Option<UnixMs>,
    /// Where and when a trip ends, as it was told last; of which trip, says its time.
    pub trip_end: Option<AnnouncedEnd>,
}

impl Presence {
    /// From when on the place ages: min(sent, received), so that a fast clock gains nothing.
    pub fn seen_ms(&self) -> UnixMs {
        self.at_ms.min(self.received_ms)
    }

    /// Whether the place still counts at `now`.
    pub fn is_fresh(&self, rules: &RegionRules, now: UnixMs) -> bool {
        now - self.seen_ms() <= rules.max_location_age_ms
    }
}

/// A pair, or a driver and a rider, that is kept apart for a while.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cooldown {
    /// The request that did not work out.
    pub request_id: RequestId,
    /// Its rider.
    pub rider_id: Option<RiderId>,
    /// Until when (exclusive).
    pub until_ms: UnixMs,
}

impl Cooldown {
    /// Whether it keeps a request (of a rider) away at `now`.
    pub fn covers(&self, request: &RequestId, rider: Option<&RiderId>, now: UnixMs) -> bool {
        let same_rider = rider.is_some() && self.rider_id.as_ref() == rider;
        now < self.until_ms && (self.request_id == *request || same_rider)
    }
}

/// A driver as the region knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct DriverRecord {
    /// From pings; absent only for a driver that was told in a reconcile.
    pub presence: Option<Presence>,
    /// From the protocol.
    pub claim: Option<Claim>,
    /// The last few, oldest first.
    pub cooldowns: Vec<Cooldown>,
    /// An offer did not reach the driver: no other before a ping newer than this one.
    pub undeliverable_ping: Option<UnixMs>,
}

impl DriverRecord {
    /// Whether the driver says it is ready and no undelivered offer speaks against it.
    pub fn is_ready(&self) -> bool {
        self.presence.as_ref().is_some_and(|presence| {
            presence.status == DriverStatus::Available
                && self
                    .undeliverable_ping
                    .is_none_or(|ping| ping < presence.at_ms)
        })
    }

    /// Whether a request (of a rider) is kept away at `now`.
    pub fn cools_down(&self, request: &RequestId, rider: Option<&RiderId>, now: UnixMs) -> bool {
        self.cooldowns.iter().any(|c| c.covers(request, rider, now))
    }

    pub(crate) fn cool_down(&mut self, cooldown: Cooldown) {
        self.cooldowns
            .retain(|c| c.request_id != cooldown.request_id);
        if self.cooldowns.len() >= REMEMBERED_COOLDOWNS {
            self.cooldowns.remove(0);
        }
        self.cooldowns.push(cooldown);
    }
}

/// A number of pings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pings {
    /// At most [`MAX_PINGS_A_STEP`]; more are rejected one by one.
    pub pings: Vec<Ping>,
}

/// Why one ping or request of a batch was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryCode {
    /// The id is known with another body.
    IdConflict,
    /// The id stands twice in the batch.
    DuplicateInBatch,
    /// The region holds as many as it may.
    RegionFull,
    /// The ping is from the future.
    AtMsInFuture,
    /// The request is from the future.
    RequestedAtInFuture,
    /// The request has waited too long already.
    AlreadyExpired,
    /// The batch is longer than one step takes.
    TooLarge,
}

impl EntryCode {
    /// What it means, for people.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::IdConflict => "the id is known with another body",
            Self::DuplicateInBatch => "the id stands twice in the batch",
            Self::RegionFull => "the region holds as many as it may",
            Self::AtMsInFuture => {
                "at_ms is ahead of the service's clock by more than max_clock_skew_ms"
            }
            Self::RequestedAtInFuture => {
                "requested_at_ms is ahead of the service's clock by more than max_clock_skew_ms"
            }
            Self::AlreadyExpired => "the request has waited longer than its max_wait_ms already",
            Self::TooLarge => "the batch is longer than one step takes",
        }
    }
}

/// One entry of a batch that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rejected<Id> {
    /// Its place in the batch.
    pub index: usize,
    /// Its id.
    pub id: Id,
    /// Why.
    pub code: EntryCode,
}

/// What became of a number of pings: `accepted + stale + rejected` is the number sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PingAnswer {
    /// Newer than what was known.
    pub accepted: u32,
    /// Of the accepted: into another cell, or new.
    pub moved: u32,
    /// Not newer than what was known.
    pub stale: u32,
    /// Not usable.
    pub rejected: Vec<Rejected<DriverId>>,
}

enum Pinged {
    Moved,
    Accepted,
    Stale,
    Rejected(EntryCode),
}

/// Takes a driver offline.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RemoveDriver {
    /// Who.
    pub driver_id: DriverId,
}

/// Why a driver cannot be taken offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RemoveDriverRefusal {
    /// The region does not know the driver.
    #[error("the driver is not known")]
    UnknownDriver,
    /// The driver is held for a request: end the claim first.
    #[error("the driver is held for a request")]
    Held,
}

impl Region {
    /// Takes pings in. Each stands alone: a bad one costs the others nothing.
    pub(crate) fn ping(&mut self, pings: Pings, now: StoreTime) -> PingAnswer {
        let mut answer = PingAnswer::default();
        for (index, ping) in pings.pings.into_iter().enumerate() {
            let id = ping.id.clone();
            let pinged = if index < MAX_PINGS_A_STEP {
                self.ping_one(ping, now.ms())
            } else {
                Pinged::Rejected(EntryCode::TooLarge)
            };
            match pinged {
                Pinged::Moved => {
                    answer.moved += 1;
                    answer.accepted += 1;
                }
                Pinged::Accepted => answer.accepted += 1,
                Pinged::Stale => answer.stale += 1,
                Pinged::Rejected(code) => answer.rejected.push(Rejected { index, id, code }),
            }
        }
        answer
    }

    fn ping_one(&mut self, ping: Ping, now: UnixMs) -> Pinged {
        if ping.at_ms > now + self.rules.max_clock_skew_ms {
            return Pinged::Rejected(EntryCode::AtMsInFuture);
        }
        let stale_wins = self.has(Mutation::StalePingWins);
        if let Some(record) = self.drivers.get_mut(&ping.id) {
            if let Some(presence) = record.presence.as_mut() {
                if ping.at_ms <= presence.at_ms && !stale_wins {
                    return Pinged::Stale;
                }
                return if presence.update(ping, now) {
                    Pinged::Moved
                } else {
                    Pinged::Accepted
                };
            }
        } else if self.drivers.len() >= MAX_DRIVERS {
            return Pinged::Rejected(EntryCode::RegionFull);
        }
        let id = ping.id.clone();
        let record = self.drivers.entry(id.clone()).or_default();
        record.presence = Some(Presence::first(ping, now));
        self.due
            .set_if_absent(DueKey::Driver(id), now + self.rules.driver_ttl_ms);
        Pinged::Moved
    }

    /// Takes a driver offline as a ping of now would; the record stays as a tombstone for
    /// `driver_ttl_ms`, so that a ping on its way does not bring the driver back.
    pub(crate) fn remove_driver(
        &mut self,
        removal: &RemoveDriver,
        now: StoreTime,
    ) -> Result<(), RemoveDriverRefusal> {
        self.touch_driver(&removal.driver_id, now);
        let forget = self.has(Mutation::TombstoneIgnored);
        let record = self
            .drivers
            .get_mut(&removal.driver_id)
            .ok_or(RemoveDriverRefusal::UnknownDriver)?;
        if record.claim.is_some() {
            return Err(RemoveDriverRefusal::Held);
        }
        let Some(presence) = record.presence.as_mut() else {
            return Err(RemoveDriverRefusal::UnknownDriver);
        };
        presence.status = DriverStatus::Offline;
        presence.at_ms = presence.at_ms.max(now.ms());
        presence.received_ms = now.ms();
        if forget {
            self.drivers.remove(&removal.driver_id);
        }
        Ok(())
    }

    /// When the record of an unclaimed driver goes; one that never pinged, as soon as it is due.
    pub(crate) fn driver_goes_at(&self, record: &DriverRecord) -> Option<UnixMs> {
        let presence = record.presence.as_ref()?;
        Some(presence.received_ms + self.rules.driver_ttl_ms)
    }

    /// How long an unreachable pair stays apart.
    pub(crate) fn cooldown_until(&self, now: UnixMs) -> UnixMs {
        now + self.rules.decline_cooldown_ms.max(DurationMs::ZERO)
    }
}

impl Presence {
    fn first(ping: Ping, now: UnixMs) -> Self {
        let mut presence = Self {
            place: ping.place,
            cell: Cell::of(ping.place),
            at_ms: ping.at_ms,
            received_ms: now,
            status: ping.status,
            heading_deg: None,
            speed_kmh: None,
            vehicle_class: None,
            acceptance_rate: None,
            idle_since_ms: None,
            trip_end: None,
        };
        presence.update(ping, now);
        presence
    }

    /// Merges a newer ping; says whether the driver crossed into another cell.
    fn update(&mut self, ping: Ping, now: UnixMs) -> bool {
        let crossed = ping.place != self.place && {
            let cell = Cell::of(ping.place);
            let crossed = cell != self.cell;
            self.cell = cell;
            crossed
        };
        self.place = ping.place;
        self.at_ms = ping.at_ms;
        self.received_ms = now;
        self.status = ping.status;
        ping.heading_deg.onto(&mut self.heading_deg);
        ping.speed_kmh.onto(&mut self.speed_kmh);
        ping.vehicle_class.onto(&mut self.vehicle_class);
        ping.acceptance_rate.onto(&mut self.acceptance_rate);
        ping.idle_since_ms.onto(&mut self.idle_since_ms);
        let told_ms = self.seen_ms();
        let announced = ping.trip_end.map(|end| AnnouncedEnd { end, told_ms });
        announced.onto(&mut self.trip_end);
        crossed
    }
}
