//! What is promised when the store's data began a new life: it is declared, no claim is made before
//! the quarantine is over, fences go on rising.

use kheya::protocol::{EventType, rules::MAX_LEASE_MS};

use super::{Evidence, Findings};

pub(super) fn are_declared(evidence: &Evidence, findings: &mut Findings) {
    let changes: Vec<_> = evidence
        .events
        .iter()
        .filter(|event| event.kind == EventType::GenerationChanged)
        .collect();
    findings.tally.generations = changes.len();
    let was_there = evidence.losses.iter().any(|loss| {
        let mut told = evidence.told.iter();
        told.any(|told| told.is_answered_before(loss.began))
    });
    findings.hold(!was_there || !changes.is_empty(), || {
        format!(
            "INV-6: callers were answered before {:?}, and no loss is declared",
            evidence.losses
        )
    });
    findings.hold(!evidence.losses.is_empty() || changes.is_empty(), || {
        format!("nothing was lost, and this is declared: {changes:?}")
    });
    for change in &changes {
        let over = change.at_ms + MAX_LEASE_MS;
        for event in evidence.events.iter().filter(|event| event.id > change.id) {
            let early = event.kind == EventType::Assigned && event.at_ms < over;
            findings.hold(!early, || {
                format!("claimed in a quarantine that lasts until {over}: {event:?}")
            });
        }
    }
    let Some(change) = changes.first() else {
        return;
    };
    // claims that callers saw, whether the store lost them or not, are older than any later one
    let later = evidence.events.iter().filter(|event| event.id > change.id);
    let made = |event: &&kheya::protocol::Event| event.kind == EventType::Assigned;
    let first = later.filter(made).filter_map(|event| event.fence).min();
    let seen = evidence.seen.values().filter_map(|event| {
        let before = event["at_ms"].as_i64()? < change.at_ms.get();
        let assigned = event["type"] == "assigned" && before;
        event["fence"].as_u64().filter(|_| assigned)
    });
    if let (Some(first), Some(last)) = (first, seen.max()) {
        findings.hold(last < first.get(), || {
            format!("INV-2: fence {first} was given after {last} was seen")
        });
    }
}
