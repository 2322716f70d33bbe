//! Commands as the scripts read them, and their answers as the scripts give them.
//!
//! Both are msgpack, which Lua carries without harm to 16-digit numbers (its JSON does not). Most
//! commands go as they are; those whose parts the scripts keep without looking into them, or that
//! come in great numbers, have a form of their own here.

use std::sync::Arc;

use serde::{Deserialize, Serialize, de::DeserializeOwned, ser::Serializer};

use crate::{
    domain::{
        ConfigVersion, CostMs, DriverId, DurationMs, Epoch, Finite, Generation, Nonce, RequestId,
        RiderId, StoreTime, UnixMs, VehicleClass, WindowId, WindowSeq,
    },
    protocol::{
        Answer, BatchAnswer, Cell, ClaimBatch, ClaimOwnBatch, Command, Configure, ConfigureRefusal,
        Configured, DriverStatus, EntryCode, Fingerprint, GenerationChanged, Intake,
        LeadershipRefusal, MAX_DOCUMENT_BYTES, OwnRefusal, Owner, Patch, Ping, PingAnswer, Pings,
        Reconcile, Rejected, RemoveDriverRefusal, ReportBody, RequestDraft, Seal, TripEnd,
        WindowRefusal, WindowReport, rules::MAX_DECISIONS_BYTES,
    },
    store::RegionSignal,
};

/// What a script could not carry: a defect.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// The command has no msgpack form.
    #[error("a command was not encoded: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
    /// The answer is not what the script promises.
    #[error("an answer was not understood: {0}")]
    Decode(#[from] rmp_serde::decode::Error),
    /// A kept document is not the JSON that was written.
    #[error("a kept document was not understood: {0}")]
    Json(#[from] serde_json::Error),
    /// Something that must be there is not.
    #[error("{0} is missing")]
    Missing(&'static str),
}

/// msgpack with the names of fields.
pub(super) fn pack(value: &impl Serialize) -> Result<Vec<u8>, WireError> {
    Ok(rmp_serde::to_vec_named(value)?)
}

/// Reads msgpack.
pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    Ok(rmp_serde::from_slice(bytes)?)
}

/// What a script returns around its answer.
#[derive(Deserialize)]
struct Envelope<A> {
    t: StoreTime,
    g: Option<Generation>,
    s: Option<RegionSignal>,
    a: Option<A>,
    c: Option<GenerationChanged>,
    m: Option<Missing>,
}

/// The store holds no such region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Missing {
    /// And the command makes none.
    Unknown,
    /// It can be made once its configuration comes along.
    Defaults,
}

/// What became of a command.
#[derive(Debug)]
pub(super) enum Fate<A> {
    /// It was executed.
    Answered(A),
    /// It was not: the generation is another one.
    Changed(GenerationChanged),
    /// It was not: there is no such region.
    Missing(Missing),
}

/// A script's reply.
#[derive(Debug)]
pub(super) struct Told<A> {
    /// The store's clock at the step.
    pub(super) now: StoreTime,
    /// The life of the data.
    pub(super) generation: Option<Generation>,
    /// The region after the step.
    pub(super) signal: Option<RegionSignal>,
    /// What became of the command.
    pub(super) fate: Fate<A>,
}

fn told<A: DeserializeOwned, B>(
    reply: &[u8],
    answer: impl FnOnce(A) -> Result<B, WireError>,
) -> Result<Told<B>, WireError> {
    let envelope: Envelope<A> = unpack(reply)?;
    let fate = match (envelope.a, envelope.c, envelope.m) {
        (Some(a), ..) => Fate::Answered(answer(a)?),
        (_, Some(changed), _) => Fate::Changed(changed),
        (.., Some(missing)) => Fate::Missing(missing),
        _ => return Err(WireError::Missing("the answer of a script")),
    };
    Ok(Told {
        now: envelope.t,
        generation: envelope.g,
        signal: envelope.s,
        fate,
    })
}

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
pub(super) fn cell_text(cell: Cell) -> String {
    format!("{:x}", cell.get())
}

