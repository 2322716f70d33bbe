use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

const MINUTE: i64 = 60_000;

fn instant(text: &str) -> UnixMs {
    UnixMs::new(text.parse::<Timestamp>().unwrap().as_millisecond())
}

fn minutes_after(start: UnixMs, minutes: i64) -> UnixMs {
    start + DurationMs::new(minutes * MINUTE)
}

fn place() -> Place {
    Place::new(23.75, 90.4).unwrap()
}

/// Counts requests of one place, so many minutes after a start, in a span of minutes.
fn counted(zone: &str, start: &str, span: i64, requests: &[i64]) -> DemandCounts {
    let start = instant(start);
    let span = Span {
        from: start,
        to: minutes_after(start, span),
    };
    let requests = requests
        .iter()
        .map(|&at| (minutes_after(start, at), place()));
    DemandCounts::of(WeekClock::of(zone).unwrap(), span, requests)
}

/// Slots that were watched, with the minutes.
fn watched(counts: &DemandCounts) -> Vec<(usize, i64)> {
    let slots = counts.watched.iter().enumerate();
    let slots = slots.map(|(slot, watched)| (slot, watched.get() / MINUTE));
    slots.filter(|&(_, minutes)| minutes > 0).collect()
}

fn slots(counts: &DemandCounts) -> Vec<(usize, u32)> {
    let cells = counts.cells.values().flatten();
    cells.map(|(slot, &count)| (slot.index(), count)).collect()
}

#[test]
fn requests_fall_into_the_quarters_of_their_zone() {
    // Monday 06:00 in Dhaka
    let counts = counted("Asia/Dhaka", "2024-01-01T00:00:00Z", 40, &[0, 14, 15, 39]);
    assert_eq!(slots(&counts), [(24, 2), (25, 1), (26, 1)]);
    assert_eq!(watched(&counts), [(24, 15), (25, 15), (26, 10)]);
    assert_eq!((counts.requests(), counts.cells()), (4, 1));
    assert_eq!(counts.watched(), DurationMs::new(40 * MINUTE));
    // 05:45 in Kathmandu
    let counts = counted("Asia/Kathmandu", "2024-01-01T00:00:00Z", 15, &[0]);
    assert_eq!(slots(&counts), [(23, 1)]);
}

#[test]
fn six_hours_without_a_request_are_watched_and_more_are_a_gap() {
    let total = |requests: &[i64], span| {
        let counts = counted("UTC", "2024-01-01T00:00:00Z", span, requests);
        counts.watched().get() / MINUTE
    };
    assert_eq!(total(&[10, 370], 380), 380);
    assert_eq!(total(&[10, 371], 380), 19);
    // before the first and after the last too
    assert_eq!(total(&[400], 800), 0);
    assert_eq!(total(&[], 360), 360);
    assert_eq!(total(&[], 361), 0);
}

#[test]
fn the_hour_that_summer_time_repeats_is_watched_twice_and_the_one_it_leaves_out_never() {
    // Sunday 01:00 to 03:00 in New York: 01:00 comes twice
    let autumn = counted(
        "America/New_York",
        "2024-11-03T05:00:00Z",
        180,
        &[1, 61, 121],
    );
    let one = 6 * 96 + 4;
    assert_eq!(slots(&autumn), [(one, 2), (one + 4, 1)]);
    assert_eq!(watched(&autumn)[0], (one, 30));
    assert_eq!(watched(&autumn)[4], (one + 4, 15));
    // 02:00 is left out
    let spring = counted("America/New_York", "2024-03-10T06:00:00Z", 120, &[1, 61]);
    assert_eq!(slots(&spring), [(one, 1), (one + 8, 1)]);
    let quarters: Vec<usize> = watched(&spring).into_iter().map(|(slot, _)| slot).collect();
    assert_eq!(quarters, [0, 1, 2, 3, 8, 9, 10, 11].map(|n| one + n));
}

#[test]
fn a_week_seen_twice_counts_twice() {
    let requests: Vec<i64> = (0..14 * 24 * 4).map(|quarter| quarter * 15 + 1).collect();
    let counts = counted("UTC", "2024-01-01T00:00:00Z", 14 * 24 * 60, &requests);
    assert_eq!(watched(&counts).len(), SLOTS);
    assert!(watched(&counts).iter().all(|&(_, minutes)| minutes == 30));
    assert!(slots(&counts).iter().all(|&(_, count)| count == 2));
}

#[test]
fn spans_meet_where_they_have_time_in_common() {
    let span = |from: i64, to: i64| Span {
        from: UnixMs::new(from),
        to: UnixMs::new(to),
    };
    assert!(span(0, 2).meets(span(1, 3)));
    assert!(span(0, 9).meets(span(1, 3)));
    assert!(!span(0, 1).meets(span(1, 3)));
    assert!(!span(3, 4).meets(span(1, 3)));
}

proptest! {
    #[test]
    fn every_request_counts_once_and_watched_time_is_the_span_without_its_gaps(
        steps in prop::collection::vec((0..500_i64, -80.0..80.0_f64, -180.0..180.0_f64), 0..60),
        start in -3_000_000_000_000..3_000_000_000_000_i64,
        rest in 0..500_i64,
        zone in prop::sample::select(vec!["UTC", "Asia/Dhaka", "America/New_York", "Australia/Lord_Howe"]),
    ) {
        let from = UnixMs::new(start);
        let mut at = from;
        let mut seen = DurationMs::ZERO;
        let mut step = |minutes: i64| {
            at = minutes_after(at, minutes);
            if minutes <= 360 {
                seen += DurationMs::new(minutes * MINUTE);
            }
            at
        };
        let requests: Vec<(UnixMs, Place)> = steps
            .iter()
            .map(|&(minutes, lat, lng)| (step(minutes), Place::new(lat, lng).unwrap()))
            .collect();
        let to = step(rest);
        let clock = WeekClock::of(zone).unwrap();
        let counts = DemandCounts::of(clock, Span { from, to }, requests);
        prop_assert_eq!(counts.requests(), steps.len() as u64);
        prop_assert_eq!(counts.watched(), seen);
        prop_assert!(counts.cells() <= steps.len());
        let read = DemandCounts::from_json(&counts.to_json().unwrap()).unwrap();
        prop_assert_eq!(read, counts);
    }
}
