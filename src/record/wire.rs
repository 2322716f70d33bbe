//! The lines of a log: one JSON object each, with one field that names its kind.
//!
//! A window's snapshot is told against the one before it of the same region ([`Base`]): requests
//! and drivers that are new or changed in full, requests that stay by their id, drivers that left
//! by theirs. Own windows have a base of their own, since they may bring other drivers. Numbers are
//! the shortest decimals that read back to the same bits.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    entry::{CommandEntry, End, Gap, Header, RecordedWindow, SupplyEntry, WindowSource},
    recorder::QueuedWindow,
    wire_ahead::AheadLine,
    wire_decision::DecisionLine,
};
use crate::{
    config::RegionConfig,
    decision::{
        CoolDown, DriverSnapshot, Held, PendingRequest, Presence, RequestSnapshot, SideConstraint,
        SnapshotEdge, TripEnd, WarmStart, WindowSnapshot, by_age,
    },
    domain::{
        DriverId, DurationMs, RegionId, RequestId, UnixMs, VehicleClass, WindowId, WindowSeq,
    },
    supply::Position,
};

/// A full snapshot is written when the last one is this old.
pub(super) const FULL_EVERY: DurationMs = DurationMs::new(60_000);

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Header(Header),
    Command(Box<CommandEntry>),
    Supply(SupplyEntry),
    Window(Box<WindowLine>),
    Gap(Gap),
    End(End),
}

/// A window.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowLine {
    region: RegionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window_seq: Option<WindowSeq>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window_id: Option<WindowId>,
    source: WindowSource,
    now_ms: UnixMs,
    seed: u64,
    /// Whether this is the whole snapshot.
    full: bool,
    /// Absent: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<RegionConfig>,
    /// New or changed ones.
    requests: Vec<RequestLine>,
    /// Requests that stay, with the number of windows that left them over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept_requests: Vec<(RequestId, u32)>,
    /// New or changed ones.
    drivers: Vec<DriverLine>,
    /// Drivers of the snapshot before that are not in this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone_drivers: Vec<DriverId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edges: Option<Vec<SnapshotEdge>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<SideConstraint>,
    /// Absent: nothing is known of what comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<AheadLine>,
    /// Always in full; absent: solved from no prices.
    #[serde(default, skip_serializing_if = "WarmStart::is_empty")]
    warm_start: WarmStart,
    decision: DecisionLine,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claim_lost: Vec<RequestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repaired: Option<DecisionLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    request: Arc<RequestSnapshot>,
    #[serde(default, skip_serializing_if = "is_zero")]
    left_over: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

struct DriverLine(Arc<DriverSnapshot>);

impl Serialize for DriverLine {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        DriverFields::serialize(&self.0, s)
    }
}

impl<'de> Deserialize<'de> for DriverLine {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        DriverFields::deserialize(d).map(|driver| Self(Arc::new(driver)))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DriverSnapshot", deny_unknown_fields)]
struct DriverFields {
    id: DriverId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_ms: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vehicle_class: Option<VehicleClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acceptance_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_since_ms: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "is_default")]
    presence: Presence,
    #[serde(default, skip_serializing_if = "is_default")]
    held: Held,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cooldowns: Vec<CoolDown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trip_end: Option<TripEnd>,
}

/// The snapshot that the next one of the same region is told against.
pub(super) struct Base {
    full_at: UnixMs,
    snapshot: WindowSnapshot,
}

impl WindowLine {
    /// Tells a window against `base`, which becomes the window's snapshot.
    pub(super) fn tell(window: QueuedWindow, base: &mut Option<Base>) -> Self {
        let QueuedWindow {
            region,
            window_seq,
            window_id,
            source,
            snapshot,
            decision,
            claim_lost,
            repaired,
            weight: _,
        } = window;
        let now = snapshot.now();
        // a clock that went back also begins anew
        let before = base
            .as_ref()
            .filter(|base| (DurationMs::ZERO..FULL_EVERY).contains(&(now - base.full_at)));
        let full_at = before.map_or(now, |base| base.full_at);
        let before = before.map(|base| &base.snapshot);
        let (requests, kept_requests) = told_requests(&snapshot, before);
        let (drivers, gone_drivers) = told_drivers(&snapshot, before);
        let config = Some(snapshot.config());
        let config = config.filter(|config| before.is_none_or(|b| b.config() != *config));
        let line = Self {
            region,
            window_seq,
            window_id,
            source,
            now_ms: now,
            seed: snapshot.seed(),
            full: before.is_none(),
            config: config.cloned(),
            requests,
            kept_requests,
            drivers,
            gone_drivers,
            edges: snapshot.edges().map(<[_]>::to_vec),
            constraints: snapshot.constraints().to_vec(),
            ahead: AheadLine::tell(snapshot.foresight(), before.map(WindowSnapshot::foresight)),
            warm_start: snapshot.warm_start().clone(),
            decision: DecisionLine::tell(&decision, &snapshot),
            claim_lost,
            repaired: repaired.map(|repaired| DecisionLine::tell(&repaired, &snapshot)),
        };
        *base = Some(Base { full_at, snapshot });
        line
    }

    /// Which snapshots this one is told against: those of its region, own windows apart.
    pub(super) fn base_key(&self) -> (RegionId, bool) {
        (self.region.clone(), self.source == WindowSource::Own)
    }

