//! Trip records as they were published over the years, as CSV.

use kheya::{
    domain::Place,
    replay::input::{Demand, DropoffRule, ReadOptions, Reason},
};

use crate::harness::{ZONES, file, new_york, read_with, refusal, rejected};

/// Every test row starts on this New York second.
const START_MS: i64 = 1_357_016_405_000;

/// One trip of ten minutes from Times Square, whichever way it is written.
fn check(demand: &Demand, mapping: &[(&str, &str)]) {
    assert_eq!(demand.trips[0].requested_at.get(), START_MS);
    assert_eq!(demand.trips[0].trip_s, Some(600.0));
    for (field, column) in mapping {
        assert_eq!(
            demand.report.mapping.get(field).map(String::as_str),
            Some(*column),
            "{field}"
        );
    }
}

fn check_points(text: &str, mapping: &[(&str, &str)]) {
    let demand = read_with(text, &new_york()).unwrap();
    check(&demand, mapping);
    assert_eq!(demand.trips[0].pickup, Place::new(40.758, -73.985).unwrap());
    assert_eq!(demand.trips[0].dropoff, Place::new(40.76, -73.97).unwrap());
    assert_eq!(rejected(&demand), []);
}

fn check_zones(text: &str, mapping: &[(&str, &str)]) {
    let zones = file("zones.csv", ZONES);
    let options = ReadOptions {
        zones: Some(zones.path.clone()),
        zone_jitter: false,
        ..new_york()
    };
    let demand = read_with(text, &options).unwrap();
    check(&demand, mapping);
    assert_eq!(demand.trips[0].pickup, Place::new(40.758, -73.978).unwrap());
    assert_eq!(
        demand.trips[0].dropoff,
        Place::new(40.7598, -73.9845).unwrap()
    );
    assert_eq!(rejected(&demand), []);
}

#[test]
fn yellow_2009() {
    check_points(
        "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,\
         Start_Lon,Start_Lat,Rate_Code,store_and_forward,End_Lon,End_Lat,Payment_Type,Fare_Amt,\
         surcharge,mta_tax,Tip_Amt,Tolls_Amt,Total_Amt\n\
         VTS,2013-01-01 00:00:05,2013-01-01 00:10:05,1,2.6,-73.985,40.758,,,-73.97,40.76,CASH,8.9,\
         0.5,,0,0,9.4\n",
        &[
            ("requested_at_ms", "Trip_Pickup_DateTime"),
            ("dropoff_at_ms", "Trip_Dropoff_DateTime"),
            ("pickup_lng", "Start_Lon"),
            ("dropoff_lat", "End_Lat"),
            ("fare", "Fare_Amt"),
            ("total", "Total_Amt"),
        ],
    );
}

#[test]
fn yellow_2010_to_2014_with_spaces_in_the_header_and_a_blank_line_below() {
    check_points(
        "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance, \
         pickup_longitude, pickup_latitude, rate_code, store_and_fwd_flag, dropoff_longitude, \
         dropoff_latitude, payment_type, fare_amount, surcharge, mta_tax, tip_amount, \
         tolls_amount, total_amount\r\n\r\n\
         CMT,2013-01-01 00:00:05,2013-01-01 00:10:05,1,0.7,-73.985,40.758,1,N,-73.97,40.76,CRD,\
         6.5,0,0.5,1.4,0,8.4\r\n",
        &[
            ("requested_at_ms", "pickup_datetime"),
            ("pickup_lat", "pickup_latitude"),
        ],
    );
}

#[test]
fn medallion_files_of_2013() {
    check_points(
        "medallion, hack_license, vendor_id, rate_code, store_and_fwd_flag, pickup_datetime, \
         dropoff_datetime, passenger_count, trip_time_in_secs, trip_distance, pickup_longitude, \
         pickup_latitude, dropoff_longitude, dropoff_latitude\n\
         89D2,BA96,CMT,1,N,2013-01-01 00:00:05,,4,600,1.00,-73.985,40.758,-73.97,40.76\n",
        &[("trip_s", "trip_time_in_secs")],
    );
}

#[test]
fn yellow_2015_with_coordinates() {
    check_points(
        "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,\
         pickup_longitude,pickup_latitude,RateCodeID,store_and_fwd_flag,dropoff_longitude,\
         dropoff_latitude,payment_type,fare_amount,extra,mta_tax,tip_amount,tolls_amount,\
         improvement_surcharge,total_amount\n\
         2,2013-01-01 00:00:05,2013-01-01 00:10:05,1,1.59,-73.985,40.758,1,N,-73.97,40.76,1,12,1,\
         0.5,3.25,0,0.3,17.05\n",
        &[
            ("requested_at_ms", "tpep_pickup_datetime"),
            ("dropoff_at_ms", "tpep_dropoff_datetime"),
        ],
    );
}

