//! Reading a region: plain commands in a transaction, so that what is read together belongs
//! together. Nothing is written, not even what is overdue.

use std::{collections::BTreeMap, sync::Arc};

use redis::{Pipeline, Value, pipe};

use super::{
    Shared,
    keys::RegionKeys,
    link::Lane,
    reply::{bytes, clock, count, items, list, pairs, text},
    stored::{self, StoredRegion},
    wire::{KeptReport, WireError, unpack},
};
use crate::{
    domain::{DriverId, EventId, RegionId, RequestId, UnixMs, WindowSeq},
    protocol::{
        After, ClaimState, ClaimView, Counters, Cursor, CursorGone, DriverRecord, DriverView,
        Event, EventPage, MAX_LOOKED_AT, MAX_PAGE, Page, Presence, Query, RegionRules, RegionView,
        Reply, ReportView, RequestRecord, RequestState, RequestView, Snapshot, SnapshotRequest,
        Supply, WindowRecord, WindowReport, driver_view, request_view, rules::KEPT_REPORTS,
    },
    store::StoreError,
};

/// Fields of one read; more come in several.
const CHUNK: usize = 500;

/// Drivers up to which a region's supply is read in one command: about 10 ms of the server's time.
const AT_ONCE: u64 = 20_000;

/// Answers a query.
pub(super) async fn query(
    shared: &Shared,
    region: &RegionId,
    query: Query,
) -> Result<Reply, StoreError> {
    let keys = RegionKeys::new(region);
    let reader = Reader {
        shared,
        keys: &keys,
    };
    Ok(match query {
        Query::Overview => Reply::Overview(Box::new(reader.overview().await?)),
        Query::Driver(id) => Reply::Driver(reader.driver(&id).await?.map(Box::new)),
        Query::Request(id) => {
            let found = reader.requests_by_id(vec![id]).await?;
            Reply::Request(found.into_iter().flatten().next().map(Box::new))
        }
        Query::RequestsById(mut ids) => {
            ids.truncate(MAX_PAGE);
            Reply::RequestsById(reader.requests_by_id(ids).await?)
        }
        Query::Requests {
            state,
            after,
            limit,
        } => Reply::Requests(reader.requests(state, after, limit).await?),
        Query::Claims {
            state,
            after,
            limit,
        } => Reply::Claims(reader.claims(state, after, limit).await?),
        Query::Reports { after, limit } => Reply::Reports(reader.reports(after, limit).await?),
        Query::Report(seq) => Reply::Report(reader.report(seq).await?),
        Query::Events { after, limit } => Reply::Events(reader.events(after, limit).await?),
        Query::Supply => {
            let (now_ms, drivers) = reader.supply().await?;
            Reply::Supply(Supply { now_ms, drivers })
        }
        Query::Snapshot(seq) => Reply::Snapshot(reader.snapshot(seq).await?.map(Box::new)),
    })
}

/// A region being read.
struct Reader<'a> {
    shared: &'a Shared,
    keys: &'a RegionKeys,
}

/// The configuration with the state of a region.
struct Head {
    region: StoredRegion,
    rules: RegionRules,
    document: Arc<str>,
}

impl Head {
    /// From `state`, `rules` and `document`; nothing when there is no such region.
    fn read(fields: &Value) -> Result<Option<Self>, WireError> {
        let [state, rules, document] = items::<3>(list(fields)?)?;
        let Some(state) = bytes(state)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            region: unpack(state)?,
            rules: serde_json::from_str(text(rules)?)?,
            document: text(document)?.into(),
        }))
    }
}

