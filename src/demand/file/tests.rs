use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::Place;

/// A Monday, by the clock of UTC.
const MONDAY: i64 = 1_704_067_200_000;

/// Two cells, three requests.
fn counts() -> DemandCounts {
    let at = |minutes: i64| UnixMs::new(MONDAY + minutes * 60_000);
    let place = |lat: f64| Place::new(lat, 90.4).unwrap();
    let clock = WeekClock::of("Asia/Dhaka").unwrap();
    let span = Span {
        from: at(0),
        to: at(60),
    };
    let requests = [(5, 23.75), (10, 23.80), (40, 23.75)];
    let requests = requests.map(|(minutes, lat)| (at(minutes), place(lat)));
    DemandCounts::of(clock, span, requests)
}

fn document() -> Value {
    serde_json::from_str(&counts().to_json().unwrap()).unwrap()
}

fn refusal(text: &str) -> String {
    DemandCounts::from_json(text).unwrap_err().to_string()
}

/// Why the file is refused with `value` at a place.
fn refusal_with(pointer: &str, value: Value) -> String {
    let mut document = document();
    *document.pointer_mut(pointer).unwrap() = value;
    refusal(&document.to_string())
}

#[test]
fn what_was_written_reads_the_same() {
    let counts = counts();
    let text = counts.to_json().unwrap();
    let read = DemandCounts::from_json(&text).unwrap();
    assert_eq!(read, counts);
    assert_eq!(read.to_json().unwrap(), text);
    assert_eq!((read.requests(), read.cells()), (3, 2));
    // nothing at all is a model too
    let none = DemandCounts::of(counts.clock.clone(), counts.span, []);
    let read = DemandCounts::from_json(&none.to_json().unwrap()).unwrap();
    assert_eq!(read, none);
    // and holds no ids: places are cells, times are quarters of the week
    assert!(text.len() < 6_000, "{text}");
}