/// A status as the scripts write it.
pub(super) const fn status_code(status: DriverStatus) -> u8 {
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
pub(super) fn encode(command: &Command) -> Result<Vec<u8>, WireError> {
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
fn invalid(configure: &Configure) -> Option<ConfigureRefusal> {
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

/// Reads the reply of the script of `command`.
pub(super) fn decode(command: &Command, reply: &[u8]) -> Result<Told<Answer>, WireError> {
    match command {
        Command::Ping(pings) => told(reply, |a: PingFates| {
            Ok(Answer::Ping(a.answer(&pings.pings)))
        }),
        Command::RemoveDriver(_) => told(reply, |a: Result<bool, RemoveDriverRefusal>| {
            Ok(Answer::RemoveDriver(a.map(|_| ())))
        }),
        Command::Intake(_) => told(reply, |a| Ok(Answer::Intake(a))),
        Command::Cancel(_) => told(reply, |a| Ok(Answer::Cancel(a))),
        Command::Confirm(_) => told(reply, |a| Ok(Answer::Confirm(a))),
        Command::Release(_) => told(reply, |a| Ok(Answer::Release(a))),
        Command::Complete(_) => told(reply, |a| Ok(Answer::Complete(a))),
        Command::Extend(_) => told(reply, |a| Ok(Answer::Extend(a))),
        Command::TakeWindow(_) => told(reply, |a| Ok(Answer::TakeWindow(a))),
        Command::ClaimBatch(_) => told(reply, |a: Result<BatchAnswer, _>| {
            Ok(Answer::ClaimBatch(a.map(Arc::new)))
        }),
        Command::Seal(_) => told(reply, |a: Result<KeptReport, WindowRefusal>| {
            Ok(Answer::Seal(match a {
                Ok(kept) => Ok(Arc::new(kept.told()?)),
                Err(refusal) => Err(refusal),
            }))
        }),
        Command::BeginOwn(_) => told(reply, |a| Ok(Answer::BeginOwn(a))),
        Command::ClaimOwn(_) => told(reply, |a: Result<BatchAnswer, OwnRefusal>| {
            Ok(Answer::ClaimOwn(a.map(Arc::new)))
        }),
        Command::FinishOwn(_) => told(reply, |a| Ok(Answer::FinishOwn(a))),
        Command::Acquire(_) => told(reply, |a| Ok(Answer::Acquire(a))),
        Command::Renew(_) => told(reply, |a| Ok(Answer::Renew(a))),
        Command::Resign(_) => told(reply, |a: Result<bool, LeadershipRefusal>| {
            Ok(Answer::Resign(a.map(|_| ())))
        }),
        Command::Configure(configure) => told(reply, |a: Result<Configured, NotConfigured>| {
            Ok(Answer::Configure(a.map_err(|refusal| match refusal {
                NotConfigured::VersionMismatch { present } => {
                    ConfigureRefusal::VersionMismatch { present }
                }
                NotConfigured::Invalid => invalid(configure).unwrap_or(ConfigureRefusal::TooLarge),
            })))
        }),
        Command::Reconcile(_) => told(reply, |a| Ok(Answer::Reconcile(a))),
        Command::Sweep(_) => told(reply, |a| Ok(Answer::Sweep(a))),
    }
}

/// Reads the reply of the script for pings, one fate a ping.
pub(super) fn decode_fates(_: &Command, reply: &[u8]) -> Result<Told<PingFates>, WireError> {
    told(reply, Ok)
}

/// What became of each ping, a letter a ping.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct PingFates(String);

impl PingFates {
    /// Those of the first pings; the rest stays.
    pub(super) fn take(&mut self, pings: usize) -> Self {
        let rest = self.0.split_off(pings.min(self.0.len()));
        Self(std::mem::replace(&mut self.0, rest))
    }

    /// The answer to who sent these pings.
    pub(super) fn answer(&self, pings: &[Ping]) -> PingAnswer {
        let mut answer = PingAnswer::default();
        for (index, (fate, ping)) in self.0.chars().zip(pings).enumerate() {
            let code = match fate {
                'm' => {
                    answer.moved += 1;
                    answer.accepted += 1;
                    continue;
                }
                'a' => {
                    answer.accepted += 1;
                    continue;
                }
                's' => {
                    answer.stale += 1;
                    continue;
                }
                'f' => EntryCode::AtMsInFuture,
                _ => EntryCode::RegionFull,
            };
            let id = ping.id.clone();
            answer.rejected.push(Rejected { index, id, code });
        }
        answer
    }
}

/// Why a script did not set a configuration; what is invalid is known to the node.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum NotConfigured {
    VersionMismatch { present: ConfigVersion },
    Invalid,
}

/// A report as the scripts keep it.
#[derive(Deserialize)]
pub(super) struct KeptReport {
    window_seq: WindowSeq,
    window_ms: DurationMs,
    config_version: ConfigVersion,
    generation: Generation,
    epoch: Epoch,
    opened_at_ms: UnixMs,
    closed_at_ms: UnixMs,
    sealed_at_ms: UnixMs,
    assigned: u32,
    /// What the decider told, as JSON; absent when nobody decided the window.
    body: Option<String>,
}

impl KeptReport {
    /// The report as readers know it.
    pub(super) fn told(self) -> Result<WindowReport, WireError> {
        let body = match &self.body {
            Some(body) => serde_json::from_str(body)?,
            None => ReportBody::undecided(),
        };
        Ok(WindowReport {
            window_seq: self.window_seq,
            window_ms: self.window_ms,
            config_version: self.config_version,
            generation: self.generation,
            epoch: self.epoch,
            opened_at_ms: self.opened_at_ms,
            closed_at_ms: self.closed_at_ms,
            sealed_at_ms: self.sealed_at_ms,
            assigned: self.assigned,
            body,
        })
    }
}
