//! Queries: reading a region at one instant. A read changes nothing, not even what is overdue.

use std::{ops::Bound, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    claim::{Claim, ClaimPhase, ClaimState},
    driver::{DriverRecord, DriverStatus, Presence},
    outbox::{After, CursorGone, EventPage},
    region::Region,
    report::WindowReport,
    request::{RequestRecord, RequestState},
    view::{
        AssignmentView, ClaimView, DriverState, DriverView, RegionView, ReportView, RequestView,
        Snapshot, SnapshotRequest, Supply,
    },
    window::WindowRecord,
};
use crate::domain::{DriverId, RequestId, StoreTime, UnixMs, WindowSeq};

/// Most entries of a page.
pub const MAX_PAGE: usize = 1_000;
/// Most records that one page looks at to find its entries.
pub const MAX_LOOKED_AT: usize = 20_000;

/// What may be asked of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The region as a whole.
    Overview,
    /// One driver.
    Driver(DriverId),
    /// One request.
    Request(RequestId),
    /// Several requests, at most [`MAX_PAGE`].
    RequestsById(Vec<RequestId>),
    /// A page of requests, by id.
    Requests {
        /// Only those in this state.
        state: Option<RequestState>,
        /// Only those after this id.
        after: Option<RequestId>,
        /// At most so many, at most [`MAX_PAGE`].
        limit: usize,
    },
    /// A page of live claims, by driver.
    Claims {
        /// Only those in this state.
        state: Option<ClaimState>,
        /// Only those of drivers after this.
        after: Option<DriverId>,
        /// At most so many, at most [`MAX_PAGE`].
        limit: usize,
    },
    /// Reports of sealed windows.
    Reports {
        /// Only those after this window.
        after: WindowSeq,
        /// At most so many, at most [`MAX_PAGE`].
        limit: usize,
    },
    /// The report of one window, with its decisions.
    Report(WindowSeq),
    /// A page of the outbox.
    Events {
        /// Where the reader stands.
        after: After,
        /// At most so many, at most [`MAX_PAGE`].
        limit: usize,
    },
    /// Every driver.
    Supply,
    /// What the decision of a window needs.
    Snapshot(WindowSeq),
}

/// The reply to a query, of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "named as the queries, whose documentation holds"
)]
pub enum Reply {
    Overview(Box<RegionView>),
    Driver(Option<Box<DriverView>>),
    Request(Option<Box<RequestView>>),
    RequestsById(Vec<Option<RequestView>>),
    Requests(Page<RequestView, RequestId>),
    Claims(Page<ClaimView, DriverId>),
    Reports(Vec<Arc<WindowReport>>),
    Report(Option<ReportView>),
    Events(Result<EventPage, CursorGone>),
    Supply(Supply),
    Snapshot(Option<Box<Snapshot>>),
}

/// Some entries in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T, Id> {
    /// The entries; fewer than asked for when many records had to be looked at.
    pub entries: Vec<T>,
    /// There may be more after this id.
    pub next: Option<Id>,
}

impl Region {
    /// Answers a query.
    pub fn query(&self, query: &Query, now: StoreTime) -> Reply {
        match query {
            Query::Overview => Reply::Overview(Box::new(self.overview(now))),
            Query::Driver(id) => {
                let record = self.drivers.get(id);
                Reply::Driver(record.map(|record| Box::new(driver_view(id, record, now.ms()))))
            }
            Query::Request(id) => Reply::Request(self.request_view(id).map(Box::new)),
            Query::RequestsById(ids) => Reply::RequestsById(
                ids.iter()
                    .take(MAX_PAGE)
                    .map(|id| self.request_view(id))
                    .collect(),
            ),
            Query::Requests {
                state,
                after,
                limit,
            } => Reply::Requests(self.requests_page(*state, after.as_ref(), *limit)),
            Query::Claims {
                state,
                after,
                limit,
            } => Reply::Claims(self.claims_page(*state, after.as_ref(), *limit)),
            Query::Reports { after, limit } => Reply::Reports(
                self.reports
                    .after(*after)
                    .take((*limit).min(MAX_PAGE))
                    .map(|sealed| Arc::clone(&sealed.report))
                    .collect(),
            ),
            Query::Report(seq) => Reply::Report(self.reports.get(*seq).map(|sealed| ReportView {
                report: Arc::clone(&sealed.report),
                decisions: sealed.decisions.clone(),
            })),
            Query::Events { after, limit } => Reply::Events(self.outbox.page(
                self.generation,
                *after,
                (*limit).min(MAX_PAGE),
            )),
            Query::Supply => Reply::Supply(Supply {
                now_ms: now.ms(),
                drivers: self.all_drivers(now.ms()),
            }),
            Query::Snapshot(seq) => Reply::Snapshot(self.snapshot(*seq, now).map(Box::new)),
        }
    }

