//! What must hold of a region's events, whatever happened: INV-1, INV-2, INV-6, INV-7.

use std::collections::BTreeMap;

use serde_json::Value;

/// Checks every event of a region, in order; returns how each accepted request ended.
pub(crate) fn check_events(events: &[Value]) -> BTreeMap<String, String> {
    let mut held: BTreeMap<String, (String, u64)> = BTreeMap::new();
    let mut served: BTreeMap<String, String> = BTreeMap::new();
    let mut ends: BTreeMap<String, String> = BTreeMap::new();
    let mut last_fence = 0;
    for event in events {
        let kind = event["type"].as_str().unwrap();
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        let fence = event["fence"].as_u64();
        match kind {
            "assigned" => {
                let (driver, request) = (text("driver_id").unwrap(), text("request_id").unwrap());
                let fence = fence.unwrap();
                assert!(
                    fence > last_fence && fence < 1 << 53,
                    "INV-2: fence {fence} after {last_fence}"
                );
                last_fence = fence;
                let before = held.insert(driver.clone(), (request.clone(), fence));
                assert_eq!(before, None, "INV-1: {driver} was held when {event} came");
                let before = served.insert(request.clone(), driver);
                assert_eq!(
                    before, None,
                    "INV-1: {request} was served when {event} came"
                );
            }
            "released" | "lease_expired" | "completed" | "cancelled" | "expired" | "confirmed" => {
                if let Some(driver) = text("driver_id") {
                    let (request, claimed) = held
                        .get(&driver)
                        .cloned()
                        .expect("an event of a live claim");
                    assert_eq!(Some(claimed), fence, "INV-3: {event}");
                    assert_eq!(Some(request.clone()), text("request_id"), "{event}");
                    if kind != "confirmed" {
                        held.remove(&driver);
                        served.remove(&request);
                    }
                }
                if matches!(kind, "confirmed" | "cancelled" | "expired") {
                    let request = text("request_id").unwrap();
                    let before = ends.insert(request.clone(), kind.to_owned());
                    assert_eq!(before, None, "INV-6: {request} ended twice: {event}");
                }
            }
            _ => {}
        }
    }
    ends
}