#[test]
fn zones_read_as_themselves() {
    for zone in ["UTC", "America/New_York", "Asia/Kathmandu", "Etc/GMT-6"] {
        let mut counts = counts();
        counts.clock = WeekClock::of(zone).unwrap();
        assert_eq!(counts.clock.zone(), zone);
        let text = counts.to_json().unwrap();
        assert_eq!(DemandCounts::from_json(&text).unwrap(), counts);
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let text = counts().to_json().unwrap();
    for length in (0..text.len()).step_by(7) {
        let told = refusal(&text[..length]);
        assert!(told.starts_with("not a demand model: "), "{told}");
        assert!(told.contains("line 1 column"), "{told}");
    }
}

#[test]
fn an_error_names_the_place() {
    let cell = counts().cells.keys().next().unwrap().to_string();
    let coarse = *counts().cells.keys().next().unwrap();
    let coarse = coarse.parent(h3o::Resolution::Eight).unwrap().to_string();
    let slots = format!("/cells/{cell}");
    for (pointer, value, named) in [
        ("/format", json!("kheya-run"), "format: \"kheya-run\""),
        ("/version", json!(2), "format: \"kheya-demand\" version 2"),
        ("/version", json!(-1), "invalid value: integer `-1`"),
        ("/version", json!(4_294_967_296_u64), "4294967296"),
        (
            "/tz",
            json!("Asia/Atlantis"),
            "tz: there is no time zone \"Asia/Atlantis\"",
        ),
        ("/tz", json!(""), "tz: "),
        ("/tz", json!("../../etc/passwd"), "tz: "),
        ("/resolution", json!(8), "resolution: 8"),
        ("/resolution", json!(999), "999"),
        ("/slot_ms", json!(60_000), "slot_ms: 60000"),
        (
            "/from_ms",
            json!(i64::MIN),
            "from_ms: -9223372036854775808 is no time",
        ),
        (
            "/to_ms",
            json!(i64::MAX),
            "to_ms: 9223372036854775807 is no time",
        ),
        ("/to_ms", json!(0), "to_ms: lies before from_ms"),
        ("/from_ms", json!(1.5), "floating point `1.5`"),
        ("/requests", json!(4), "requests: 4, but the cells hold 3"),
        ("/requests", json!(-3), "`-3`"),
        ("/watched_ms", json!([1, 2]), "watched_ms: 672 times"),
        (
            "/watched_ms",
            json!(vec![0; SLOTS + 1]),
            "invalid length 673",
        ),
        ("/watched_ms/3", json!(-1), "watched_ms[3]: is no time"),
        (
            "/watched_ms/671",
            json!(i64::MAX),
            "watched_ms[671]: is no time",
        ),
        ("/watched_ms/0", json!("1"), "invalid type: string"),
        ("/watched_ms/0", json!(1e300), "floating point"),
        ("/cells", json!([]), "cells: an object"),
        (
            "/cells",
            json!({ "x": [] }),
            "cells.x: not an H3 cell of resolution 9",
        ),
        (
            "/cells",
            json!({ "ffffffffffffffff": [] }),
            "cells.ffffffffffffffff: not",
        ),
        ("/cells", json!({ "": [] }), "cells.: not an H3 cell"),
        (
            "/cells",
            json!({ coarse.as_str(): [] }),
            "not an H3 cell of resolution 9",
        ),
        (&slots, json!([[672, 1]]), "slot 672 is not in a week"),
        (&slots, json!([[70_000, 1]]), "70000"),
        (&slots, json!([[0, 1], [0, 1]]), "slot 0 stands there twice"),
        (&slots, json!([[0, -1]]), "`-1`"),
        (&slots, json!([[0, 4_294_967_296_u64]]), "4294967296"),
        (&slots, json!([[0]]), "length 1"),
        (&slots, json!([[0, 1, 2]]), "trailing"),
        (&slots, json!({}), "pairs of slot and requests"),
    ] {
        let told = refusal_with(pointer, value);
        assert!(told.contains(named), "{pointer}: {told}");
        if pointer == slots {
            assert!(told.contains(&format!("cells.{cell}: ")), "{told}");
        }
    }
}

#[test]
fn a_cell_or_a_field_that_stands_there_twice_is_refused() {
    let text = counts().to_json().unwrap();
    let (start, end) = text.split_once("\"cells\":{").unwrap();
    let cell = counts().cells.keys().next().unwrap().to_string();
    // in another spelling too
    for name in [cell.clone(), cell.to_uppercase(), format!("0{cell}")] {
        let told = refusal(&format!("{start}\"cells\":{{\"{name}\":[],{end}"));
        assert!(
            told.contains("twice") || told.contains("not an H3 cell"),
            "{told}"
        );
    }
    let told = refusal(&text.replacen('{', "{\"version\":1,", 1));
    assert!(told.contains("duplicate field `version`"), "{told}");
    let told = refusal(&text.replacen('{', "{\"note\":1,", 1));
    assert!(told.contains("unknown field `note`"), "{told}");
    for field in ["format", "tz", "watched_ms", "cells"] {
        let mut document = document();
        document.as_object_mut().unwrap().remove(field);
        let told = refusal(&document.to_string());
        assert!(told.contains(&format!("missing field `{field}`")), "{told}");
    }
}

#[test]
fn sums_of_the_largest_counts_fit() {
    let mut counts = counts();
    for slots in counts.cells.values_mut() {
        *slots = (0..SLOTS as u16)
            .filter_map(WeekSlot::new)
            .map(|slot| (slot, u32::MAX))
            .collect();
    }
    counts.watched = vec![LONGEST; SLOTS];
    let read = DemandCounts::from_json(&counts.to_json().unwrap()).unwrap();
    assert_eq!(read, counts);
    assert_eq!(read.requests(), 2 * SLOTS as u64 * u64::from(u32::MAX));
    assert_eq!(
        read.watched(),
        LONGEST,
        "a total says no more than it can hold"
    );
}

#[test]
fn a_file_of_too_many_cells_is_refused() {
    let all = h3o::CellIndex::base_cells().flat_map(|base| base.children(MODEL_RESOLUTION));
    let cells = all.take(MAX_CELLS + 1);
    let cells: Vec<String> = cells.map(|cell| format!("\"{cell}\":[]")).collect();
    let text = counts().to_json().unwrap();
    let (start, _) = text.split_once("\"cells\":{").unwrap();
    let file = |cells: &[String]| format!("{start}\"cells\":{{{}}}}}", cells.join(","));
    let told = refusal(&file(&cells));
    assert!(told.contains(&format!("over {MAX_CELLS} cells")), "{told}");
    // one less is only wrong about its requests
    let told = refusal(&file(&cells[1..]));
    assert!(told.starts_with("requests: 3, but"), "{told}");
}

#[test]
fn a_refusal_is_short_whatever_the_file_holds() {
    let long = "é".repeat(1 << 20);
    let cells = json!({ long.as_str(): [] });
    for told in [
        refusal(&format!("\"{long}\"")),
        refusal(&format!("{{\"{long}\":1}}")),
        refusal_with("/tz", json!(long)),
        refusal_with("/format", json!(long)),
        refusal_with("/cells", cells),
        refusal(&"[".repeat(1 << 20)),
    ] {
        assert!(told.len() < 1_000, "{}", told.len());
    }
    assert_eq!(clipped("short"), "short");
    let told = clipped(&long);
    assert_eq!(told.chars().count(), 221);
}

proptest! {
    #[test]
    fn no_byte_changed_makes_it_panic(at in 0..3_000_usize, byte in 0..128_u8) {
        let mut text = counts().to_json().unwrap().into_bytes();
        let at = at % text.len();
        text[at] = byte;
        let text = String::from_utf8(text).unwrap();
        if let Ok(read) = DemandCounts::from_json(&text) {
            let again = DemandCounts::from_json(&read.to_json().unwrap()).unwrap();
            prop_assert_eq!(again, read);
        }
    }

    #[test]
    fn no_json_makes_it_panic(text in "[\\[\\]{}\",:0-9a-f.eE-]{0,200}") {
        prop_assert!(DemandCounts::from_json(&text).is_err());
    }
}
