//! Every reason for which a place, an id or a field is left out.

use kheya::{
    domain::Place,
    replay::input::{DropoffRule, ReadOptions, Reason},
};

use crate::harness::{ZONES, among_good, file, options, read, read_with, refusal, rejected};

#[test]
fn each_flaw_is_counted_under_its_one_reason() {
    let at = 1_357_016_400_000_i64;
    for (row, reason) in [
        ("r,AT,40.75,-73.98,40.76,-73.97", Reason::Ragged),
        ("r,AT,40.75,-73.98,40.76,-73.97,300,surplus", Reason::Ragged),
        ("r,soon,40.75,-73.98,40.76,-73.97,300", Reason::BadTime),
        ("r,,40.75,-73.98,40.76,-73.97,300", Reason::Missing),
        ("r,NULL,40.75,-73.98,40.76,-73.97,300", Reason::Missing),
        (",AT,40.75,-73.98,40.76,-73.97,300", Reason::Missing),
        ("r,AT,,-73.98,40.76,-73.97,300", Reason::Missing),
        ("r/1,AT,40.75,-73.98,40.76,-73.97,300", Reason::BadId),
        ("r,AT,forty,-73.98,40.76,-73.97,300", Reason::BadNumber),
        ("r,AT,inf,-73.98,40.76,-73.97,300", Reason::BadNumber),
        ("r,AT,0,0,40.76,-73.97,300", Reason::ZeroCoordinates),
        ("r,AT,0.0,-73.98,40.76,-73.97,300", Reason::ZeroCoordinates),
        ("r,AT,95,-73.98,40.76,-73.97,300", Reason::OutOfRange),
        ("r,AT,40.75,-273.98,40.76,-73.97,300", Reason::OutOfRange),
        (
            "r,AT,-73.98,40.75,40.76,-73.97,300",
            Reason::SwappedCoordinates,
        ),
        ("r,AT,42.75,-73.98,40.76,-73.97,300", Reason::FarAway),
        ("r,AT,40.75,-73.98,42.76,-73.97,300", Reason::FarAway),
        ("r,AT,40.75,-73.98,0,0,300", Reason::NoDropoff),
        ("r,AT,40.75,-73.98,,,300", Reason::NoDropoff),
        ("r,AT,40.75,-73.98,x,y,300", Reason::NoDropoff),
        ("r,AT,40.75,-73.98,95,-73.97,300", Reason::NoDropoff),
        ("g1,AT,40.75,-73.98,40.76,-73.97,300", Reason::IdConflict),
        // A row with several flaws is counted once, under the first.
        ("r/1,AT,0,0,0,0,300", Reason::BadId),
        ("r,AT,0,0,0,0,300", Reason::ZeroCoordinates),
    ] {
        let demand = read(among_good(&[&row.replace("AT", &at.to_string())]));
        assert_eq!(rejected(&demand), [(reason, 1)], "{row}");
        assert_eq!(demand.trips.len(), 9);
    }
}

#[test]
fn an_unusable_trip_time_falls_back_and_is_counted() {
    let demand = read(among_good(&[
        "a,1357016400100,40.75,-73.98,40.76,-73.97,0",
        "b,1357016400101,40.75,-73.98,40.76,-73.97,43200",
        "c,1357016400102,40.75,-73.98,40.76,-73.97,x",
        "d,1357016400103,40.75,-73.98,40.76,-73.97,43199.5",
    ]));
    let source = demand.report.trip_time_source;
    assert_eq!(
        (source.trip_s, source.dropoff_time, source.straight_line),
        (10, 0, 3)
    );
    let seconds: Vec<_> = demand.trips[9..].iter().map(|trip| trip.trip_s).collect();
    assert_eq!(seconds, [None, None, None, Some(43_199.5)]);
}

#[test]
fn a_coordinate_in_exponent_form_is_a_number() {
    let demand = read(among_good(&[
        "r,1357016400100,4.075e1,-7.398E1,40.76,-73.97,300",
    ]));
    assert_eq!(demand.trips[9].pickup, Place::new(40.75, -73.98).unwrap());
}

