//! INV-6, 7 and 10 as callers met them: what they were told happened, happened; what they were told
//! did not, did not; and a repeat got the first answer.

use std::collections::{BTreeMap, BTreeSet};

use kheya::protocol::EventType;
use serde_json::Value;

use super::{Evidence, Findings, books::Books};
use crate::calls::{Asked, Told};

pub(super) fn agree(evidence: &Evidence, books: &Books, findings: &mut Findings) {
    let mut first_answers = FirstAnswers::default();
    for told in &evidence.told {
        findings.tally.tries += told.tries.len();
        let unknown = told.tries.iter().filter(|tried| tried.outcome.is_unknown());
        findings.tally.unknown += unknown.count();
        let failed = told
            .tries
            .iter()
            .find(|tried| tried.outcome.status() == 500);
        findings.hold(failed.is_none(), || format!("a node failed: {told:?}"));
        let Some(last) = told.known() else {
            findings.hold(!told.insists, || {
                format!("INV-10: never answered: {told:?}")
            });
            nothing_happened(evidence, books, told, findings);
            continue;
        };
        if !last.outcome.is_ok() {
            findings.tally.refused += 1;
        }
        if !evidence.is_kept(last.sent) {
            continue;
        }
        match &told.asked {
            Asked::Intake { .. } => intake(evidence, books, told, findings),
            Asked::Cancel { request } => cancel(evidence, books, told, request, findings),
            Asked::Claim { .. } => claim(evidence, books, told, findings),
            Asked::Own { .. } => own(evidence, books, told, findings),
        }
        first_answers.compare(told, findings);
    }
}

/// A caller that gave up after answers which all said that nothing was executed: nothing was.
fn nothing_happened(evidence: &Evidence, books: &Books, told: &Told, findings: &mut Findings) {
    let Asked::Intake { requests } = &told.asked else {
        return;
    };
    let mut tries = told.tries.iter();
    let asked_elsewhere = evidence
        .told
        .iter()
        .filter(|other| other.asked == told.asked);
    if !tries.all(|tried| tried.outcome.is_not_executed()) || asked_elsewhere.count() > 1 {
        return;
    }
    for request in requests {
        findings.hold(!books.requested.contains(request), || {
            format!("INV-10: {request} was taken in, although the caller was told that it was not: {told:?}")
        });
    }
}

fn intake(evidence: &Evidence, books: &Books, told: &Told, findings: &mut Findings) {
    let Some(last) = told.known().filter(|last| last.outcome.is_ok()) else {
        return;
    };
    let answer = last.outcome.json();
    for taken in answer["requests"].as_array().unwrap() {
        let id = taken["id"].as_str().unwrap();
        findings.tally.accepted += 1;
        closed_as_promised(evidence, taken, findings);
        findings.hold(books.requested.contains(id), || {
            format!("INV-6: {id} was accepted ({taken}) and is not in the outbox")
        });
        let ended = evidence
            .requests
            .get(id)
            .is_some_and(|state| ["confirmed", "cancelled", "expired"].contains(&state.as_str()));
        findings.hold(ended, || {
            format!(
                "INV-6: {id} was accepted and is {:?}",
                evidence.requests.get(id)
            )
        });
    }
}

/// The window of an accepted request closed no later than was said, whatever was tuned since.
fn closed_as_promised(evidence: &Evidence, taken: &Value, findings: &mut Findings) {
    if !evidence.losses.is_empty() || evidence.clock_set_back {
        return;
    }
    let window = &taken["window_seq"];
    let mut reports = evidence.reports.iter();
    let report = reports.find(|report| report["window_seq"] == *window);
    let closed = report.and_then(|report| report["closed_at_ms"].as_i64());
    let promised = taken["closes_at_ms"].as_i64().unwrap();
    findings.hold(closed.is_some_and(|closed| closed <= promised), || {
        format!("INV-8: {taken} was promised, and this came: {report:?}")
    });
}

fn cancel(evidence: &Evidence, books: &Books, told: &Told, id: &str, findings: &mut Findings) {
    let Some(last) = told.known() else { return };
    let ends = books.ends.get(id).cloned().unwrap_or_default();
    let code = last.outcome.code();
    let holds = match (last.outcome.status(), code.as_str()) {
        (200, _) => ends.contains(&EventType::Cancelled),
        (409, "already_confirmed") => {
            ends.contains(&EventType::Confirmed) || books.reconciled.contains(id)
        }
        (409, "request_closed") => ends.contains(&EventType::Expired),
        // not taken in yet, as far as anybody was told; or lost with the store's data
        (404, "unknown_request" | "unknown_region") => {
            evidence.lost_writes() || !was_accepted(evidence, id)
        }
        (409, "not_held") => !evidence.losses.is_empty(),
        _ => false,
    };
    findings.hold(holds, || {
        format!(
            "INV-7: cancelling {id} was answered {:?}; it ended {ends:?}",
            last.outcome
        )
    });
}

