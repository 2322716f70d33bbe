//! Containers, broken files, and fleets.

use std::{fmt::Write as _, io::Write as _, path::Path, sync::Mutex};

use kheya::domain::UnixMs;
use kheya::replay::input::{InputError, read_demand, read_drivers};

use crate::harness::{PLAIN, among_good, file, ids, options, read, refusal, rejected};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_container_is_told_by_content_not_by_name() {
    let text = among_good(&[]);
    let plain = read(&text);
    let zstd = zstd::stream::encode_all(text.as_bytes(), 3).unwrap();
    let (half, rest) = text.split_at(150);
    let members = [gzip(half.as_bytes()), gzip(rest.as_bytes())].concat();
    for bytes in [gzip(text.as_bytes()), zstd, members] {
        let packed = file("demand.parquet", bytes);
        let demand =
            read_demand(std::slice::from_ref(&packed.path), &options(), &|_, _| {}).unwrap();
        assert_eq!(demand.trips, plain.trips);
    }
}

#[test]
fn what_cannot_be_read_is_refused_in_one_sentence() {
    let gz = gzip(among_good(&[]).as_bytes());
    for (bytes, part) in [
        (&b""[..], "is empty"),
        (b"\n\n\r\n", "is empty"),
        (PLAIN.as_bytes(), "has a header but no rows"),
        (b"\x7fELF\x02\x01\0\0", "is a binary file; CSV"),
        (b"PK\x03\x04\x14", "is a zip archive"),
        (b"\xff\xfei\0d\0", "is UTF-16 text"),
        (b"{\"a\":1}", "is JSON"),
        (&gz[..gz.len() / 2], "is damaged"),
        (b"\x1f\x8bnonsense", "is damaged"),
        (b"\x28\xb5\x2f\xfdnonsense", "is damaged"),
        (b"PAR1nonsense", "is damaged"),
        (b"PAR1", "is damaged"),
        (&gzip(&gz), "is a gzip file packed twice"),
        (&gzip(b""), "is empty"),
    ] {
        let said = refusal(bytes, &options());
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_missing_file_a_directory_and_no_file_are_refused() {
    let said = |path: &Path| {
        read_demand(&[path.to_owned()], &options(), &|_, _| {})
            .unwrap_err()
            .to_string()
    };
    let dir = tempfile::tempdir().unwrap();
    assert!(said(dir.path()).ends_with("is a directory, not a file"));
    assert!(said(&dir.path().join("none.csv")).contains("none.csv cannot be read: No such file"));
    let nothing = read_demand(&[], &options(), &|_, _| {});
    assert!(matches!(nothing, Err(InputError::NoFile)));
}

#[test]
fn text_of_any_line_end_mark_delimiter_and_encoding_is_read() {
    let plain = read(among_good(&[]));
    for text in [
        among_good(&[]).replace('\n', "\r\n").into_bytes(),
        format!("\u{feff}{}", among_good(&[])).into_bytes(),
        among_good(&[]).replace(',', ";").into_bytes(),
        among_good(&[]).replace(',', "\t").into_bytes(),
        among_good(&[])
            .replace("40.76,", "\" 40.76 \",")
            .into_bytes(),
        among_good(&[])
            .replace("trip_s\n", "trip_s,\n")
            .replace(",300\n", ",300,\n")
            .into_bytes(),
    ] {
        assert_eq!(read(text).trips, plain.trips);
    }
    let latin = [
        PLAIN.trim_end().as_bytes(),
        b",stra\xdfe\na,1,1,1,1,1,60,K\xf6ln\n",
    ]
    .concat();
    assert_eq!(ids(&read(latin)), ["a"]);
}

#[test]
fn an_open_quote_is_pointed_at() {
    let mut text = among_good(&["x,\"1357016400100,40.75,-73.98,40.76,-73.97,300"]);
    text += "y,1357016400101,40.75,-73.98,40.76,-73.97,300\n";
    let demand = read(text);
    assert_eq!(demand.report.rows_rejected(), 1);
    assert!(
        demand.report.notes[0].contains("row 11 spans"),
        "{:?}",
        demand.report.notes
    );
}

#[test]
fn progress_rises_to_the_size_of_all_files() {
    let mut text = among_good(&[]);
    for i in 0..20_000 {
        writeln!(text, "n{i},1357016400000,40.75,-73.98,40.76,-73.97,300").unwrap();
    }
    let (one, two) = (
        file("a.csv", &text),
        file("b.csv", text.replace('n', "m").replace('g', "h")),
    );
    let files = [one.path.clone(), two.path.clone()];
    let told = Mutex::new(Vec::new());
    let demand = read_demand(&files, &options(), &|done, total| {
        told.lock().unwrap().push((done, total));
    });
    // The second file's header lost its letters: it is refused, and progress was told till then.
    assert!(demand.is_err());
    let two = file("b.csv", text.replace("\nn", "\nm").replace("\ng", "\nh"));
    let files = [one.path.clone(), two.path.clone()];
    told.lock().unwrap().clear();
    let demand = read_demand(&files, &options(), &|done, total| {
        told.lock().unwrap().push((done, total));
    })
    .unwrap();
    assert_eq!(demand.trips.len(), 40_018);
    assert_eq!(rejected(&demand), []);
    let told = told.into_inner().unwrap();
    let size = 2 * text.len() as u64;
    assert!(told.is_sorted() && told.len() > 3, "{told:?}");
    assert_eq!(told.last(), Some(&(size, size)));
}

#[test]
fn columns_that_differ_between_files_are_both_reported() {
    let one = file("a.csv", among_good(&[]));
    let two = file(
        "b.csv",
        "id,pickup_datetime,lat,lon,end_lat,end_lon\nz,2013-01-01,40.75,-73.98,40.7,-73.9\n",
    );
    let files = [one.path.clone(), two.path.clone()];
    let demand = read_demand(&files, &options(), &|_, _| {}).unwrap();
    assert_eq!(demand.report.mapping["pickup_lat"], "pickup_lat | lat");
    assert_eq!(demand.report.mapping["trip_s"], "trip_s");
    assert_eq!(demand.report.files.len(), 2);
}

#[test]
fn drivers_are_read_sorted_with_and_without_an_end() {
    let plain = "driver_id,from_ms,lat,lng\nd2,5,40.7,-74\nd1,6,40.8,-74.1\n";
    let fleet = file("fleet.csv", gzip(plain.as_bytes()));
    let drivers = read_drivers(&fleet.path).unwrap();
    assert_eq!(drivers[0].driver_id.as_str(), "d1");
    assert_eq!((drivers[0].from.get(), drivers[0].place.lat()), (6, 40.8));
    assert_eq!(drivers[0].to, None);
    let ends = "driver_id,from_ms,lat,lng,to_ms\nd2,5,40.7,-74,\nd1,6,40.8,-74.1,9\n";
    let fleet = file("fleet.csv", ends);
    let drivers = read_drivers(&fleet.path).unwrap();
    assert_eq!(
        drivers
            .iter()
            .map(|d| d.to.map(UnixMs::get))
            .collect::<Vec<_>>(),
        [Some(9), None]
    );
}

#[test]
fn a_wrong_fleet_names_row_and_column() {
    for (rows, part) in [
        (
            "d1,5,40.7,-74\nd/2,5,40.7,-74\n",
            "row 3, column \"driver_id\": an id is printable",
        ),
        (
            "d1,5,40.7,-74\n\nd1,5,40.7,-74\n",
            "row 4, column \"driver_id\": driver d1 came before, in row 2",
        ),
        (
            "d1,soon,40.7,-74\n",
            "row 2, column \"from_ms\": \"soon\" is not a whole number",
        ),
        (
            "d1,5,95,-74\n",
            "row 2, column \"lat\": lat 95 is not within",
        ),
        (
            "d1,5,40.7,east\n",
            "row 2, column \"lng\": \"east\" is not a number",
        ),
        ("d1,5,40.7,NaN\n", "row 2, column \"lng\""),
        ("d1,5,40.7\n", "row 2: 3 fields where the header has 4"),
        ("", "has a header but no rows"),
    ] {
        let fleet = file("fleet.csv", format!("driver_id,from_ms,lat,lng\n{rows}"));
        let said = read_drivers(&fleet.path).unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
    let fleet = file(
        "fleet.csv",
        "driver_id,from_ms,lat,lng,to_ms\nd1,5,40.7,-74,4\n",
    );
    let said = read_drivers(&fleet.path).unwrap_err().to_string();
    assert!(said.contains("column \"to_ms\": before from_ms"), "{said}");
    let fleet = file("fleet.csv", "id,lat,lng\nd1,5,4\n");
    let said = read_drivers(&fleet.path).unwrap_err().to_string();
    assert!(
        said.contains("no column for driver_id; its columns are id, lat, lng"),
        "{said}"
    );
}
