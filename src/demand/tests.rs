use h3o::{CellIndex, LatLng};
use proptest::prelude::*;

use super::{DemandCounts, DemandModel, Span, WeekClock};
use crate::{
    decision::{DemandSource as _, MAX_PHANTOMS, Phantom},
    domain::{DurationMs, Place, UnixMs},
};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// A Monday, midnight UTC.
const MONDAY: i64 = 1_704_067_200_000;

fn at(ms: i64) -> UnixMs {
    UnixMs::new(MONDAY + ms)
}

fn place(north_km: f64) -> Place {
    Place::new(23.75 + north_km / 111.195, 90.4).unwrap()
}

/// What was asked for in so many days from Monday on.
fn counts(days: i64, mut requests: Vec<(i64, Place)>) -> DemandCounts {
    requests.sort_by_key(|(ms, _)| *ms);
    let span = Span {
        from: at(0),
        to: at(days * DAY_MS),
    };
    let requests = requests.into_iter().map(|(ms, place)| (at(ms), place));
    DemandCounts::of(WeekClock::of("UTC").unwrap(), span, requests)
}

/// Somebody asks at `places` in turn, every so many milliseconds.
fn steady(days: i64, every_ms: i64, places: &[Place]) -> DemandCounts {
    let times = (0..days * DAY_MS / every_ms).map(|n| n * every_ms);
    counts(days, times.zip(places.iter().copied().cycle()).collect())
}

fn minutes(minutes: i64) -> DurationMs {
    DurationMs::new(minutes * MINUTE_MS)
}

fn cell(phantom: &Phantom) -> CellIndex {
    let place = phantom.pickup.place();
    let point = LatLng::new(place.lat(), place.lng()).unwrap();
    point.to_cell(super::counts::MODEL_RESOLUTION)
}

/// Mean number of phantoms over instants from `from` on.
fn mean(model: &DemandModel, from: i64, horizon: DurationMs) -> f64 {
    let instants = (0..400).map(|n| at(from + n * 1_777));
    let all: usize = instants.map(|now| model.expected(now, horizon).len()).sum();
    all as f64 / 400.0
}

#[test]
fn as_many_riders_are_expected_as_ask_where_they_ask() {
    let (here, there) = (place(0.0), place(5.0));
    // two thirds here, one third there, one every 10 s
    let model = DemandModel::new(&steady(7, 10_000, &[here, here, there]));
    let expected = mean(&model, 3 * DAY_MS + 7 * HOUR_MS, minutes(10));
    assert!((expected - 60.0).abs() < 1.0, "{expected}");
    let now = at(2 * DAY_MS + 5 * HOUR_MS + 12_345);
    let expected = model.expected(now, minutes(10));
    let near = |place: Place| {
        let near = |phantom: &&Phantom| phantom.pickup.place().distance_km(place) < 0.5;
        expected.iter().filter(near).count()
    };
    let (few, many) = (near(there), near(here));
    assert!((18..=22).contains(&few), "{few}");
    assert!((38..=42).contains(&many), "{many}");
    assert_eq!(few + many, expected.len());
}

#[test]
fn a_time_of_the_week_has_its_own_demand_once_it_is_known() {
    // four weeks: a rush on Mondays at eight, a rider every five minutes at all other times
    let always = (0..28 * DAY_MS / (5 * MINUTE_MS)).map(|n| (n * 5 * MINUTE_MS, place(0.0)));
    let rush = (0..4).flat_map(|week| {
        let from = week * 7 * DAY_MS + 8 * HOUR_MS;
        (0..450).map(move |n| (from + n * 2_000, place(6.0)))
    });
    let model = DemandModel::new(&counts(28, always.chain(rush).collect()));
    let week_5 = 28 * DAY_MS;
    let rush = mean(&model, week_5 + 8 * HOUR_MS, minutes(2));
    assert!((50.0..62.0).contains(&rush), "{rush}");
    let tuesday = mean(&model, week_5 + DAY_MS + 8 * HOUR_MS, minutes(2));
    assert!(tuesday < 10.0, "{tuesday}");
    let evening = mean(&model, week_5 + 20 * HOUR_MS, minutes(10));
    assert!((1.8..3.0).contains(&evening), "{evening}");
}

