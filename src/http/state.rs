//! What every route has at hand.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tracing::Instrument as _;

use super::{
    admission::Admission, lifecycle::Lifecycle, model::entries::RejectedEntry, problem::Problem,
    solving::SolveSlots, tokens::TokenFile,
};
use crate::{
    config::{FieldError, ServeConfig},
    decision::{SideConstraint, SnapshotEdge},
    domain::{DurationMs, RegionId, WindowId},
    protocol::{Fingerprint, OwnRefusal, Ping, RequestDraft},
    store::{Store, StoreError},
    telemetry::Telemetry,
};

/// How well a region is served, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Batch windows with road ETAs.
    Batch,
    /// Batch windows with straight-line ETAs.
    BatchStraightLine,
    /// Windows by the greedy fallback.
    Greedy,
    /// The store cannot be reached.
    Unavailable,
}

/// A window of the dispatch tier's own, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnWindowCall {
    /// The caller's name of it.
    pub window_id: WindowId,
    /// Hash of the body, whatever its spacing and the order of its fields.
    pub fingerprint: Fingerprint,
    /// Its requests that can be read.
    pub requests: Vec<RequestDraft>,
    /// The place in the body of each of `requests`.
    pub request_places: Vec<usize>,
    /// Absent: the region's supply. Present: exactly these, first applied as pings.
    pub drivers: Option<Vec<Ping>>,
    /// The place in the body of each of `drivers`.
    pub driver_places: Vec<usize>,
    /// The caller's own travel times; each names a request and a driver.
    pub edges: Option<Vec<SnapshotEdge>>,
    /// Caps and floors to keep. Drivers that take no part, and requests that were taken already, are
    /// passed over.
    pub constraints: Vec<SideConstraint>,
    /// Time for the decision; absent: the region's `budget_ms`.
    pub budget_ms: Option<DurationMs>,
    /// Life of its claims; absent: the region's `lease_ms`.
    pub lease_ms: Option<DurationMs>,
    /// Requests and pings that cannot be read, as the answer tells them.
    pub rejected: Vec<RejectedEntry>,
}

/// Why an own window has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OwnWindowError {
    /// The protocol refuses it.
    #[error(transparent)]
    Refused(#[from] OwnRefusal),
    /// The store gave no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its parts do not fit together.
    #[error("{} fields are not valid", .0.len())]
    Invalid(Vec<FieldError>),
    /// It could not be decided: a defect.
    #[error("{0}")]
    Failed(Arc<str>),
}

/// The answer of an own window: the bytes of a JSON document.
pub type OwnWindowFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<str>, OwnWindowError>> + Send + 'a>>;

/// What routes need of the part that runs windows.
pub trait WindowRuntime: Send + Sync {
    /// How well the region is served at present. Must not block.
    fn level(&self, region: &RegionId) -> Level;

    /// Decides an own window, or gives its first answer again. Runs detached from the client's
    /// connection; the admission of the region is held meanwhile.
    fn solve_own<'a>(&'a self, region: &'a RegionId, call: OwnWindowCall) -> OwnWindowFuture<'a>;
}

/// What the HTTP side is built from.
pub struct AppParts {
    /// Where regions live.
    pub store: Arc<dyn Store>,
    /// The part that runs windows.
    pub runtime: Arc<dyn WindowRuntime>,
    /// The node's configuration.
    pub config: Arc<ServeConfig>,
    /// Who may call; absent: everybody (on loopback alone).
    pub tokens: Option<Arc<TokenFile>>,
    /// The metrics.
    pub telemetry: Telemetry,
}

/// What every route has at hand; cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Shared>);

struct Shared {
    parts: AppParts,
    admission: Admission,
    lifecycle: Lifecycle,
    solves: SolveSlots,
    /// Changes under way.
    changes: watch::Sender<usize>,
}

/// A change under way.
struct Change(AppState);

impl Change {
    fn begin(app: &AppState) -> Self {
        app.0.changes.send_modify(|changes| *changes += 1);
        Self(app.clone())
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        self.0.0.changes.send_modify(|changes| *changes -= 1);
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppState")
            .field("node", &self.config().node_id)
            .field("phase", &self.lifecycle().phase())
            .finish_non_exhaustive()
    }
}

impl AppState {
    /// Puts the parts together. The node is not ready before
    /// [`Lifecycle::advance`](super::Lifecycle::advance), which [`Server::run`](super::Server::run)
    /// calls.
    pub fn new(parts: AppParts) -> Self {
        Self(Arc::new(Shared {
            parts,
            admission: Admission::default(),
            lifecycle: Lifecycle::default(),
            solves: SolveSlots::default(),
            changes: watch::Sender::new(0),
        }))
    }

    /// Where regions live.
    pub fn store(&self) -> &dyn Store {
        &*self.0.parts.store
    }

    /// The part that runs windows.
    pub fn runtime(&self) -> &dyn WindowRuntime {
        &*self.0.parts.runtime
    }

    /// The node's configuration.
    pub fn config(&self) -> &ServeConfig {
        &self.0.parts.config
    }

    /// Who may call.
    pub fn tokens(&self) -> Option<&Arc<TokenFile>> {
        self.0.parts.tokens.as_ref()
    }

    /// The metrics.
    pub fn telemetry(&self) -> &Telemetry {
        &self.0.parts.telemetry
    }

    /// How much may be under way.
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// The node's phase.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.0.lifecycle
    }

    pub(crate) fn solves(&self) -> &SolveSlots {
        &self.0.solves
    }

    /// Runs a change to its end, whether or not the client stays; the permit is held as long.
    pub(crate) async fn detached<T: Send + 'static>(
        &self,
        permit: OwnedSemaphorePermit,
        change: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let under_way = Change::begin(self);
        let span = tracing::Span::current();
        let change = async move {
            let done = change.await;
            drop((permit, under_way));
            done
        };
        let running = tokio::spawn(change.instrument(span));
        running.await.map_err(|error| Problem::internal(&error))?
    }

    /// Waits until no change is under way.
    pub(crate) async fn changes_end(&self) {
        let mut changes = self.0.changes.subscribe();
        // the sender lives in self: waiting ends with the count alone
        let _ = changes.wait_for(|changes| *changes == 0).await;
    }
}