impl Reader<'_> {
    async fn run(&self, pipeline: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let link = &self.shared.link;
        link.read(Lane::Read, &self.keys.meta, pipeline)
            .await
            .map_err(super::unread)
    }

    /// A transaction that begins with the clock and the state.
    fn transaction(&self) -> Pipeline {
        let mut pipeline = pipe();
        pipeline.atomic().cmd("TIME").cmd("HMGET").arg((
            &self.keys.meta,
            "state",
            "rules",
            "document",
        ));
        pipeline
    }

    async fn overview(&self) -> Result<RegionView, StoreError> {
        let keys = self.keys;
        let mut pipeline = self.transaction();
        pipeline.cmd("HGETALL").arg(&keys.windows);
        for (command, key) in [
            ("ZCARD", &keys.pending),
            ("HLEN", &keys.requests),
            ("ZCARD", &keys.offered),
            ("ZCARD", &keys.trips),
            ("HLEN", &keys.pos),
            ("XLEN", &keys.events),
        ] {
            pipeline.cmd(command).arg(key);
        }
        pipeline.cmd("ZRANGE").arg((&keys.due, 0, 0, "WITHSCORES"));
        let values = self.run(&pipeline).await?;
        let [
            time,
            head,
            windows,
            pending,
            requests,
            offered,
            trips,
            drivers,
            events,
            due,
        ] = items::<10>(&values)?;
        let Some(head) = Head::read(head)? else {
            return Err(StoreError::UnknownRegion);
        };
        let now = clock(time)?;
        let due = pairs(due)?;
        let mut unsealed: Vec<WindowRecord> = Vec::new();
        for (_, record) in pairs(windows)? {
            unsealed.push(unpack(bytes(record)?.unwrap_or_default())?);
        }
        unsealed.sort_by_key(|window| window.seq);
        let available = self.available(&head.rules).await?;
        let region = &head.region;
        let sealed = region.last_sealed;
        let last_window = match sealed.get() {
            0 => None,
            last => self.reports(WindowSeq::new(last - 1), 1).await?.pop(),
        };
        Ok(RegionView {
            now_ms: now.ms(),
            epoch: region.epoch,
            leader: region
                .leader
                .clone()
                .filter(|leader| now.ms() < leader.until_ms),
            generation: region.generation,
            quarantined_until_ms: region
                .quarantined_until_ms
                .filter(|&until| now.ms() < until),
            config_version: region.config_version,
            pending: count(pending)? as u32,
            requests: count(requests)? as u32,
            available,
            offered: count(offered)? as u32,
            on_trip: count(trips)? as u32,
            drivers: count(drivers)? as u32,
            windows: unsealed,
            last_window,
            last_event: region.last_event,
            events_kept: count(events)? as u32,
            next_due_ms: match due.first() {
                Some((_, at)) => Some(UnixMs::new(count(at)? as i64)),
                None => None,
            },
            counters: Counters {
                double_claims: region.double_claims,
                fences_not_risen: region.fences_not_risen,
            },
            rules: head.rules,
            document: head.document,
        })
    }

    /// Drivers that could be chosen.
    async fn available(&self, rules: &RegionRules) -> Result<u32, StoreError> {
        let (now_ms, drivers) = self.drivers().await?;
        let fresh = |presence: &Presence| presence.is_fresh(rules, now_ms);
        let chosen = drivers.values().filter(|record| {
            record.claim.is_none()
                && record.is_ready()
                && record.presence.as_ref().is_some_and(fresh)
        });
        Ok(chosen.count() as u32)
    }

    /// Every driver, by id.
    async fn drivers(&self) -> Result<(UnixMs, BTreeMap<DriverId, DriverRecord>), StoreError> {
        let keys = self.keys;
        let mut pipeline = pipe();
        pipeline.cmd("TIME").cmd("HLEN").arg(&keys.pos);
        let values = self.run(&pipeline).await?;
        let [time, known] = items::<2>(&values)?;
        let mut now_ms = clock(time)?.ms();
        let (positions, records) = if count(known)? <= AT_ONCE {
            let mut pipeline = pipe();
            pipeline.atomic().cmd("TIME");
            pipeline.cmd("HGETALL").arg(&keys.pos);
            pipeline.cmd("HGETALL").arg(&keys.drivers);
            let values = self.run(&pipeline).await?;
            let [time, positions, records] = items::<3>(&values)?;
            now_ms = clock(time)?.ms();
            (fields(positions)?, fields(records)?)
        } else {
            // so many that one command would hold the server up: a claim decides in the end
            (self.scan(&keys.pos).await?, self.scan(&keys.drivers).await?)
        };
        let mut drivers = BTreeMap::new();
        for (id, position) in &positions {
            let record = records.get(id).map(Vec::as_slice);
            drivers.insert(driver_id(id)?, stored::driver(position, record)?);
        }
        Ok((now_ms, drivers))
    }

    async fn scan(&self, key: &str) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        let mut found = BTreeMap::new();
        let mut cursor = 0;
        loop {
            let mut pipeline = pipe();
            pipeline.cmd("HSCAN").arg((key, cursor, "COUNT", 4 * CHUNK));
            let values = self.run(&pipeline).await?;
            let [page] = items::<1>(&values)?;
            let [next, entries] = items::<2>(list(page)?)?;
            found.extend(fields(entries)?);
            cursor = count(next)?;
            if cursor == 0 {
                return Ok(found);
            }
        }
    }

    async fn supply(&self) -> Result<(UnixMs, Vec<DriverView>), StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let (now_ms, drivers) = self.drivers().await?;
        let views = drivers
            .iter()
            .map(|(id, record)| driver_view(id, record, now_ms));
        Ok((now_ms, views.collect()))
    }

    async fn head(&self) -> Result<Option<Head>, StoreError> {
        let values = self.run(&self.transaction()).await?;
        let [_, head] = items::<2>(&values)?;
        Ok(Head::read(head)?)
    }

    async fn driver(&self, id: &DriverId) -> Result<Option<DriverView>, StoreError> {
        let mut pipeline = self.transaction();
        pipeline.cmd("HGET").arg((&self.keys.pos, id.as_str()));
        pipeline.cmd("HGET").arg((&self.keys.drivers, id.as_str()));
        let values = self.run(&pipeline).await?;
        let [time, head, position, record] = items::<4>(&values)?;
        if Head::read(head)?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let Some(position) = bytes(position)? else {
            return Ok(None);
        };
        let record = stored::driver(position, bytes(record)?)?;
        Ok(Some(driver_view(id, &record, clock(time)?.ms())))
    }

    /// The records of requests, in the order asked for.
    async fn records(&self, ids: &[RequestId]) -> Result<Vec<Option<RequestRecord>>, StoreError> {
        let mut records = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(CHUNK) {
            let mut pipeline = pipe();
            let asked: Vec<&str> = chunk.iter().map(RequestId::as_str).collect();
            pipeline.cmd("HMGET").arg(&self.keys.requests).arg(asked);
            let values = self.run(&pipeline).await?;
            let [found] = items::<1>(&values)?;
            for record in list(found)? {
                let record = bytes(record)?.map(stored::request).transpose()?;
                records.push(record);
            }
        }
        Ok(records)
    }

    /// Requests as readers see them, with the claims of their drivers.
    async fn views(
        &self,
        ids: &[RequestId],
        records: Vec<Option<RequestRecord>>,
    ) -> Result<Vec<Option<RequestView>>, StoreError> {
        let holders: Vec<Option<&DriverId>> = records
            .iter()
            .map(|record| Some(&record.as_ref()?.claims.last()?.driver_id))
            .collect();
        let asked: Vec<&DriverId> = holders.iter().copied().flatten().collect();
        let mut claims = Vec::with_capacity(asked.len());
        for chunk in asked.chunks(CHUNK) {
            let mut pipeline = pipe();
            let names: Vec<&str> = chunk.iter().map(|id| id.as_str()).collect();
            pipeline.cmd("HMGET").arg(&self.keys.drivers).arg(names);
            let values = self.run(&pipeline).await?;
            let [found] = items::<1>(&values)?;
            for record in list(found)? {
                claims.push(match bytes(record)? {
                    Some(record) => stored::claim(record)?,
                    None => None,
                });
            }
        }
        let mut claims = claims.into_iter();
        let held: Vec<_> = holders
            .iter()
            .map(|holder| holder.and_then(|_| claims.next().flatten()))
            .collect();
        let views = ids.iter().zip(&records).zip(&held);
        Ok(views
            .map(|((id, record), claim)| {
                let record = record.as_ref()?;
                Some(request_view(id, record, claim.as_ref()))
            })
            .collect())
    }

    async fn requests_by_id(
        &self,
        ids: Vec<RequestId>,
    ) -> Result<Vec<Option<RequestView>>, StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let records = self.records(&ids).await?;
        self.views(&ids, records).await
    }

    async fn requests(
        &self,
        state: Option<RequestState>,
        after: Option<RequestId>,
        limit: usize,
    ) -> Result<Page<RequestView, RequestId>, StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let limit = limit.clamp(1, MAX_PAGE);
        let (mut ids, mut found) = (Vec::new(), Vec::new());
        let (mut from, mut looked_at) = (after, 0);
        let mut next = None;
        'pages: while next.is_none() {
            let page: Vec<RequestId> = self.names(&self.keys.ids, from.as_ref()).await?;
            let records = self.records(&page).await?;
            for (id, record) in page.iter().zip(records) {
                looked_at += 1;
                let matching = |record: &RequestRecord| state.is_none_or(|s| record.state == s);
                if let Some(record) = record.filter(matching) {
                    ids.push(id.clone());
                    found.push(Some(record));
                }
                if ids.len() == limit || looked_at == MAX_LOOKED_AT {
                    next = Some(id.clone());
                    break 'pages;
                }
            }
            if page.len() < CHUNK {
                break;
            }
            from = page.last().cloned();
        }
        let views = self.views(&ids, found).await?;
        Ok(Page {
            entries: views.into_iter().flatten().collect(),
            next,
        })
    }

    /// Up to [`CHUNK`] members of a set of names, in order, after one of them.
    async fn names<Id: AsName>(
        &self,
        key: &str,
        after: Option<&Id>,
    ) -> Result<Vec<Id>, StoreError> {
        let from = after.map_or_else(|| "-".to_owned(), |id| format!("({}", id.name()));
        let mut pipeline = pipe();
        pipeline
            .cmd("ZRANGEBYLEX")
            .arg((key, from, "+", "LIMIT", 0, CHUNK));
        let values = self.run(&pipeline).await?;
        let [page] = items::<1>(&values)?;
        let mut names = Vec::new();
        for name in list(page)? {
            names.push(Id::of(text(name)?)?);
        }
        Ok(names)
    }

    async fn claims(
        &self,
        state: Option<ClaimState>,
        after: Option<DriverId>,
        limit: usize,
    ) -> Result<Page<ClaimView, DriverId>, StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let limit = limit.clamp(1, MAX_PAGE);
        let mut entries = Vec::new();
        let mut from = after;
        loop {
            let mut held: Vec<DriverId> = Vec::new();
            let mut whole = true;
            for (key, of) in [
                (&self.keys.offered, ClaimState::Offered),
                (&self.keys.trips, ClaimState::OnTrip),
            ] {
                if state.is_none_or(|state| state == of) {
                    let names: Vec<DriverId> = self.names(key, from.as_ref()).await?;
                    whole &= names.len() < CHUNK;
                    held.extend(names);
                }
            }
            held.sort_unstable();
            // of two sets only the first of both together are all that there are up to their end
            held.truncate(CHUNK);
            for (id, claim) in self.claims_of(&held).await? {
                if state.is_none_or(|state| claim.state() == state) {
                    entries.push(ClaimView {
                        driver_id: id.clone(),
                        state: claim.state(),
                        claim,
                    });
                }
                if entries.len() == limit {
                    return Ok(Page {
                        entries,
                        next: Some(id),
                    });
                }
            }
            if whole && held.len() < CHUNK {
                return Ok(Page {
                    entries,
                    next: None,
                });
            }
            from = held.pop();
        }
    }

    async fn claims_of(
        &self,
        drivers: &[DriverId],
    ) -> Result<Vec<(DriverId, crate::protocol::Claim)>, StoreError> {
        if drivers.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = pipe();
        let names: Vec<&str> = drivers.iter().map(DriverId::as_str).collect();
        pipeline.cmd("HMGET").arg(&self.keys.drivers).arg(names);
        let values = self.run(&pipeline).await?;
        let [records] = items::<1>(&values)?;
        let mut claims = Vec::new();
        for (id, record) in drivers.iter().zip(list(records)?) {
            if let Some(record) = bytes(record)?
                && let Some(claim) = stored::claim(record)?
            {
                claims.push((id.clone(), claim));
            }
        }
        Ok(claims)
    }

    async fn reports(
        &self,
        after: WindowSeq,
        limit: usize,
    ) -> Result<Vec<Arc<WindowReport>>, StoreError> {
        let Some(head) = self.head().await? else {
            return Err(StoreError::UnknownRegion);
        };
        let last = head.region.last_sealed.get();
        let first = (after.get() + 1).max((last + 1).saturating_sub(KEPT_REPORTS as u64));
        let limit = limit.min(MAX_PAGE) as u64;
        let seqs: Vec<u64> = (first..=last.min(first.saturating_add(limit) - 1)).collect();
        if seqs.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let mut pipeline = pipe();
        pipeline.cmd("HMGET").arg(&self.keys.reports).arg(seqs);
        let values = self.run(&pipeline).await?;
        let [reports] = items::<1>(&values)?;
        let mut told = Vec::new();
        for report in list(reports)? {
            if let Some(report) = bytes(report)? {
                told.push(Arc::new(unpack::<KeptReport>(report)?.told()?));
            }
        }
        Ok(told)
    }

    async fn report(&self, seq: WindowSeq) -> Result<Option<ReportView>, StoreError> {
        let mut pipeline = self.transaction();
        pipeline
            .cmd("HMGET")
            .arg((&self.keys.reports, seq.get().to_string(), format!("d{seq}")));
        let values = self.run(&pipeline).await?;
        let [_, head, fields] = items::<3>(&values)?;
        if Head::read(head)?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let [report, decisions] = items::<2>(list(fields)?)?;
        let Some(report) = bytes(report)? else {
            return Ok(None);
        };
        let decisions = match bytes(decisions)? {
            Some(_) => Some(text(decisions)?.into()),
            None => None,
        };
        Ok(Some(ReportView {
            report: Arc::new(unpack::<KeptReport>(report)?.told()?),
            decisions,
        }))
    }

    async fn events(
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

    async fn snapshot(&self, seq: WindowSeq) -> Result<Option<Snapshot>, StoreError> {
        let mut pipeline = self.transaction();
        pipeline
            .cmd("HGET")
            .arg((&self.keys.windows, seq.get().to_string()));
        pipeline.cmd("ZRANGE").arg((&self.keys.pending, 0, -1));
        let values = self.run(&pipeline).await?;
        let [time, head, window, pending] = items::<4>(&values)?;
        let Some(head) = Head::read(head)? else {
            return Err(StoreError::UnknownRegion);
        };
        let Some(window) = bytes(window)? else {
            return Ok(None);
        };
        let now_ms = clock(time)?.ms();
        let mut ids = Vec::new();
        for id in list(pending)? {
            ids.push(RequestId::of(text(id)?)?);
        }
        let mut requests = Vec::new();
        let mut deferred = 0;
        for record in self.records(&ids).await?.into_iter().flatten() {
            // one that was taken back or taken over since is not pending any more
            let open = record.state == RequestState::Pending
                && record.entered <= seq
                && now_ms <= record.deadline_ms;
            let Some(draft) = record.draft.filter(|_| open) else {
                continue;
            };
            if requests.len() >= head.rules.max_snapshot_requests as usize {
                deferred += 1;
                continue;
            }
            requests.push(SnapshotRequest {
                draft,
                requested_at_ms: record.requested_at_ms,
                deadline_ms: record.deadline_ms,
                left_over: (seq.get() - record.entered.get()) as u32,
                attempts: record.attempts,
            });
        }
        let (now_ms, drivers) = self.drivers().await?;
        let views = drivers
            .iter()
            .map(|(id, record)| driver_view(id, record, now_ms));
        Ok(Some(Snapshot {
            now_ms,
            generation: head.region.generation,
            window: unpack(window)?,
            config_version: head.region.config_version,
            rules: head.rules,
            document: head.document,
            requests,
            deferred,
            drivers: views.collect(),
        }))
    }
}