#[test]
fn columns_with_latitude_and_longitude_exchanged_are_named_with_the_remedy() {
    let text = "pickup_datetime,pickup_latitude,pickup_longitude,dropoff_latitude,dropoff_longitude\n\
                2013-01-01 00:00:00,-73.98,40.75,-73.97,40.76\n\
                2013-01-01 00:00:01,-73.98,40.75,-73.97,40.76\n";
    let said = refusal(text, &options());
    for part in [
        "exchanged",
        "-73.98",
        "--map pickup_lat=pickup_longitude",
        "--map pickup_lng=pickup_latitude",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let map = [
        ("pickup_lat", "pickup_longitude"),
        ("pickup_lng", "pickup_latitude"),
        ("dropoff_lat", "dropoff_longitude"),
        ("dropoff_lng", "dropoff_latitude"),
    ];
    let options = ReadOptions {
        map: map.map(|(f, c)| (f.into(), c.into())).to_vec(),
        ..options()
    };
    assert_eq!(
        read_with(text, &options).unwrap().trips[0].pickup,
        Place::new(40.75, -73.98).unwrap()
    );
}

#[test]
fn only_exchanged_dropoffs_are_named_too() {
    let text = "pickup_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n\
                2013-01-01 00:00:00,23.8,90.4,90.4,23.8\n";
    assert!(refusal(text, &options()).contains("--map dropoff_lat=dropoff_lng"));
}

#[test]
fn dropoffs_are_drawn_from_the_recorded_ones_when_asked() {
    let rows = [
        "a,1357016400100,40.75,-73.98,0,0,300",
        "b,1357016400101,40.75,-73.98,,,300",
        "c,1357016400102,40.75,-73.98,42.9,-73.9,300",
        "d,1357016400103,0,0,40.7,-73.9,300",
    ];
    let options = ReadOptions {
        dropoff: DropoffRule::Sample,
        seed: 3,
        ..options()
    };
    let demand = read_with(among_good(&rows), &options).unwrap();
    assert_eq!(rejected(&demand), [(Reason::ZeroCoordinates, 1)]);
    let recorded = Place::new(40.76, -73.97).unwrap();
    assert!(demand.trips.iter().all(|trip| trip.dropoff == recorded));
    assert_eq!(
        demand.report.notes,
        ["3 drop-offs were drawn from the recorded ones"]
    );
}

#[test]
fn a_file_without_dropoffs_needs_the_rule_and_then_draws_from_its_pickups() {
    let text = "Dispatching_base_num,Pickup_date,locationID\n\
                B1,2015-01-01 00:00:00,161\nB1,2015-01-01 00:00:05,230\nB1,2015-01-01 00:00:07,\n";
    let zones = file("zones.csv", ZONES);
    let mut options = ReadOptions {
        zones: Some(zones.path.clone()),
        ..options()
    };
    assert!(refusal(text, &options).contains("--dropoff sample"));
    options.dropoff = DropoffRule::Sample;
    let demand = read_with(text, &options).unwrap();
    assert_eq!(rejected(&demand), [(Reason::Missing, 1)]);
    let pickups: Vec<_> = demand.trips.iter().map(|trip| trip.pickup).collect();
    assert!(
        demand
            .trips
            .iter()
            .all(|trip| pickups.contains(&trip.dropoff))
    );
}

#[test]
fn zones_need_a_zones_file_and_unknown_ones_are_counted() {
    let text = "lpep_pickup_datetime,lpep_dropoff_datetime,PULocationID,DOLocationID\n\
                2024-01-01 00:00:00,2024-01-01 00:10:00,161,230\n\
                2024-01-01 00:00:00,2024-01-01 00:10:00,264,230\n\
                2024-01-01 00:00:00,2024-01-01 00:10:00,161,265\n";
    let said = refusal(text, &options());
    assert!(
        said.contains("--zones") && said.contains("PULocationID"),
        "{said}"
    );
    let zones = file("zones.csv", ZONES);
    let mut options = ReadOptions {
        zones: Some(zones.path.clone()),
        ..options()
    };
    let demand = read_with(text, &options).unwrap();
    assert_eq!(
        rejected(&demand),
        [(Reason::UnknownZone, 1), (Reason::NoDropoff, 1)]
    );
    let spread = demand.trips[0].pickup;
    assert!(spread.distance_km(Place::new(40.758, -73.978).unwrap()) < 0.6);
    options.seed = 1;
    assert_ne!(
        read_with(text, &options).unwrap().trips[0].pickup,
        spread,
        "seeded"
    );
    options.zone_jitter = false;
    let point = read_with(text, &options).unwrap().trips[0].pickup;
    assert_eq!(point, Place::new(40.758, -73.978).unwrap());
}

#[test]
fn when_every_row_is_dirty_the_counts_say_so() {
    let text = "pickup_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n\
                2013-01-01 00:00:00,0,0,1,1\n2013-01-01 00:00:00,0,0,1,1\nx,0,0,1,1\n";
    let said = refusal(text, &options());
    assert!(
        said.ends_with("3 read, 2 zero_coordinates, 1 bad_time"),
        "{said}"
    );
}
