//! Notes of sealed windows, read back from a store that is slow or does not answer.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::*;
use crate::{
    domain::{ConfigVersion, Epoch, Generation, NodeId},
    protocol::{Answer, Command, Query, Reply, ReportBody, ReportView, RequestDraft, WindowReport},
    store::{Clock, MemoryStore, RegionSignal, StoreError, StoreFuture, StoreOptions},
};

/// Sealed windows, and what each took to read.
struct Sealed {
    inner: MemoryStore,
    /// Of each window from 1 on: its note, if it made one.
    notes: Vec<Option<AheadNote>>,
    /// How long each report takes, from the newest on; then none is answered.
    reads: Vec<Duration>,
    fails: bool,
}

impl Sealed {
    fn of(notes: Vec<Option<AheadNote>>) -> Self {
        Self {
            inner: MemoryStore::new(StoreOptions::default()).unwrap(),
            reads: vec![Duration::ZERO; notes.len() + 1],
            notes,
            fails: false,
        }
    }

    fn report(&self, seq: WindowSeq) -> Option<ReportView> {
        let index = seq.get().checked_sub(1)?;
        let note = self.notes.get(index as usize)?;
        let decisions = note.as_ref().map_or_else(
            || serde_json::json!({"assignments": []}),
            |note| serde_json::json!({"assignments": [], "ahead": note}),
        );
        let at = |ms| UnixMs::new(1_000 * i64::try_from(seq.get()).unwrap() + ms);
        let report = WindowReport {
            window_seq: seq,
            window_ms: DurationMs::new(1_000),
            config_version: ConfigVersion::default(),
            generation: Generation::default(),
            epoch: Epoch::default(),
            opened_at_ms: at(0),
            closed_at_ms: at(1_000),
            sealed_at_ms: at(1_100),
            assigned: 0,
            body: ReportBody::default(),
        };
        Some(ReportView {
            report: Arc::new(report),
            decisions: Some(decisions.to_string().into()),
        })
    }
}

impl Store for Sealed {
    fn apply<'a>(&'a self, region: &'a RegionId, command: Command) -> StoreFuture<'a, Answer> {
        self.inner.apply(region, command)
    }

    fn query<'a>(&'a self, region: &'a RegionId, query: Query) -> StoreFuture<'a, Reply> {
        let Query::Report(seq) = query else {
            return self.inner.query(region, query);
        };
        Box::pin(async move {
            if self.fails {
                return Err(StoreError::Unavailable("it is told to".into()));
            }
            let back = (self.notes.len() as u64 + 1).saturating_sub(seq.get()) as usize;
            match self.reads.get(back.saturating_sub(1)) {
                Some(took) => tokio::time::sleep(*took).await,
                None => std::future::pending().await,
            }
            Ok(Reply::Report(self.report(seq)))
        })
    }

    fn regions(&self) -> StoreFuture<'_, Vec<RegionId>> {
        self.inner.regions()
    }

    fn watch<'a>(&'a self, region: &'a RegionId) -> StoreFuture<'a, watch::Receiver<RegionSignal>> {
        self.inner.watch(region)
    }

    fn watch_regions(&self) -> watch::Receiver<usize> {
        self.inner.watch_regions()
    }

    fn clock(&self, region: &RegionId) -> Arc<dyn Clock> {
        self.inner.clock(region)
    }

    fn alive<'a>(&'a self, node: &'a NodeId, life: DurationMs) -> StoreFuture<'a, Vec<NodeId>> {
        self.inner.alive(node, life)
    }
}

fn id(id: &str) -> RequestId {
    RequestId::new(id).unwrap()
}

fn pickup() -> Place {
    Place::new(1.0, 2.0).unwrap()
}

/// The note of who is planned since when, and of pickups seen first.
fn note(planned: &[(&str, i64)], pickups: &[(&str, i64)]) -> AheadNote {
    let planned = planned.iter().map(|(request, since)| PlannedSince {
        request_id: id(request),
        since_ms: UnixMs::new(*since),
    });
    let pickups = pickups.iter().map(|(request, at)| Asked {
        request_id: id(request),
        at_ms: UnixMs::new(*at),
        pickup: pickup(),
    });
    AheadNote {
        planned: planned.collect(),
        pickups: pickups.collect(),
    }
}

/// A request that was asked for at 500, and has been left over by so many windows.
fn waiting(request: &str, left_over: u32) -> SnapshotRequest {
    SnapshotRequest {
        draft: Arc::new(RequestDraft::at(id(request), pickup())),
        requested_at_ms: UnixMs::new(500),
        deadline_ms: UnixMs::new(600_500),
        left_over,
        attempts: 0,
    }
}

