//! Whatever the bytes, reading ends with an account of every row or with one sentence.

use kheya::replay::input::{DropoffRule, ReadOptions, read_demand, read_drivers};
use proptest::prelude::*;

use crate::{
    harness::{PLAIN, file, options, read_with},
    parquet_files,
};

fn check(bytes: &[u8], options: &ReadOptions) -> Result<(), TestCaseError> {
    match read_with(bytes, options) {
        Ok(demand) => {
            let report = &demand.report;
            prop_assert_eq!(report.rows_read, report.rows_used + report.rows_rejected());
            prop_assert_eq!(report.rows_used as usize, demand.trips.len());
            let sorted = demand.trips.is_sorted_by(|a, b| {
                (a.requested_at, &a.request_id) < (b.requested_at, &b.request_id)
            });
            prop_assert!(sorted, "sorted, no id twice");
        }
        Err(error) => prop_assert!(!error.to_string().contains('\n')),
    }
    Ok(())
}

/// Bytes that stand in real files, in any order.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![
        Just("a"),
        Just("1357016400000"),
        Just("2013-01-01 00:00:00"),
        Just("13/01/2013"),
        Just("01/13/13 1:00 PM"),
        Just("40.7"),
        Just("-73.9"),
        Just("0"),
        Just(","),
        Just(","),
        Just(","),
        Just(","),
        Just("\n"),
        Just("\n"),
        Just("\r\n"),
        Just("\""),
        Just(";"),
        Just("-"),
        Just("NaN"),
        Just("1e308"),
        Just("\u{9995}"),
        Just("99999999999999999999"),
    ];
    proptest::collection::vec(words, 0..200).prop_map(|words| words.concat().into_bytes())
}

fn any_options() -> impl Strategy<Value = ReadOptions> {
    (any::<bool>(), any::<bool>(), 0_u64..3).prop_map(|(draw, zone, seed)| ReadOptions {
        dropoff: if draw {
            DropoffRule::Sample
        } else {
            DropoffRule::Require
        },
        tz: zone.then(|| "America/New_York".into()),
        seed,
        ..options()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), options in any_options()) {
        check(&bytes, &options)?;
    }

    #[test]
    fn any_bytes_below_a_good_header(
        bytes in proptest::collection::vec(any::<u8>(), 0..400), options in any_options()
    ) {
        check(&[PLAIN.as_bytes(), &bytes].concat(), &options)?;
    }

    #[test]
    fn any_fragments_below_a_good_header(
        bytes in fragments(), plain in any::<bool>(), options in any_options()
    ) {
        let header = if plain { PLAIN } else {
            "pickup_datetime,dropoff_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,fare\n"
        };
        check(&[header.as_bytes(), &bytes].concat(), &options)?;
    }

    #[test]
    fn any_magic_and_any_bytes(
        magic in prop_oneof![Just(&b"\x1f\x8b\x08"[..]), Just(&b"\x28\xb5\x2f\xfd"[..]), Just(&b"PAR1"[..])],
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        check(&[magic, &bytes].concat(), &options())?;
    }

    #[test]
    fn a_spoiled_parquet_file(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut bytes = parquet_files::small();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&bytes, &options())?;
    }

    #[test]
    fn any_fleet(bytes in fragments()) {
        let header = b"driver_id,from_ms,lat,lng\n";
        let fleet = file("fleet.csv", [&header[..], &bytes].concat());
        if let Ok(drivers) = read_drivers(&fleet.path) {
            prop_assert!(drivers.is_sorted_by(|a, b| a.driver_id < b.driver_id));
        }
    }

    #[test]
    fn any_zones(bytes in fragments()) {
        let header = b"LocationID,centroid_lat,centroid_lon\n";
        let zones = file("zones.csv", [&header[..], &bytes].concat());
        let demand = file("demand.csv", "pickup_datetime,PULocationID,DOLocationID\n2013-01-01,1,1\n");
        let options = ReadOptions {
            zones: Some(zones.path.clone()),
            zone_jitter: false,
            ..options()
        };
        if let Err(error) = read_demand(std::slice::from_ref(&demand.path), &options, &|_, _| {}) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