fn was_accepted(evidence: &Evidence, id: &str) -> bool {
    evidence.told.iter().any(|told| {
        let named =
            matches!(&told.asked, Asked::Intake { requests } if requests.iter().any(|r| r == id));
        named && told.known().is_some_and(|last| last.outcome.is_ok())
    })
}

fn claim(evidence: &Evidence, books: &Books, told: &Told, findings: &mut Findings) {
    let Asked::Claim {
        verb,
        driver,
        request,
        fence,
    } = &told.asked
    else {
        return;
    };
    let Some(last) = told.known() else { return };
    let happened = |kind| {
        let key = (kind, driver.clone(), request.clone(), *fence);
        books.claims.get(&key).copied().unwrap_or(0)
    };
    let event = match *verb {
        "confirm" => EventType::Confirmed,
        "release" => EventType::Released,
        "complete" => EventType::Completed,
        // extending publishes no event
        _ => return,
    };
    // what a loss undid may be offered, and answered, once more
    let again = evidence.told.iter().filter(|other| {
        let other = (&other.asked, other.known());
        other.0 == &told.asked && other.1.is_some_and(|last| last.outcome.is_ok())
    });
    if evidence.lost_writes() && !last.outcome.is_ok() && again.count() > 0 {
        return;
    }
    let (times, code) = (happened(event), last.outcome.code());
    let holds = match (last.outcome.status(), code.as_str()) {
        (200, _) => times == 1,
        (409, "lease_expired") => times == 0 && happened(EventType::LeaseExpired) == 1,
        (409, "already_confirmed") => times == 0 && happened(EventType::Confirmed) == 1,
        (409, "request_closed" | "fence_stale" | "not_confirmed") => times == 0,
        (409, "not_held") => !evidence.losses.is_empty() && times == 0,
        // a node that has just started meets a region that was lost before it is registered again
        (404, "unknown_request" | "unknown_region") => evidence.lost_writes() && times == 0,
        _ => false,
    };
    findings.hold(holds, || {
        format!("INV-7: {event:?} is in the outbox {times} times; {told:?}")
    });
}

/// A window's answer tells all of its claims, and each is in the outbox.
fn own(evidence: &Evidence, books: &Books, told: &Told, findings: &mut Findings) {
    let Asked::Own { requests, .. } = &told.asked else {
        return;
    };
    let Some(last) = told.known() else { return };
    let answer = last.outcome.json();
    if !last.outcome.is_ok() {
        let refusals = ["quarantined", "window_lost", "unknown_region"];
        findings.hold(refusals.contains(&last.outcome.code().as_str()), || {
            format!("an own window was refused: {told:?}")
        });
        return;
    }
    let mut claimed = BTreeSet::new();
    for pair in answer["assignments"].as_array().unwrap() {
        let text = |name: &str| pair[name].as_str().unwrap().to_owned();
        let fence = pair["fence"].as_u64().unwrap();
        claimed.insert((text("request_id"), text("driver_id"), fence));
    }
    let booked: BTreeSet<(String, String, u64)> = requests
        .iter()
        .flat_map(|request| {
            let claims = books.own.get(request).into_iter().flatten();
            claims.map(move |(driver, fence)| (request.clone(), driver.clone(), *fence))
        })
        .collect();
    // what was lost with the data was not lost in secret
    let excused = evidence.lost_writes();
    findings.hold(
        claimed == booked || (excused && claimed.is_subset(&booked)),
        || format!("INV-7: an own window told {claimed:?}, the outbox {booked:?}: {told:?}"),
    );
}

/// The first answer to each call; later ones must be the same.
#[derive(Default)]
struct FirstAnswers(BTreeMap<String, Value>);

impl FirstAnswers {
    fn compare(&mut self, told: &Told, findings: &mut Findings) {
        let Some(last) = told.known().filter(|last| last.outcome.is_ok()) else {
            return;
        };
        let mut answer = last.outcome.json();
        let key = match &told.asked {
            // an extension counts from when it is asked for
            Asked::Claim { verb: "extend", .. } => return,
            asked => format!("{asked:?}"),
        };
        if let Some(requests) = answer["requests"].as_array_mut() {
            for request in requests {
                request.as_object_mut().unwrap().remove("replayed");
            }
        }
        let first = self.0.entry(key).or_insert_with(|| answer.clone());
        findings.hold(*first == answer, || {
            format!("INV-6: answered {first} and then {answer}: {told:?}")
        });
    }
}
