//! Commands on their way to the scripts.

use serde::{Serialize, ser::Serializer};

use super::{WireError, pack};
use crate::{
    domain::{
        ConfigVersion, CostMs, DriverId, DurationMs, Finite, Generation, Nonce, RequestId, RiderId,
        UnixMs, VehicleClass, WindowId, WindowSeq,
    },
    protocol::{
        Cell, ClaimBatch, ClaimOwnBatch, Command, Configure, ConfigureRefusal, DriverStatus,
        Fingerprint, Intake, MAX_DOCUMENT_BYTES, Owner, Patch, Ping, Pings, Reconcile,
        RequestDraft, Seal, TripEnd, rules::MAX_DECISIONS_BYTES,
    },
};

/// A request as the scripts keep it.
#[derive(Serialize)]
struct WireDraft<'a> {
    id: &'a RequestId,
    fp: Fingerprint,
    body: String,
    rider: Option<&'a RiderId>,
    at: Option<UnixMs>,
    wait: Option<DurationMs>,
    exclude: Option<&'a [DriverId]>,
}

impl<'a> WireDraft<'a> {
    fn new(draft: &'a RequestDraft) -> Result<Self, WireError> {
        let exclude = &draft.exclude_driver_ids;
        Ok(Self {
            id: &draft.id,
            fp: draft.fingerprint(),
            body: serde_json::to_string(draft)?,
            rider: draft.rider_id.as_ref(),
            at: draft.requested_at_ms,
            wait: draft.max_wait_ms,
            exclude: (!exclude.is_empty()).then_some(exclude),
        })
    }

    fn all(drafts: &'a [RequestDraft]) -> Result<Vec<Self>, WireError> {
        drafts.iter().map(Self::new).collect()
    }
}

/// A field of a ping: left out keeps, `false` clears.
enum Field<T> {
    Clear,
    Set(T),
}

impl<T: Serialize> Serialize for Field<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Clear => s.serialize_bool(false),
            Self::Set(value) => value.serialize(s),
        }
    }
}

fn field<T: Clone>(patch: &Patch<T>) -> Option<Field<T>> {
    match patch {
        Patch::Keep => None,
        Patch::Clear => Some(Field::Clear),
        Patch::Set(value) => Some(Field::Set(value.clone())),
    }
}

#[derive(Serialize)]
struct WirePing<'a> {
    id: &'a DriverId,
    lat: f64,
    lng: f64,
    cell: String,
    at: UnixMs,
    status: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    heading: Option<Field<Finite>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<Field<Finite>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Field<VehicleClass>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acceptance: Option<Field<Finite>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<Field<UnixMs>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trip_end: Option<Field<[f64; 3]>>,
}

impl<'a> WirePing<'a> {
    fn new(ping: &'a Ping) -> Self {
        Self {
            id: &ping.id,
            lat: ping.place.lat(),
            lng: ping.place.lng(),
            cell: cell_text(Cell::of(ping.place)),
            at: ping.at_ms,
            status: status_code(ping.status),
            heading: field(&ping.heading_deg),
            speed: field(&ping.speed_kmh),
            class: field(&ping.vehicle_class),
            acceptance: field(&ping.acceptance_rate),
            idle: field(&ping.idle_since_ms),
            trip_end: match &ping.trip_end {
                Patch::Keep => None,
                Patch::Clear => Some(Field::Clear),
                Patch::Set(end) => Some(Field::Set(trip_end_fields(end))),
            },
        }
    }
}

/// Where and when a trip ends, as three numbers; an instant below 2^53 is a whole `f64`.
fn trip_end_fields(end: &TripEnd) -> [f64; 3] {
    [end.place.lat(), end.place.lng(), end.at_ms.get() as f64]
}

/// A cell as scripts compare it: its H3 index has more digits than Lua's numbers.
fn cell_text(cell: Cell) -> String {
    format!("{:x}", cell.get())
}

/// A status as the scripts write it.
const fn status_code(status: DriverStatus) -> u8 {
    match status {
        DriverStatus::Available => 0,
        DriverStatus::Busy => 1,
        DriverStatus::Offline => 2,
    }
}

#[derive(Serialize)]
struct WireBatch<'a> {
    window_seq: WindowSeq,
    owner: Owner,
    batch_no: u32,
    fp: Fingerprint,
    pairs: Vec<(&'a RequestId, &'a DriverId, DurationMs, CostMs)>,
}

#[derive(Serialize)]
struct WireOwnPair<'a> {
    request: WireDraft<'a>,
    driver: &'a DriverId,
    eta: DurationMs,
    cost: CostMs,
}

#[derive(Serialize)]
struct WireOwnBatch<'a> {
    window_id: &'a WindowId,
    runner: Nonce,
    batch_no: u32,
    fp: Fingerprint,
    lease_ms: Option<DurationMs>,
    pairs: Vec<WireOwnPair<'a>>,
}

#[derive(Serialize)]
struct WireSeal<'a> {
    window_seq: WindowSeq,
    owner: Owner,
    body: String,
    decisions: Option<&'a str>,
}