/// An id that is a member of a set of names.
trait AsName: Sized {
    fn name(&self) -> &str;
    fn of(text: &str) -> Result<Self, WireError>;
}

macro_rules! as_name {
    ($($id:ident),*) => {
        $(impl AsName for $id {
            fn name(&self) -> &str {
                self.as_str()
            }

            fn of(text: &str) -> Result<Self, WireError> {
                Self::new(text).map_err(|_| WireError::Missing("an id that was kept"))
            }
        })*
    };
}
as_name!(DriverId, RequestId);

fn driver_id(text: &str) -> Result<DriverId, WireError> {
    DriverId::of(text)
}

fn fields(value: &Value) -> Result<BTreeMap<String, Vec<u8>>, WireError> {
    let mut found = BTreeMap::new();
    for (name, field) in pairs(value)? {
        let field = bytes(field)?.unwrap_or_default();
        found.insert(text(name)?.to_owned(), field.to_vec());
    }
    Ok(found)
}

fn told_event(entry: &Value) -> Result<Event, WireError> {
    let [id, fields] = items::<2>(list(entry)?)?;
    let mut named = Vec::new();
    for (name, value) in pairs(fields)? {
        named.push((text(name)?, text(value)?));
    }
    stored::event(text(id)?, named.into_iter())
}
