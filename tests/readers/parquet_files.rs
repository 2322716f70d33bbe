//! Trip records as Parquet, in the types that publishers have used.

use std::sync::Arc;

use kheya::{
    domain::Place,
    replay::input::{Demand, InputError, ReadOptions, Reason, read_demand},
};
use parquet::{
    basic::{Compression, ZstdLevel},
    column::writer::ColumnWriter,
    data_type::{ByteArray, Int96},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};

use crate::harness::{TempFile, ZONES, file, new_york, rejected};

/// A column's values; `None` is null.
pub(crate) enum Column {
    I32(Vec<Option<i32>>),
    I64(Vec<Option<i64>>),
    I96(Vec<Option<Int96>>),
    F32(Vec<Option<f32>>),
    F64(Vec<Option<f64>>),
    Text(Vec<Option<&'static str>>),
    Bool(Vec<Option<bool>>),
}

fn split<T: Clone>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    let levels = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    (values.iter().flatten().cloned().collect(), levels)
}

/// Writes optional columns, in two row groups of the same rows.
pub(crate) fn parquet(schema: &str, compression: Compression, columns: &[Column]) -> Vec<u8> {
    let schema = parse_message_type(&format!("message schema {{ {schema} }}")).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .build();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties)).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        for column in columns {
            let mut writer = group.next_column().unwrap().unwrap();
            macro_rules! write {
                ($writer:expr, $values:expr) => {{
                    let (values, levels) = split($values);
                    $writer.write_batch(&values, Some(&levels), None).unwrap();
                }};
            }
            match (column, writer.untyped()) {
                (Column::I32(values), ColumnWriter::Int32ColumnWriter(w)) => write!(w, values),
                (Column::I64(values), ColumnWriter::Int64ColumnWriter(w)) => write!(w, values),
                (Column::I96(values), ColumnWriter::Int96ColumnWriter(w)) => write!(w, values),
                (Column::F32(values), ColumnWriter::FloatColumnWriter(w)) => write!(w, values),
                (Column::F64(values), ColumnWriter::DoubleColumnWriter(w)) => write!(w, values),
                (Column::Bool(values), ColumnWriter::BoolColumnWriter(w)) => write!(w, values),
                (Column::Text(values), ColumnWriter::ByteArrayColumnWriter(w)) => {
                    let values: Vec<_> = values
                        .iter()
                        .map(|text| text.map(ByteArray::from))
                        .collect();
                    write!(w, &values);
                }
                _ => panic!("schema and column differ"),
            }
            writer.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn read(bytes: &[u8], options: &ReadOptions) -> Result<Demand, InputError> {
    let demand = file("demand.csv", bytes);
    read_demand(std::slice::from_ref(&demand.path), options, &|_, _| {})
}

fn zones() -> (TempFile, ReadOptions) {
    let zones = file("zones.csv", ZONES);
    let options = ReadOptions {
        zones: Some(zones.path.clone()),
        zone_jitter: false,
        ..new_york()
    };
    (zones, options)
}

/// 2013-01-01 00:00:05 on New York's clock: as if UTC, and the true instant.
const WALL_S: i64 = 1_356_998_405;
const START_MS: i64 = 1_357_016_405_000;

#[test]
fn green_records_with_zones_nulls_and_wall_clock_times() {
    let (_zones, options) = zones();
    for (unit, per_second, compression) in [
        ("MILLIS", 1_000, Compression::UNCOMPRESSED),
        ("MICROS", 1_000_000, Compression::SNAPPY),
        (
            "NANOS",
            1_000_000_000,
            Compression::ZSTD(ZstdLevel::default()),
        ),
        (
            "MICROS",
            1_000_000,
            Compression::GZIP(parquet::basic::GzipLevel::default()),
        ),
    ] {
        let bytes = parquet(
            &format!(
                "optional int64 lpep_pickup_datetime (TIMESTAMP({unit},false)); \
                 optional int64 lpep_dropoff_datetime (TIMESTAMP({unit},false)); \
                 optional int32 PULocationID; optional int64 DOLocationID; \
                 optional boolean flag; optional double fare_amount;"
            ),
            compression,
            &[
                Column::I64(vec![
                    Some(WALL_S * per_second),
                    None,
                    Some(WALL_S * per_second),
                ]),
                Column::I64(vec![Some((WALL_S + 600) * per_second); 3]),
                Column::I32(vec![Some(161), Some(161), Some(264)]),
                Column::I64(vec![Some(230), Some(230), Some(230)]),
                Column::Bool(vec![Some(true), None, Some(false)]),
                Column::F64(vec![Some(8.5), None, Some(1.0)]),
            ],
        );
        let demand = read(&bytes, &options).unwrap();
        assert_eq!(
            rejected(&demand),
            [(Reason::Missing, 2), (Reason::UnknownZone, 2)]
        );
        assert_eq!(demand.trips[0].requested_at.get(), START_MS, "{unit}");
        assert_eq!(demand.trips[0].trip_s, Some(600.0));
        assert_eq!(demand.trips[0].pickup, Place::new(40.758, -73.978).unwrap());
        assert_eq!(
            demand.trips[0].dropoff,
            Place::new(40.7598, -73.9845).unwrap()
        );
        assert_eq!(demand.report.rows_read, 6);
    }
}

#[test]
fn yellow_2009_has_its_times_as_text() {
    let bytes = parquet(
        "optional binary Trip_Pickup_DateTime (STRING); \
         optional binary Trip_Dropoff_DateTime (STRING); optional double Start_Lon; \
         optional double Start_Lat; optional double End_Lon; optional float End_Lat;",
        Compression::SNAPPY,
        &[
            Column::Text(vec![Some("2013-01-01 00:00:05"), Some("never"), None]),
            Column::Text(vec![Some("2013-01-01 00:10:05"), None, None]),
            Column::F64(vec![Some(-73.985); 3]),
            Column::F64(vec![Some(40.758); 3]),
            Column::F64(vec![Some(-73.97); 3]),
            Column::F32(vec![Some(40.75); 3]),
        ],
    );
    let demand = read(&bytes, &new_york()).unwrap();
    assert_eq!(
        rejected(&demand),
        [(Reason::BadTime, 2), (Reason::Missing, 2)]
    );
    assert_eq!(demand.trips[0].requested_at.get(), START_MS);
    assert_eq!(demand.trips[0].dropoff, Place::new(40.75, -73.97).unwrap());
}

#[test]
fn high_volume_records_with_zones_as_doubles() {
    let (_zones, options) = zones();
    let bytes = parquet(
        "optional int64 request_datetime (TIMESTAMP(MICROS,false)); \
         optional int64 pickup_datetime (TIMESTAMP(MICROS,false)); \
         optional int64 dropoff_datetime (TIMESTAMP(MICROS,false)); \
         optional double PULocationID; optional double DOLocationID; optional int64 trip_time;",
        Compression::SNAPPY,
        &[
            Column::I64(vec![Some(WALL_S * 1_000_000); 2]),
            Column::I64(vec![Some((WALL_S + 240) * 1_000_000); 2]),
            Column::I64(vec![Some((WALL_S + 840) * 1_000_000); 2]),
            Column::F64(vec![Some(161.0), Some(f64::NAN)]),
            Column::F64(vec![Some(230.0); 2]),
            Column::I64(vec![Some(599), None]),
        ],
    );
    let demand = read(&bytes, &options).unwrap();
    assert_eq!(demand.trips[0].requested_at.get(), START_MS);
    assert_eq!(demand.trips[0].trip_s, Some(599.0));
    assert_eq!(rejected(&demand), [(Reason::Missing, 2)]);
}

#[test]
fn instants_dates_and_old_times_keep_their_meaning() {
    let julian_1970 = 2_440_588;
    let mut old = Int96::new();
    old.set_data(1_000_000_000, 0, julian_1970 + 15_706);
    for (column, values, want) in [
        (
            "optional int64 t (TIMESTAMP(MICROS,true));",
            Column::I64(vec![Some(START_MS * 1000)]),
            START_MS,
        ),
        (
            "optional int64 t (TIMESTAMP_MILLIS);",
            Column::I64(vec![Some(START_MS)]),
            START_MS,
        ),
        (
            "optional int64 t;",
            Column::I64(vec![Some(START_MS / 1000)]),
            START_MS,
        ),
        (
            "optional double t;",
            Column::F64(vec![Some(START_MS as f64)]),
            START_MS,
        ),
        (
            "optional int32 t (DATE);",
            Column::I32(vec![Some(15_706)]),
            START_MS - 5_000,
        ),
        (
            "optional int96 t;",
            Column::I96(vec![Some(old)]),
            1_356_998_401_000,
        ),
    ] {
        let bytes = parquet(
            &format!(
                "{column} optional double lat; optional double lng; optional double end_lat; \
                 optional double end_lng; optional int32 id;"
            ),
            Compression::UNCOMPRESSED,
            &[
                values,
                Column::F64(vec![Some(40.7)]),
                Column::F64(vec![Some(-74.0)]),
                Column::F64(vec![Some(40.7)]),
                Column::F64(vec![Some(-74.0)]),
                Column::I32(vec![Some(7)]),
            ],
        );
        let options = ReadOptions {
            map: vec![("requested_at".into(), "t".into())],
            ..new_york()
        };
        let demand = read(&bytes, &options).unwrap();
        assert_eq!(demand.trips[0].requested_at.get(), want, "{column}");
        assert_eq!(demand.trips[0].request_id.as_str(), "7");
        assert_eq!(rejected(&demand), [(Reason::DuplicateId, 1)]);
        let noted = demand
            .report
            .notes
            .iter()
            .any(|note| note.contains("holds instants"));
        let instants = ["true", "TIMESTAMP_MILLIS", "int96"];
        assert_eq!(
            noted,
            instants.iter().any(|mark| column.contains(mark)),
            "{column}"
        );
    }
}

#[test]
fn a_column_of_a_type_that_cannot_hold_its_field_is_refused() {
    let bytes = parquet(
        "optional int64 timestamp; optional boolean lat; optional double lng; \
         optional double end_lat; optional double end_lng;",
        Compression::UNCOMPRESSED,
        &[
            Column::I64(vec![Some(0)]),
            Column::Bool(vec![Some(true)]),
            Column::F64(vec![Some(1.0)]),
            Column::F64(vec![Some(1.0)]),
            Column::F64(vec![Some(1.0)]),
        ],
    );
    let said = read(&bytes, &new_york()).unwrap_err().to_string();
    assert!(
        said.contains("column \"lat\" holds BOOLEAN, which cannot be read as pickup_lat"),
        "{said}"
    );
}

/// A small good file, to be spoiled.
pub(crate) fn small() -> Vec<u8> {
    parquet(
        "optional int64 timestamp; optional double lat; optional double lng; \
         optional double end_lat; optional double end_lng; optional binary id (STRING);",
        Compression::SNAPPY,
        &[
            Column::I64((0..50).map(|i| Some(START_MS + i)).collect()),
            Column::F64((0..50).map(|i| (i % 7 != 0).then_some(40.7)).collect()),
            Column::F64(vec![Some(-74.0); 50]),
            Column::F64(vec![Some(40.7); 50]),
            Column::F64(vec![Some(-74.0); 50]),
            Column::Text(vec![Some("abc"); 50]),
        ],
    )
}
