//! The books: INV-1, 2, 3 over every event; INV-6 at the end; INV-7 against what readers see.

use std::collections::{BTreeMap, BTreeSet};

use kheya::protocol::{EventType, Ledger, Reason, RequestState};
use serde_json::Value;

use super::{Evidence, Findings};

/// Events of one request or claim, by what they tell.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// (verb's event, driver, request, fence) → how often.
    pub(super) claims: BTreeMap<(EventType, String, String, u64), usize>,
    /// Requests that were taken in.
    pub(super) requested: BTreeSet<String>,
    /// How requests ended.
    pub(super) ends: BTreeMap<String, Vec<EventType>>,
    /// Requests whose trips were told after a loss.
    pub(super) reconciled: BTreeSet<String>,
    /// Claims of callers' own windows: request → (driver, fence).
    pub(super) own: BTreeMap<String, Vec<(String, u64)>>,
}

pub(super) fn keep(evidence: &Evidence, findings: &mut Findings) -> Books {
    let mut ledger = Ledger::default();
    let mut books = Books::default();
    findings.broken.extend(evidence.differences.iter().cloned());
    for event in &evidence.events {
        if let Err(breach) = ledger.book(event) {
            findings.broken.push(format!("{breach:?}"));
        }
        let request = event.request_id.as_ref().map(ToString::to_string);
        let driver = event.driver_id.as_ref().map(ToString::to_string);
        if let (Some(request), Some(driver), Some(fence)) = (&request, &driver, event.fence) {
            let key = (event.kind, driver.clone(), request.clone(), fence.get());
            *books.claims.entry(key).or_default() += 1;
            if event.source == Some(kheya::protocol::Source::Own) {
                let own = books.own.entry(request.clone()).or_default();
                own.push((driver.clone(), fence.get()));
            }
        }
        let Some(request) = request else { continue };
        match event.kind {
            EventType::Requested => {
                books.requested.insert(request);
            }
            // a trip that is told after a loss may have ended otherwise in between
            EventType::Confirmed if event.reason == Some(Reason::Reconciled) => {
                books.reconciled.insert(request);
            }
            EventType::Confirmed | EventType::Cancelled | EventType::Expired => {
                books.ends.entry(request).or_default().push(event.kind);
            }
            _ => {}
        }
    }
    let tally = &mut findings.tally;
    tally.events = evidence.events.len();
    tally.claims = ledger.claims as usize;
    tally.own_claims = books.own.values().map(Vec::len).sum();
    tally.confirmed = books
        .claims
        .keys()
        .filter(|(kind, ..)| *kind == EventType::Confirmed)
        .count();
    for request in &books.requested {
        let ends = books.ends.get(request).map_or(0, Vec::len);
        let told = ends == 0 && books.reconciled.contains(request);
        findings.hold(ends == 1 || told, || {
            format!(
                "INV-6: {request} ended {ends} times: {:?}",
                books.ends.get(request)
            )
        });
    }
    same_as_readers_see(evidence, &ledger, findings);
    as_it_was_seen(evidence, findings);
    books
}

/// The books and the region's own lists say the same (INV-7).
fn same_as_readers_see(evidence: &Evidence, ledger: &Ledger, findings: &mut Findings) {
    let state = |state: RequestState| {
        let state = serde_json::to_value(state).unwrap();
        state.as_str().unwrap().to_owned()
    };
    let booked: BTreeMap<String, String> = ledger
        .requests
        .iter()
        .map(|(id, request)| (id.to_string(), state(request.state)))
        .collect();
    for id in booked.keys().chain(evidence.requests.keys()) {
        let (told, listed) = (booked.get(id), evidence.requests.get(id));
        findings.hold(told == listed, || {
            format!("INV-7: {id} is {told:?} by the events and {listed:?} by the list")
        });
    }
    let held: BTreeMap<String, (String, u64)> = ledger
        .drivers
        .iter()
        .map(|(driver, claim)| {
            let claim = (claim.request_id.to_string(), claim.fence.get());
            (driver.to_string(), claim)
        })
        .collect();
    let listed = &evidence.claims;
    findings.hold(held == *listed, || {
        format!("INV-7: held by the events: {held:?}; by the list: {listed:?}")
    });
}

/// What followers saw while it happened is what the outbox still says: nothing was changed
/// afterwards, inserted, or left out. Only the events of a lost tail may be missing.
fn as_it_was_seen(evidence: &Evidence, findings: &mut Findings) {
    let place = |cursor: &str| {
        let (generation, id) = cursor.split_once('-').unwrap();
        let number = |text: &str| text.parse::<u64>().unwrap();
        (number(generation), number(id))
    };
    let body = |event: &Value| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().remove("cursor");
        event
    };
    let kept: BTreeMap<u64, &Value> = evidence
        .outbox
        .iter()
        .map(|event| (place(event["cursor"].as_str().unwrap()).1, event))
        .collect();
    let generations = evidence.events.iter();
    let changed_at = generations
        .filter(|event| event.kind == EventType::GenerationChanged)
        .map(|event| event.id.get())
        .next()
        .unwrap_or(u64::MAX);
    let now = evidence
        .outbox
        .first()
        .map_or(0, |event| place(event["cursor"].as_str().unwrap()).0);
    for (cursor, seen) in &evidence.seen {
        let (generation, id) = place(cursor);
        if evidence.lost_writes() && generation < now && id >= changed_at {
            findings.tally.lost += 1;
            continue;
        }
        let same = kept.get(&id).is_some_and(|kept| body(kept) == body(seen));
        findings.hold(same, || {
            format!(
                "INV-7: seen at {cursor}: {seen}; now there: {:?}",
                kept.get(&id)
            )
        });
    }
}