    /// The window that was told against `base`, which becomes the window's snapshot.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub(super) fn read(self, base: &mut Option<Base>) -> Result<RecordedWindow, String> {
        let before = if self.full { None } else { base.as_ref() };
        if !self.full && before.is_none() {
            return Err("a snapshot is told against one that is not in the segment".into());
        }
        let full_at = before.map_or(self.now_ms, |base| base.full_at);
        let before = before.map(|base| &base.snapshot);
        let config = match (self.config, before) {
            (Some(config), _) => config,
            (None, Some(before)) => before.config().clone(),
            (None, None) => return Err("a full snapshot without a configuration".into()),
        };
        let foresight = self
            .ahead
            .map(|line| line.read(before.map(WindowSnapshot::foresight)))
            .unwrap_or_default();
        let snapshot = WindowSnapshot::new(
            self.now_ms,
            config,
            self.seed,
            read_requests(self.requests, self.kept_requests, before)?,
            read_drivers(self.drivers, &self.gone_drivers, before)?,
            self.edges,
        )
        .and_then(|snapshot| snapshot.with_constraints(self.constraints))
        .and_then(|snapshot| snapshot.with_foresight(foresight))
        .and_then(|snapshot| snapshot.with_warm_start(self.warm_start))
        .map_err(|errors| errors.first().map_or(String::new(), ToString::to_string))?;
        let decision = self.decision.read(&snapshot)?;
        let repaired = self.repaired.map(|line| line.read(&snapshot)).transpose()?;
        *base = Some(Base {
            full_at,
            snapshot: snapshot.clone(),
        });
        Ok(RecordedWindow {
            region: self.region,
            window_seq: self.window_seq,
            window_id: self.window_id,
            source: self.source,
            snapshot,
            decision,
            claim_lost: self.claim_lost,
            repaired,
        })
    }
}

/// Both lists are in the order of age, so one pass over both finds what stayed.
fn told_requests(
    snapshot: &WindowSnapshot,
    before: Option<&WindowSnapshot>,
) -> (Vec<RequestLine>, Vec<(RequestId, u32)>) {
    let mut known = before
        .map_or(&[][..], WindowSnapshot::requests)
        .iter()
        .peekable();
    let (mut told, mut kept) = (Vec::new(), Vec::new());
    for pending in snapshot.requests() {
        let request = &pending.request;
        while known
            .next_if(|k| by_age(&k.request, request).is_lt())
            .is_some()
        {}
        let same = known
            .peek()
            .is_some_and(|k| Arc::ptr_eq(&k.request, request) || k.request == *request);
        if same {
            kept.push((request.id.clone(), pending.left_over));
        } else {
            told.push(RequestLine {
                request: Arc::clone(request),
                left_over: pending.left_over,
            });
        }
    }
    (told, kept)
}

/// Both lists are in the order of ids.
fn told_drivers(
    snapshot: &WindowSnapshot,
    before: Option<&WindowSnapshot>,
) -> (Vec<DriverLine>, Vec<DriverId>) {
    let mut known = before
        .map_or(&[][..], WindowSnapshot::drivers)
        .iter()
        .peekable();
    let (mut told, mut gone) = (Vec::new(), Vec::new());
    for driver in snapshot.drivers() {
        while let Some(left) = known.next_if(|k| k.id < driver.id) {
            gone.push(left.id.clone());
        }
        let same = known.next_if(|k| k.id == driver.id);
        if !same.is_some_and(|k| Arc::ptr_eq(k, driver) || k == driver) {
            told.push(DriverLine(Arc::clone(driver)));
        }
    }
    gone.extend(known.map(|left| left.id.clone()));
    (told, gone)
}

fn read_requests(
    told: Vec<RequestLine>,
    kept: Vec<(RequestId, u32)>,
    before: Option<&WindowSnapshot>,
) -> Result<Vec<PendingRequest>, String> {
    let known: BTreeMap<&RequestId, &Arc<RequestSnapshot>> = before
        .map_or(&[][..], WindowSnapshot::requests)
        .iter()
        .map(|pending| (&pending.request.id, &pending.request))
        .collect();
    let mut requests: Vec<PendingRequest> = told
        .into_iter()
        .map(|line| PendingRequest {
            request: line.request,
            left_over: line.left_over,
        })
        .collect();
    for (id, left_over) in kept {
        let request = known
            .get(&id)
            .ok_or_else(|| format!("the request {id:?} stays, but was not there before"))?;
        requests.push(PendingRequest {
            request: Arc::clone(request),
            left_over,
        });
    }
    Ok(requests)
}

fn read_drivers(
    told: Vec<DriverLine>,
    gone: &[DriverId],
    before: Option<&WindowSnapshot>,
) -> Result<Vec<Arc<DriverSnapshot>>, String> {
    let mut drivers: BTreeMap<DriverId, Arc<DriverSnapshot>> = before
        .map_or(&[][..], WindowSnapshot::drivers)
        .iter()
        .map(|driver| (driver.id.clone(), Arc::clone(driver)))
        .collect();
    for id in gone {
        drivers
            .remove(id)
            .ok_or_else(|| format!("the driver {id:?} left, but was not there before"))?;
    }
    for DriverLine(driver) in told {
        drivers.insert(driver.id.clone(), driver);
    }
    Ok(drivers.into_values().collect())
}