#[test]
fn green_2013_to_2015_with_trailing_delimiters_in_rows_only() {
    check_points(
        "VendorID,lpep_pickup_datetime,Lpep_dropoff_datetime,Store_and_fwd_flag,RateCodeID,\
         Pickup_longitude,Pickup_latitude,Dropoff_longitude,Dropoff_latitude,Passenger_count,\
         Trip_distance,Fare_amount,Extra,MTA_tax,Tip_amount,Tolls_amount,Ehail_fee,Total_amount,\
         Payment_type,Trip_type \r\n\r\n\
         2,2013-01-01 00:00:05,2013-01-01 00:10:05,N,1,-73.985,40.758,-73.97,40.76,1,.00,21,0,0,\
         0,0,,21,2,,,\r\n",
        &[
            ("requested_at_ms", "lpep_pickup_datetime"),
            ("dropoff_at_ms", "Lpep_dropoff_datetime"),
        ],
    );
}

#[test]
fn yellow_from_mid_2016_with_zones() {
    check_zones(
        "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,\
         RatecodeID,store_and_fwd_flag,PULocationID,DOLocationID,payment_type,fare_amount,extra,\
         mta_tax,tip_amount,tolls_amount,improvement_surcharge,total_amount\n\
         1,2013-01-01 00:00:05,2013-01-01 00:10:05,1,1.2,1,N,161,230,1,9,0.5,0.5,2,0,0.3,12.3\n",
        &[
            ("pickup_zone", "PULocationID"),
            ("dropoff_zone", "DOLocationID"),
        ],
    );
}

#[test]
fn green_with_zones_and_slashed_dates_of_a_spreadsheet() {
    check_zones(
        "VendorID,lpep_pickup_datetime,lpep_dropoff_datetime,store_and_fwd_flag,RatecodeID,\
         PULocationID,DOLocationID,passenger_count,trip_distance,fare_amount,total_amount\n\
         2,1/1/2013 12:00:05 AM,1/1/2013 12:10:05 AM,N,1,161,230,1,1.3,8,9.3\n",
        &[("requested_at_ms", "lpep_pickup_datetime")],
    );
}

#[test]
fn for_hire_2017_and_later() {
    for header in [
        "Dispatching_base_num,Pickup_DateTime,DropOff_datetime,PUlocationID,DOlocationID",
        "dispatching_base_num,pickup_datetime,dropOff_datetime,PUlocationID,DOlocationID",
    ] {
        check_zones(
            &format!("{header}\nB00013,2013-01-01 00:00:05,2013-01-01 00:10:05,161.0,230.0\n"),
            &[
                ("pickup_zone", "PUlocationID"),
                ("dropoff_zone", "DOlocationID"),
            ],
        );
    }
}

#[test]
fn for_hire_2015_has_no_dropoff_at_all() {
    let zones = file("zones.csv", ZONES);
    let options = ReadOptions {
        zones: Some(zones.path.clone()),
        dropoff: DropoffRule::Sample,
        ..new_york()
    };
    let text = "Dispatching_base_num,Pickup_date,locationID\nB1,2013-01-01 00:00:05,161\n";
    let demand = read_with(text, &options).unwrap();
    assert_eq!(demand.trips[0].requested_at.get(), START_MS);
    assert_eq!(demand.report.trip_time_source.straight_line, 1);
}

#[test]
fn high_volume_records_are_requested_before_they_are_picked_up() {
    check_zones(
        "hvfhs_license_num,dispatching_base_num,originating_base_num,request_datetime,\
         on_scene_datetime,pickup_datetime,dropoff_datetime,PULocationID,DOLocationID,trip_miles,\
         trip_time,base_passenger_fare\n\
         HV0003,B1,B1,2013-01-01 00:00:05,,2013-01-01 00:04:00,2013-01-01 00:14:00,161,230,2.8,\
         600,22.1\n",
        &[
            ("requested_at_ms", "request_datetime"),
            ("pickup_at_ms", "pickup_datetime"),
            ("trip_s", "trip_time"),
        ],
    );
    // Without a recorded trip time it runs from the pickup, not from the request.
    check_zones(
        "request_datetime,pickup_datetime,dropoff_datetime,PULocationID,DOLocationID\n\
         2013-01-01 00:00:05,2013-01-01 00:04:00,2013-01-01 00:14:00,161,230\n",
        &[],
    );
}

