//! Time zones, date orders, ranges, resolution.

use std::fmt::Write as _;

use kheya::replay::input::{DateOrder, Demand, ReadOptions, Reason};

use crate::harness::{new_york, options, read, read_with, refusal, rejected};

const HEADER: &str =
    "request_id,pickup_datetime,dropoff_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n";

/// One row for each (pickup, drop-off) time.
fn rows(times: &[(&str, &str)]) -> String {
    let mut text = HEADER.to_owned();
    for (i, (pickup, dropoff)) in times.iter().enumerate() {
        writeln!(text, "r{i},{pickup},{dropoff},40.75,-73.98,40.76,-73.97").unwrap();
    }
    text
}

fn ms(demand: &Demand) -> Vec<i64> {
    demand
        .trips
        .iter()
        .map(|trip| trip.requested_at.get())
        .collect()
}

#[test]
fn wall_clocks_are_read_in_their_zone_over_both_changes_of_the_clock() {
    let text = rows(&[
        ("2013-03-10 01:59:59", "2013-03-10 03:00:09"),
        ("2013-03-10 02:30:00", "2013-03-10 03:10:00"),
        ("2013-11-03 01:30:00", "2013-11-03 02:30:00"),
    ]);
    let demand = read_with(&text, &new_york()).unwrap();
    assert_eq!(rejected(&demand), [(Reason::BadTime, 1)]);
    assert_eq!(ms(&demand), [1_362_898_799_000, 1_383_456_600_000]);
    let seconds: Vec<_> = demand.trips.iter().map(|trip| trip.trip_s).collect();
    // Ten real seconds over the gap; two real hours from the earlier 01:30 to 02:30.
    assert_eq!(seconds, [Some(10.0), Some(7200.0)]);
    assert_eq!(demand.report.trip_time_source.dropoff_time, 2);
}

#[test]
fn an_unknown_zone_is_refused() {
    let options = ReadOptions {
        tz: Some("America/Gotham".into()),
        ..options()
    };
    let said = refusal(rows(&[("2013-03-10 01:59:59", "")]), &options);
    assert!(
        said.starts_with("--tz America/Gotham: no such time zone"),
        "{said}"
    );
}

#[test]
fn the_order_of_dates_is_decided_by_all_rows_of_its_column_and_said() {
    let mdy = rows(&[
        ("01/02/2013 11:30:00 PM", ""),
        ("01/13/2013 12:00:01 AM", ""),
    ]);
    let demand = read(&mdy);
    assert_eq!(ms(&demand), [1_357_169_400_000, 1_358_035_201_000]);
    assert!(
        demand.report.notes[0].contains("read as mdy"),
        "{:?}",
        demand.report.notes
    );
    let dmy = rows(&[("02-01-13 23:30", ""), ("31-12-45 00:00", "")]);
    assert_eq!(ms(&read(&dmy))[0], 1_357_169_400_000);
}

#[test]
fn an_order_that_cannot_be_known_is_asked_for() {
    let text = rows(&[("01/02/2013 00:00", ""), ("03/04/2013 00:00", "")]);
    let said = refusal(&text, &options());
    assert!(
        said.contains("\"pickup_datetime\"") && said.contains("--date-order"),
        "{said}"
    );
    for (order, first) in [
        (DateOrder::Mdy, 1_357_084_800_000),
        (DateOrder::Dmy, 1_359_676_800_000),
    ] {
        let options = ReadOptions {
            date_order: Some(order),
            ..options()
        };
        assert_eq!(ms(&read_with(&text, &options).unwrap())[0], first);
    }
    let mixed = rows(&[("13/02/2013 00:00", ""), ("02/13/2013 00:00", "")]);
    assert!(refusal(&mixed, &options()).contains("no one order"));
    let options = ReadOptions {
        date_order: Some(DateOrder::Dmy),
        ..options()
    };
    assert_eq!(
        rejected(&read_with(&mixed, &options).unwrap()),
        [(Reason::BadTime, 1)]
    );
}

#[test]
fn each_column_decides_its_own_order() {
    let text = rows(&[("13/01/2013 00:00", "01/13/2013 00:10")]);
    assert_eq!(read(&text).trips[0].trip_s, Some(600.0));
}

#[test]
fn epochs_are_seconds_or_milliseconds_by_their_column() {
    let text = rows(&[
        ("1357016400", "1357016460000"),
        ("1357016401.5", "1357016461500"),
    ]);
    let demand = read(&text);
    assert_eq!(ms(&demand), [1_357_016_400_000, 1_357_016_401_500]);
    assert_eq!(demand.trips[1].trip_s, Some(60.0));
}

#[test]
fn a_column_named_in_milliseconds_may_hold_small_numbers() {
    let text = "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n\
                a,0,1,1,1,1\nb,1500,1,1,1,1\n";
    assert_eq!(ms(&read(text)), [0, 1500]);
}

#[test]
fn a_range_is_half_open_read_in_the_zone_and_counted() {
    let text = rows(&[
        ("2013-01-01 00:59:59", ""),
        ("2013-01-01 01:00:00", ""),
        ("2013-01-01 01:59:59", ""),
        ("2013-01-01 02:00:00", ""),
    ]);
    let options = ReadOptions {
        from: Some("2013-01-01T01:00".into()),
        to: Some("2013-01-01T07:00:00Z".into()),
        ..new_york()
    };
    let demand = read_with(&text, &options).unwrap();
    assert_eq!(ms(&demand), [1_357_020_000_000, 1_357_023_599_000]);
    assert_eq!(rejected(&demand), [(Reason::OutsideRange, 2)]);
    let report = &demand.report;
    assert_eq!(
        (report.from_ms.get(), report.to_ms.get()),
        (1_357_020_000_000, 1_357_023_600_000)
    );
}

#[test]
fn ranges_work_on_dates_whose_order_is_known_only_at_the_end() {
    let text = rows(&[("01/02/2013 00:00", ""), ("01/13/2013 00:00", "")]);
    let options = ReadOptions {
        to: Some("1358000000".into()),
        ..options()
    };
    let demand = read_with(&text, &options).unwrap();
    assert_eq!(rejected(&demand), [(Reason::OutsideRange, 1)]);
}

#[test]
fn a_wrong_range_is_refused() {
    let text = rows(&[("2013-01-01 00:59:59", "")]);
    let with = |from: &str, to: &str| ReadOptions {
        from: Some(from.into()),
        to: Some(to.into()),
        ..new_york()
    };
    for (from, to, part) in [
        ("noon", "2014-01-01", "--from noon: not a time"),
        ("2013-03-10 02:30", "2014-01-01", "the time zone skips"),
        (
            "2013-01-02",
            "2013-01-02",
            "--to 2013-01-02: not later than --from",
        ),
        (
            "01/02/2013",
            "2014-01-01",
            "--from 01/02/2013: dates such as 01/02/2013 can be read",
        ),
        (
            "2015-01-01",
            "2016-01-01",
            "request times run from 2013-01-01T05:59:59Z to",
        ),
    ] {
        let said = refusal(&text, &with(from, to));
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_resolution_and_the_share_of_full_minutes_are_reported() {
    let text = rows(&[("2013-01-01 00:01:00", ""), ("2013-01-01 00:01:07", "")]);
    let report = serde_json::to_value(read(text).report).unwrap();
    assert_eq!(report["time_resolution"], "1s");
    assert_eq!(report["on_minute_share"], 0.5);
    let text = rows(&[("2013-01-01 00:01", ""), ("2013-01-01 00:03", "")]);
    let report = serde_json::to_value(read(text).report).unwrap();
    assert_eq!(report["time_resolution"], "60s");
}