#[test]
fn a_time_never_watched_is_taken_from_those_like_it() {
    // Monday to Wednesday, with a rush at noon; what of a Thursday?
    let always = (0..3 * DAY_MS / MINUTE_MS).map(|n| (n * MINUTE_MS, place(0.0)));
    let noon = (0..3).flat_map(|day| {
        (0..900).map(move |n| (day * DAY_MS + 12 * HOUR_MS + n * 1_000, place(1.0)))
    });
    let model = DemandModel::new(&counts(3, always.chain(noon).collect()));
    let noon = mean(&model, 3 * DAY_MS + 12 * HOUR_MS, minutes(2));
    let night = mean(&model, 3 * DAY_MS + 2 * HOUR_MS, minutes(2));
    assert!(noon > 100.0, "{noon}");
    assert!((1.5..3.5).contains(&night), "{night}");
}

#[test]
fn nobody_is_expected_where_nobody_ever_asked_or_nothing_is_looked_at() {
    let empty = DemandModel::new(&counts(2, Vec::new()));
    assert!(empty.expected(at(5), minutes(10)).is_empty());
    let model = DemandModel::new(&steady(1, MINUTE_MS, &[place(0.0)]));
    assert!(model.expected(at(5), DurationMs::ZERO).is_empty());
    assert!(!model.expected(at(5), minutes(10)).is_empty());
    // before 1970, and beyond the calendar
    for now in [-5, i64::MIN, i64::MAX] {
        assert!(model.expected(UnixMs::new(now), minutes(10)).len() < 100);
    }
}

#[test]
fn more_riders_than_a_window_takes_are_the_next_ones() {
    let model = DemandModel::new(&steady(1, 100, &[place(0.0), place(1.0), place(2.0)]));
    let expected = model.expected(at(12 * HOUR_MS + 1), minutes(10));
    assert_eq!(expected.len(), MAX_PHANTOMS);
    // ten a second: 200 s of them
    let last = expected.iter().map(|phantom| phantom.at_ms).max();
    let ahead_s = (last.unwrap() - at(12 * HOUR_MS + 1)).as_seconds();
    assert!((ahead_s - 200.0).abs() < 2.0, "{ahead_s}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_riders_expected_slide_with_time(
        asked in prop::collection::vec((0..7 * DAY_MS, 0..60_u32), 1..400),
        now in 0..14 * DAY_MS,
        horizon_s in 1..600_i64,
        step_ms in 1..30_000_i64,
    ) {
        let requests = asked.iter().map(|&(ms, km)| (ms, place(f64::from(km) / 5.0)));
        let counts = counts(7, requests.collect());
        let model = DemandModel::new(&counts);
        let horizon = DurationMs::new(horizon_s * 1000);
        let (now, later) = (at(now), at(now + step_ms));
        let [first, second] = [now, later].map(|now| model.expected(now, horizon));
        let seen = |phantoms: &[Phantom], from: UnixMs, to: UnixMs| -> Vec<Phantom> {
            let within = phantoms.iter().filter(|p| p.at_ms > from && p.at_ms <= to);
            within.copied().collect()
        };
        // each is to come, within the horizon, where somebody asked once
        prop_assert_eq!(&seen(&first, now, now + horizon), &first);
        for phantom in &first {
            prop_assert!(phantom.learned);
            // the parts of a cell reach a little over its border
            let mut around = cell(phantom).grid_disk::<Vec<_>>(1).into_iter();
            prop_assert!(around.any(|cell| counts.cells.contains_key(&cell)));
        }
        // those that both see are the same
        prop_assert_eq!(
            seen(&first, later, now + horizon),
            seen(&second, later, now + horizon)
        );
        prop_assert_eq!(model.expected(now, horizon), first);
    }
}
