use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::demand::counts::MODEL_RESOLUTION;

const MINUTE: i64 = 60_000;

/// A Monday, by the clock of UTC.
const MONDAY: i64 = 1_704_067_200_000;

/// Cells in a row, rising.
fn cells(count: usize) -> Vec<CellIndex> {
    let point = h3o::LatLng::new(23.75, 90.4).unwrap();
    let region = point.to_cell(h3o::Resolution::Four);
    region.children(MODEL_RESOLUTION).take(count).collect()
}

/// What was seen, by cell, slot and number; every slot was watched for so many minutes.
fn seen(minutes: impl Fn(u16) -> i64, requests: &[(usize, u16, u32)]) -> DemandCounts {
    let mut by_cell: BTreeMap<CellIndex, BTreeMap<WeekSlot, u32>> = BTreeMap::new();
    let cells = cells(64);
    for &(cell, slot, count) in requests {
        let slots = by_cell.entry(cells[cell]).or_default();
        *slots.entry(WeekSlot::new(slot).unwrap()).or_default() += count;
    }
    let watched = (0..SLOTS as u16).map(|slot| DurationMs::new(minutes(slot) * MINUTE));
    DemandCounts {
        clock: WeekClock::of("UTC").unwrap(),
        span: Span {
            from: UnixMs::new(MONDAY),
            to: UnixMs::new(MONDAY),
        },
        watched: watched.collect(),
        cells: by_cell,
    }
}

fn rate(model: &DemandModel, slot: u16) -> f64 {
    model.slot(WeekSlot::new(slot).unwrap()).rate
}

fn at_slot(slot: u16) -> UnixMs {
    UnixMs::new(MONDAY + i64::from(slot) * 15 * MINUTE)
}

const HORIZON: DurationMs = DurationMs::new(60_000);

#[test]
fn a_slot_with_plenty_of_its_own_data_has_its_own_rate_and_places() {
    // a busy quarter of Monday morning, seen for a year, among quiet ones
    let mut requests: Vec<_> = (0..SLOTS as u16).map(|slot| (0, slot, 52)).collect();
    requests.push((1, 32, 52_000));
    let model = DemandModel::new(&seen(|_| 15 * 52, &requests));
    let own = 52_052.0 / (15.0 * 52.0 * 60.0);
    let told = rate(&model, 32);
    assert!((told / own - 1.0).abs() < 0.01, "{told} {own}");
    let shares = model.slot(WeekSlot::new(32).unwrap()).shares;
    assert!(shares[1] > 0.98, "{shares:?}");
    // Sunday's knows better than the mean of all times too
    let quiet = 1.0 / (15.0 * 60.0);
    let sunday = rate(&model, 6 * 96 + 32);
    assert!(sunday < 3.0 * quiet, "{sunday} {quiet}");
}

#[test]
fn a_slot_that_was_never_watched_has_the_rate_of_the_coarser_ones() {
    // ten requests a quarter on weekdays at eight; Friday was not watched
    let friday = 4 * 96 + 32;
    let weekdays = [0, 1, 2, 3].map(|day| (0, day * 96 + 32, 1_000));
    let model = DemandModel::new(&seen(
        |slot| if slot == friday { 0 } else { 15 * 100 },
        &weekdays,
    ));
    let (monday, friday, sunday) = (
        rate(&model, 32),
        rate(&model, friday),
        rate(&model, 6 * 96 + 32),
    );
    assert!((friday / monday - 1.0).abs() < 0.05, "{friday} {monday}");
    assert!(sunday < friday / 5.0, "{sunday} {friday}");
}

#[test]
fn without_requests_or_without_time_nobody_is_expected() {
    let none = DemandModel::new(&seen(|_| 15, &[]));
    assert_eq!(none.expected(at_slot(0), HORIZON), []);
    let unwatched = DemandModel::new(&seen(|_| 0, &[(0, 0, 7)]));
    assert_eq!(unwatched.expected(at_slot(0), HORIZON), []);
    let counted_nought = DemandModel::new(&seen(|_| 15, &[(0, 0, 0)]));
    assert_eq!(counted_nought.expected(at_slot(0), HORIZON), []);
    let some = DemandModel::new(&seen(|_| 15, &[(0, 0, 700)]));
    assert_eq!(some.expected(at_slot(0), DurationMs::ZERO), []);
    assert_eq!(some.expected(at_slot(0), DurationMs::new(-1)), []);
}

#[test]
fn the_most_that_a_file_can_hold_gives_at_most_so_many_phantoms_to_come() {
    let everywhere: Vec<_> = (0..64).map(|cell| (cell, 0, u32::MAX)).collect();
    let mut counts = seen(|_| 0, &everywhere);
    counts.watched[0] = DurationMs::new(1);
    let model = DemandModel::new(&counts);
    let now = at_slot(0);
    let phantoms = model.expected(now, DurationMs::new(600_000));
    assert_eq!(phantoms.len(), MAX_PHANTOMS);
    assert!(phantoms.iter().all(|phantom| phantom.at_ms > now));
    for now in [i64::MIN, -1, 0, i64::MAX] {
        model.expected(UnixMs::new(now), DurationMs::new(600_000));
    }
}

#[test]
fn a_horizon_over_two_slots_expects_the_riders_of_both() {
    let weeks = 1_000;
    let model = DemandModel::new(&seen(|_| 15 * weeks, &[(0, 10, 90_000), (1, 11, 180_000)]));
    let half = at_slot(11) - DurationMs::new(5 * MINUTE);
    let by_cell = model.expected_by_cell(half, half + DurationMs::new(10 * MINUTE));
    let wanted = [90.0 / 3.0, 180.0 / 3.0];
    for (told, wanted) in by_cell.iter().zip(wanted) {
        assert!((told / wanted - 1.0).abs() < 0.05, "{by_cell:?}");
    }
}

/// Requests by cell, slot and number, and how many minutes each kind of slot was watched.
fn any_seen() -> impl Strategy<Value = DemandCounts> {
    let request = (0..64_usize, 0..SLOTS as u16, 1..2_000_u32);
    let requests = prop::collection::vec(request, 0..200);
    (requests, 0..2_000_i64, 1..7_u16).prop_map(|(requests, minutes, some)| {
        seen(|slot| if slot % some == 0 { minutes } else { 0 }, &requests)
    })
}

proptest! {
    #[test]
    fn rates_are_positive_where_anybody_was_seen_and_shares_sum_to_one(
        counts in any_seen(), slot in 0..SLOTS as u16
    ) {
        let model = DemandModel::new(&counts);
        let SlotDemand { rate, shares } = model.slot(WeekSlot::new(slot).unwrap());
        prop_assert!(rate.is_finite() && rate >= 0.0);
        prop_assert_eq!(rate > 0.0, counts.requests() > 0 && counts.watched() > DurationMs::ZERO);
        let sum: f64 = shares.iter().sum();
        let wanted = if counts.requests() > 0 { 1.0 } else { 0.0 };
        prop_assert!((sum - wanted).abs() < 1e-9, "{sum}");
        prop_assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
    }
}