    fn overview(&self, now: StoreTime) -> RegionView {
        let ms = now.ms();
        let (mut available, mut offered, mut on_trip) = (0, 0, 0);
        for record in self.drivers.values() {
            match record.claim.as_ref().map(Claim::state) {
                Some(ClaimState::OnTrip) => on_trip += 1,
                Some(_) => offered += 1,
                None => {
                    let fresh = |p: &Presence| p.is_fresh(&self.rules, ms);
                    if record.is_ready() && record.presence.as_ref().is_some_and(fresh) {
                        available += 1;
                    }
                }
            }
        }
        RegionView {
            now_ms: ms,
            rules: self.rules.clone(),
            document: Arc::clone(&self.document),
            config_version: self.config_version,
            epoch: self.leadership.epoch,
            leader: self.leader(now).cloned(),
            generation: self.generation,
            quarantined_until_ms: self.quarantine(now),
            pending: self.pending.len() as u32,
            requests: self.requests.len() as u32,
            available,
            offered,
            on_trip,
            drivers: self.drivers.len() as u32,
            windows: self.windows.values().map(WindowRecord::told).collect(),
            last_window: self.reports.last().map(|sealed| Arc::clone(&sealed.report)),
            last_event: self.outbox.last(),
            events_kept: self.outbox.len() as u32,
            next_due_ms: self.due.next(),
            counters: self.counters,
        }
    }

    fn all_drivers(&self, now: UnixMs) -> Vec<DriverView> {
        self.drivers
            .iter()
            .map(|(id, record)| driver_view(id, record, now))
            .collect()
    }

    fn snapshot(&self, seq: WindowSeq, now: StoreTime) -> Option<Snapshot> {
        let window = self.windows.get(&seq)?.told();
        let mut requests = Vec::new();
        let mut deferred = 0;
        for (_, id) in &self.pending {
            let Some(record) = self.requests.get(id) else {
                continue;
            };
            let Some(draft) = record.draft.as_ref() else {
                continue;
            };
            if record.entered > seq || now.ms() > record.deadline_ms {
                continue;
            }
            if requests.len() >= self.rules.max_snapshot_requests as usize {
                deferred += 1;
                continue;
            }
            requests.push(SnapshotRequest {
                draft: Arc::clone(draft),
                requested_at_ms: record.requested_at_ms,
                deadline_ms: record.deadline_ms,
                left_over: (seq.get() - record.entered.get()) as u32,
                attempts: record.attempts,
            });
        }
        Some(Snapshot {
            now_ms: now.ms(),
            generation: self.generation,
            window,
            rules: self.rules.clone(),
            document: Arc::clone(&self.document),
            config_version: self.config_version,
            requests,
            deferred,
            drivers: self.all_drivers(now.ms()),
        })
    }

    fn request_view(&self, id: &RequestId) -> Option<RequestView> {
        let record = self.requests.get(id)?;
        let holder = record
            .claims
            .last()
            .and_then(|trace| self.drivers.get(&trace.driver_id));
        let claim = holder.and_then(|driver| driver.claim.as_ref());
        Some(request_view(id, record, claim))
    }