#[derive(Serialize)]
struct WireConfigure<'a> {
    rules: String,
    document: &'a str,
    window_ms: DurationMs,
    expected: Option<ConfigVersion>,
    invalid: bool,
    actor: &'a str,
    changes: &'a str,
}

#[derive(Serialize)]
struct WireReconcile<'a> {
    generation: Generation,
    on_trip: Vec<(&'a DriverId, &'a RequestId)>,
    pending: Vec<WireDraft<'a>>,
    done: bool,
}

/// The command as its script reads it.
pub(in crate::store::redis) fn encode(command: &Command) -> Result<Vec<u8>, WireError> {
    match command {
        Command::Ping(pings) => encode_pings(pings),
        Command::RemoveDriver(input) => pack(input),
        Command::Intake(input) => encode_intake(input),
        Command::Cancel(input) => pack(input),
        Command::Confirm(input) => pack(input),
        Command::Release(input) => pack(input),
        Command::Complete(input) => pack(input),
        Command::Extend(input) => pack(input),
        Command::TakeWindow(input) => pack(input),
        Command::ClaimBatch(input) => encode_batch(input),
        Command::Seal(input) => encode_seal(input),
        Command::BeginOwn(input) => pack(input),
        Command::ClaimOwn(input) => encode_own_batch(input),
        Command::FinishOwn(input) => pack(input),
        Command::Acquire(input) => pack(input),
        Command::Renew(input) => pack(input),
        Command::Resign(input) => pack(input),
        Command::Configure(input) => encode_configure(input),
        Command::Reconcile(input) => encode_reconcile(input),
        Command::Sweep(input) => pack(input),
    }
}

fn encode_pings(pings: &Pings) -> Result<Vec<u8>, WireError> {
    #[derive(Serialize)]
    struct WirePings<'a> {
        pings: Vec<WirePing<'a>>,
    }
    pack(&WirePings {
        pings: pings.pings.iter().map(WirePing::new).collect(),
    })
}

fn encode_intake(intake: &Intake) -> Result<Vec<u8>, WireError> {
    #[derive(Serialize)]
    struct WireIntake<'a> {
        requests: Vec<WireDraft<'a>>,
    }
    pack(&WireIntake {
        requests: WireDraft::all(&intake.requests)?,
    })
}

fn encode_batch(batch: &ClaimBatch) -> Result<Vec<u8>, WireError> {
    let pairs = batch.pairs.iter();
    pack(&WireBatch {
        window_seq: batch.window_seq,
        owner: batch.owner,
        batch_no: batch.batch_no,
        fp: batch.fingerprint(),
        pairs: pairs
            .map(|pair| (&pair.request_id, &pair.driver_id, pair.eta, pair.cost))
            .collect(),
    })
}

fn encode_own_batch(batch: &ClaimOwnBatch) -> Result<Vec<u8>, WireError> {
    let pairs = batch.pairs.iter().map(|pair| {
        Ok(WireOwnPair {
            request: WireDraft::new(&pair.request)?,
            driver: &pair.driver_id,
            eta: pair.eta,
            cost: pair.cost,
        })
    });
    pack(&WireOwnBatch {
        window_id: &batch.window_id,
        runner: batch.runner,
        batch_no: batch.batch_no,
        fp: batch.fingerprint(),
        lease_ms: batch.lease_ms,
        pairs: pairs.collect::<Result<_, WireError>>()?,
    })
}

fn encode_seal(seal: &Seal) -> Result<Vec<u8>, WireError> {
    let decisions = seal.decisions.as_deref();
    pack(&WireSeal {
        window_seq: seal.window_seq,
        owner: seal.owner,
        body: serde_json::to_string(&seal.body)?,
        decisions: decisions.filter(|text| text.len() <= MAX_DECISIONS_BYTES),
    })
}

fn encode_configure(configure: &Configure) -> Result<Vec<u8>, WireError> {
    let invalid = invalid(configure).is_some();
    // what will be refused need not be sent
    let (document, changes) = if invalid {
        ("", "")
    } else {
        (&*configure.document, &*configure.changes)
    };
    pack(&WireConfigure {
        rules: serde_json::to_string(&configure.rules)?,
        document,
        window_ms: configure.rules.window_ms,
        expected: configure.expected,
        invalid,
        actor: &configure.actor,
        changes,
    })
}

/// What is wrong with a configuration by itself, whatever holds now.
pub(super) fn invalid(configure: &Configure) -> Option<ConfigureRefusal> {
    if let Err(error) = configure.rules.check() {
        return Some(ConfigureRefusal::Invalid(error));
    }
    let too_large = configure.document.len().max(configure.changes.len()) > MAX_DOCUMENT_BYTES;
    too_large.then_some(ConfigureRefusal::TooLarge)
}

fn encode_reconcile(telling: &Reconcile) -> Result<Vec<u8>, WireError> {
    let trips = telling.on_trip.iter();
    pack(&WireReconcile {
        generation: telling.generation,
        on_trip: trips
            .map(|trip| (&trip.driver_id, &trip.request_id))
            .collect(),
        pending: WireDraft::all(&telling.pending)?,
        done: telling.done,
    })
}