/// The next window's memory, in the eyes of a node that decided none of those before.
async fn recalled(sealed: &Sealed, since: i64) -> WindowAhead {
    let region = RegionId::new("dhaka").unwrap();
    let seq = WindowSeq::new(sealed.notes.len() as u64 + 1);
    let (shared, since) = (SharedMemory::default(), UnixMs::new(since));
    let reading = Duration::from_millis(100);
    WindowAhead::recall(sealed, &region, &shared, seq, since, reading).await
}

/// Since when each of the requests `a`, `b` and `new` is planned, in the eyes of the next window.
fn since(ahead: &mut WindowAhead) -> [Option<i64>; 3] {
    let config = RegionValues::default();
    let requests = [waiting("a", 3), waiting("b", 1), waiting("new", 0)];
    let foresight = ahead.foresight(&config, None, &requests, UnixMs::new(9_000));
    ["a", "b", "new"].map(|request| {
        let waiting = foresight.waiting_of(&id(request))?;
        waiting.planned_since_ms.map(UnixMs::get)
    })
}

fn pickups(ahead: &WindowAhead) -> usize {
    let all = DurationMs::new(1_000_000);
    let expected = ahead.memory.pickups.expected(UnixMs::new(9_000), all);
    expected.len()
}

#[test]
fn a_note_is_found_among_the_decisions_and_its_absence_is_none() {
    let note = note(&[("r", 5)], &[("r", 4)]);
    let text = serde_json::json!({"assignments": [], "unmatched": [], "ahead": note});
    let noted: Noted = serde_json::from_value(text).unwrap();
    let mut memory = AheadMemory::default();
    memory.take_in(noted.ahead.unwrap(), true);
    assert_eq!(memory.planned.get(&id("r")), Some(&UnixMs::new(5)));
    let expected = memory.pickups.expected(UnixMs::new(6), DurationMs::new(3));
    assert_eq!(expected[0].pickup.place(), pickup());
    let expected = memory.pickups.expected(UnixMs::new(6), DurationMs::new(2));
    assert!(expected.is_empty());
    let plain: Noted = serde_json::from_str(r#"{"assignments":[]}"#).unwrap();
    assert!(plain.ahead.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_newest_note_says_who_is_planned_whatever_was_sealed_since() {
    let notes = vec![
        Some(note(&[("a", 700), ("b", 700)], &[("a", 500), ("b", 500)])),
        Some(note(&[("a", 700)], &[("c", 2_500)])),
        None,
        None,
    ];
    let sealed = Sealed::of(notes);
    let mut ahead = recalled(&sealed, 0).await;
    assert_eq!(pickups(&ahead), 3);
    assert_eq!(since(&mut ahead), [Some(700), None, None]);
    // the newest note is looked for even where no pickup is wanted
    let mut ahead = recalled(&sealed, 9_000).await;
    assert_eq!(pickups(&ahead), 1);
    assert_eq!(since(&mut ahead), [Some(700), None, None]);
    // nobody has looked ahead yet
    let mut ahead = recalled(&Sealed::of(vec![None, None]), 0).await;
    assert_eq!(since(&mut ahead), [None; 3]);
}

#[tokio::test(start_paused = true)]
async fn reading_back_ends_in_time_and_what_was_read_stands() {
    let noted = |n: i64| Some(note(&[("a", 700)], &[(["a", "b", "c"][n as usize], n)]));
    let mut sealed = Sealed::of(vec![noted(0), noted(1), noted(2)]);
    sealed.reads = vec![Duration::from_millis(40); 2];
    let started = Instant::now();
    let mut ahead = recalled(&sealed, 0).await;
    assert_eq!(started.elapsed(), Duration::from_millis(100));
    assert_eq!(pickups(&ahead), 2);
    assert_eq!(since(&mut ahead), [Some(700), None, None]);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_could_be_read_a_request_counts_as_planned_since_it_was_asked_for() {
    let notes = || vec![Some(note(&[("a", 700)], &[])), None];
    let mut silent = Sealed::of(notes());
    // the newest noted nothing, and the one before is not read any more
    silent.reads.truncate(1);
    let mut failing = Sealed::of(notes());
    failing.fails = true;
    for sealed in [silent, failing] {
        let mut ahead = recalled(&sealed, 0).await;
        assert_eq!(since(&mut ahead), [Some(500), Some(500), None]);
    }
}