#[test]
fn records_of_other_cities_are_guessed_too() {
    check_points(
        "Trip ID,Taxi ID,Trip Start Timestamp,Trip End Timestamp,Trip Seconds,Trip Miles,\
         Pickup Centroid Latitude,Pickup Centroid Longitude,Dropoff Centroid Latitude,\
         Dropoff Centroid Longitude\n\
         x1,t,01/01/2013 12:00:05 AM,01/01/2013 12:10:00 AM,600,1,40.758,-73.985,40.76,-73.97\n",
        &[("request_id", "Trip ID"), ("trip_s", "Trip Seconds")],
    );
}

#[test]
fn coordinates_are_used_before_zones_unless_the_zones_are_named() {
    let text = "pickup_datetime,dropoff_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,\
                PULocationID,DOLocationID\n\
                2013-01-01 00:00:05,2013-01-01 00:10:05,40.758,-73.985,40.76,-73.97,161,230\n";
    check_points(text, &[]);
    let zones = file("zones.csv", ZONES);
    let options = ReadOptions {
        zones: Some(zones.path.clone()),
        zone_jitter: false,
        map: vec![("pickup_zone".into(), "PULocationID".into())],
        ..new_york()
    };
    let demand = read_with(text, &options).unwrap();
    assert_eq!(demand.trips[0].pickup, Place::new(40.758, -73.978).unwrap());
    assert_eq!(demand.trips[0].dropoff, Place::new(40.76, -73.97).unwrap());
}

#[test]
fn two_columns_for_one_field_are_refused_unless_one_is_named() {
    let text = "pickup_datetime,tpep_pickup_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n\
                2013-01-01 00:00:05,2013-01-01 00:00:09,40.758,-73.985,40.76,-73.97\n";
    let said = refusal(text, &new_york());
    assert!(
        said.contains("\"pickup_datetime\" and \"tpep_pickup_datetime\""),
        "{said}"
    );
    assert!(said.contains("--map"), "{said}");
    for (field, column, ms) in [
        ("requested_at", "pickup_datetime", 1_357_016_405_000),
        ("requested_at_ms", "tpep_pickup_datetime", 1_357_016_409_000),
    ] {
        let options = ReadOptions {
            map: vec![(field.into(), column.into())],
            ..new_york()
        };
        let demand = read_with(text, &options).unwrap();
        assert_eq!(demand.trips[0].requested_at.get(), ms);
    }
}

#[test]
fn a_map_that_names_nothing_lists_what_there_is() {
    let text = "when,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n\
                2013-01-01 00:00:05,40.758,-73.985,40.76,-73.97\n";
    let with = |field: &str, column: &str| ReadOptions {
        map: vec![(field.into(), column.into())],
        ..new_york()
    };
    let said = refusal(text, &with("time", "when"));
    assert!(
        said.contains("no field \"time\"; the fields are request_id,"),
        "{said}"
    );
    let said = refusal(text, &with("requested_at_ms", "then"));
    assert!(
        said.contains("no column \"then\"; its columns are when, pickup_lat"),
        "{said}"
    );
    let demand = read_with(text, &with("requested_at_ms", "When")).unwrap();
    assert_eq!(demand.report.mapping["requested_at_ms"], "when");
    let twice = ReadOptions {
        map: vec![
            ("trip_s".into(), "when".into()),
            ("trip_s".into(), "when".into()),
        ],
        ..new_york()
    };
    assert!(refusal(text, &twice).contains("mapped twice"));
}

#[test]
fn a_file_without_needed_columns_says_which_and_what_it_has() {
    let said = refusal("name,pickup_latitude\nx,1\n", &new_york());
    assert!(
        said.contains("no column for requested_at_ms, pickup_lng, dropoff_lat, dropoff_lng"),
        "{said}"
    );
    assert!(
        said.contains("its columns are name, pickup_latitude"),
        "{said}"
    );
}

#[test]
fn a_file_without_a_header_is_refused() {
    let said = refusal(
        "r1,1357016400000,40.75,-73.98,40.76,-73.97\nr2,1357016400001,40.75,-73.98,40.7,-73.9\n",
        &new_york(),
    );
    assert!(said.contains("has no header row"), "{said}");
}

#[test]
fn rows_of_another_header_are_ragged() {
    let text = "pickup_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n\
                2013-01-01 00:00:05,40.758,-73.985,40.76,-73.97\n\
                2013-01-01 00:00:05,40.758,-73.985\n";
    assert_eq!(
        rejected(&read_with(text, &new_york()).unwrap()),
        [(Reason::Ragged, 1)]
    );
}
