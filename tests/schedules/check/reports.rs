//! INV-4 and the numbering of windows: claims come from a window's owner alone, and each window is
//! sealed once.

use std::collections::BTreeMap;

use kheya::protocol::{EventType, Source};

use serde_json::Value;

use super::{Evidence, Findings};

pub(super) fn agree(evidence: &Evidence, findings: &mut Findings) {
    let mut claimed: BTreeMap<u64, u64> = BTreeMap::new();
    let mut times: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    let mut fallen_back: BTreeMap<u64, u64> = BTreeMap::new();
    let mut newest = 0;
    for event in &evidence.events {
        if event.kind == EventType::GenerationChanged {
            // windows under way then are taken anew
            fallen_back.clear();
            continue;
        }
        let (EventType::Assigned, Some(seq)) = (event.kind, event.window_seq) else {
            continue;
        };
        let (seq, at) = (seq.get(), event.at_ms.get());
        *claimed.entry(seq).or_default() += 1;
        let span = times.entry(seq).or_insert((at, at));
        *span = (span.0.min(at), span.1.max(at));
        findings.hold(seq >= newest, || {
            format!("INV-4: a claim for window {seq} after one for {newest}: {event:?}")
        });
        newest = newest.max(seq);
        match event.source {
            Some(Source::Fallback) => {
                fallen_back.insert(seq, event.id.get());
            }
            Some(Source::Batch) => findings.hold(!fallen_back.contains_key(&seq), || {
                format!(
                    "INV-4: the leader claims for window {seq}, which was taken over: {event:?}"
                )
            }),
            _ => findings
                .broken
                .push(format!("INV-4: who claimed this? {event:?}")),
        }
    }
    let mut last = 0;
    for report in &evidence.reports {
        let number = |name: &str| report[name].as_i64().unwrap();
        let seq = report["window_seq"].as_u64().unwrap();
        findings.hold(seq == last + 1, || {
            format!("windows have a gap: {seq} follows {last}")
        });
        last = seq;
        let told = report["assigned"].as_u64().unwrap();
        let made = claimed.remove(&seq).unwrap_or(0);
        findings.hold(told == made, || {
            format!("INV-4: window {seq} reports {told} claims, the events tell {made}: {report}")
        });
        if let Some((first, latest)) = times.get(&seq)
            && !evidence.clock_set_back
        {
            let (closed, sealed) = (number("closed_at_ms"), number("sealed_at_ms"));
            findings.hold(closed <= *first && *latest <= sealed, || {
                format!("INV-4: claims of window {seq} at {first}–{latest}: {report}")
            });
        }
        findings.tally.windows += 1;
        if report["source"] != "batch" {
            findings.tally.fallbacks += 1;
        }
    }
    findings.hold(claimed.is_empty(), || {
        format!("INV-4: claims for windows that were never sealed: {claimed:?}")
    });
}

/// Windows that were sealed later than so long after their close.
pub(crate) fn sealed_in_time(region: &str, reports: &[Value], within_ms: i64) -> Vec<String> {
    let late = |report: &&Value| {
        let number = |name: &str| report[name].as_i64().unwrap();
        number("sealed_at_ms") - number("closed_at_ms") > within_ms
    };
    let late = reports.iter().filter(late);
    late.map(|report| format!("a window of {region} was sealed late: {report}"))
        .collect()
}