    fn requests_page(
        &self,
        state: Option<RequestState>,
        after: Option<&RequestId>,
        limit: usize,
    ) -> Page<RequestView, RequestId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let matching = |record: &RequestRecord| state.is_none_or(|s| record.state == s);
        let (ids, next) = page(
            self.requests
                .range::<RequestId, _>((from, Bound::Unbounded)),
            limit,
            matching,
        );
        Page {
            entries: ids
                .into_iter()
                .filter_map(|(id, _)| self.request_view(id))
                .collect(),
            next,
        }
    }

    fn claims_page(
        &self,
        state: Option<ClaimState>,
        after: Option<&DriverId>,
        limit: usize,
    ) -> Page<ClaimView, DriverId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let matching = |record: &DriverRecord| {
            let claim = record.claim.as_ref();
            claim.is_some_and(|claim| state.is_none_or(|s| claim.state() == s))
        };
        let (found, next) = page(
            self.drivers.range::<DriverId, _>((from, Bound::Unbounded)),
            limit,
            matching,
        );
        let entries = found
            .into_iter()
            .filter_map(|(id, record)| {
                record.claim.as_ref().map(|claim| ClaimView {
                    driver_id: id.clone(),
                    state: claim.state(),
                    claim: claim.clone(),
                })
            })
            .collect();
        Page { entries, next }
    }
}

/// The matching records of a range, at most `limit`, and the id to go on after.
fn page<'a, Id: Clone + 'a, T: 'a>(
    range: impl Iterator<Item = (&'a Id, &'a T)>,
    limit: usize,
    matching: impl Fn(&T) -> bool,
) -> (Vec<(&'a Id, &'a T)>, Option<Id>) {
    let limit = limit.clamp(1, MAX_PAGE);
    let mut found = Vec::new();
    for (looked_at, (id, record)) in range.enumerate() {
        if matching(record) {
            found.push((id, record));
        }
        if found.len() == limit || looked_at + 1 == MAX_LOOKED_AT {
            return (found, Some(id.clone()));
        }
    }
    (found, None)
}

/// A request as readers see it; `claim` is that of the driver it was given last.
pub(crate) fn request_view(
    id: &RequestId,
    record: &RequestRecord,
    claim: Option<&Claim>,
) -> RequestView {
    RequestView {
        id: id.clone(),
        state: record.state,
        attempts: record.attempts,
        requested_at_ms: record.requested_at_ms,
        deadline_ms: record.deadline_ms,
        assignment: assignment(record, claim),
        ended_at_ms: record.ended_at_ms,
        draft: record.draft.clone(),
    }
}

fn assignment(record: &RequestRecord, claim: Option<&Claim>) -> Option<AssignmentView> {
    if !matches!(
        record.state,
        RequestState::Assigned | RequestState::Confirmed
    ) {
        return None;
    }
    let trace = record.claims.last()?;
    let claim = claim.filter(|claim| claim.fence == trace.fence);
    let lease = claim.and_then(|claim| match claim.phase {
        ClaimPhase::Offered {
            lease_until_ms,
            lease_ms,
        } => Some((lease_until_ms, lease_ms)),
        ClaimPhase::OnTrip { .. } => None,
    });
    Some(AssignmentView {
        driver_id: trace.driver_id.clone(),
        fence: trace.fence,
        eta: claim.map(|claim| claim.eta),
        lease_until_ms: lease.map(|(until, _)| until),
        lease_ms: lease.map(|(_, length)| length),
    })
}

/// A driver as readers see it.
pub(crate) fn driver_view(id: &DriverId, record: &DriverRecord, now: UnixMs) -> DriverView {
    let state = match record.claim.as_ref().map(|claim| claim.phase) {
        Some(ClaimPhase::Offered { .. }) => DriverState::Offered,
        Some(ClaimPhase::OnTrip { .. }) => DriverState::OnTrip,
        None => match record.presence.as_ref().map(|presence| presence.status) {
            Some(DriverStatus::Available) => DriverState::Available,
            Some(DriverStatus::Busy) => DriverState::Busy,
            Some(DriverStatus::Offline) | None => DriverState::Offline,
        },
    };
    DriverView {
        id: id.clone(),
        state,
        ready: record.is_ready(),
        presence: record.presence.clone(),
        claim: record.claim.clone(),
        cooldowns: record
            .cooldowns
            .iter()
            .filter(|cooldown| now < cooldown.until_ms)
            .cloned()
            .collect(),
    }
}
