//! Learned demand on the command line: `kheya replay --learn` and `--demand-model`.

use std::{collections::BTreeSet, fs, path::Path};

use kheya::demand::DemandCounts;

use crate::command_line::{Desk, Ran, everything_in, kheya, run};

fn recording(file: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    data.join("evening-rush").join(file).display().to_string()
}

/// Learns from a file of requests, without a fleet. Returns the path of the model.
fn learn(desk: &Desk, requests: &str, name: &str) -> String {
    let out = desk.path(name);
    let ran = run(["replay", requests, "--learn", out.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let written = everything_in(&out);
    assert_eq!(written, [out.join("demand.json")]);
    written[0].display().to_string()
}

/// The requests and drivers of half an hour of a small city.
fn city(desk: &Desk, seed: &str) -> [String; 2] {
    let out = desk.path(&format!("city-{seed}"));
    let size = [
        "--hours",
        "0.5",
        "--requests-per-hour",
        "1600",
        "--drivers",
        "150",
        "--seed",
        seed,
    ];
    run([&["generate", "--out", out.to_str().unwrap()], &size[..]].concat()).done();
    ["requests.csv", "drivers.csv"].map(|name| out.join(name).display().to_string())
}

/// The column `request_id` of a table.
fn request_ids(table: &str) -> Vec<&str> {
    let mut rows = table.lines();
    let mut header = rows.next().unwrap().split(',');
    let column = header.position(|name| name == "request_id").unwrap();
    rows.map(|row| row.split(',').nth(column).unwrap())
        .collect()
}

#[test]
fn a_recording_teaches_without_a_fleet_what_was_asked_for_and_no_more() {
    let desk = Desk::new();
    let requests = recording("requests.csv");
    let file = learn(&desk, &requests, "model");
    let text = fs::read_to_string(&file).unwrap();
    let counts = DemandCounts::from_json(&text).unwrap();
    let rows = fs::read_to_string(&requests).unwrap().lines().count() - 1;
    assert_eq!(counts.requests(), rows as u64);
    let hours = counts.watched().as_seconds() / 3600.0;
    assert!((1.9..=2.0).contains(&hours), "{hours}");
    assert!(!text.contains("r0000"), "no ids are kept");
    let again = learn(&desk, &requests, "again");
    assert_eq!(fs::read_to_string(again).unwrap(), text);
}

#[test]
fn a_model_file_that_is_none_is_refused_by_its_flag_and_name() {
    let desk = Desk::new();
    let (requests, drivers) = (recording("requests.csv"), recording("drivers.csv"));
    let directory = desk.path("directory");
    fs::create_dir(&directory).unwrap();
    let other = desk.file("other.json", "{\"format\":\"kheya-run\"}");
    for (file, named) in [
        (
            desk.path("absent.json").display().to_string(),
            "No such file",
        ),
        (desk.file("empty.json", ""), "not a demand model"),
        (
            desk.file("garbage.json", "\u{1f695} ["),
            "not a demand model",
        ),
        (desk.file("bytes.json", [0xff, 0xfe, 0x00]), "UTF-8"),
        (directory.display().to_string(), "directory"),
        (other, "not a demand model"),
        (requests.clone(), "not a demand model"),
    ] {
        let args = [
            "replay",
            &requests,
            "--drivers-file",
            &drivers,
            "--demand-ahead",
            "60s",
            "--demand-model",
            &file,
        ];
        run(args).refused(&["--demand-model", &file, named]);
    }
}

#[test]
fn what_cannot_be_learned_is_refused_and_writes_nothing() {
    let desk = Desk::new();
    let requests = recording("requests.csv");
    let out = desk.path("out");
    let learn = ["replay", &requests, "--learn", out.to_str().unwrap()];
    run([&learn[..], &["--tz", "Asia/Atlantis"]].concat()).refused(&["Asia/Atlantis"]);
    run([&learn[..], &["--demand-model", "demand.json"]].concat())
        .refused(&["--learn", "--demand-model"]);
    assert_eq!(everything_in(&out), Vec::<std::path::PathBuf>::new());
    let file = desk.file("file", "");
    run(["replay", &requests, "--learn", &file]).refused(&["--learn", &file]);
}

#[test]
fn a_replay_by_a_model_is_the_same_on_any_threads_and_only_looks_where_it_is_told() {
    let desk = Desk::new();
    let [requests, drivers] = city(&desk, "3");
    let [other_day, _] = city(&desk, "4");
    let model = learn(&desk, &other_day, "model");
    let replay = |out: &str, threads: &str, more: &[&str]| {
        let out = desk.path(out);
        let args = [
            "replay",
            &requests,
            "--drivers-file",
            &drivers,
            "--out",
            out.to_str().unwrap(),
        ];
        let mut command = kheya([&args, more].concat());
        command.env("RAYON_NUM_THREADS", threads);
        Ran::of(&command.output().unwrap()).done();
        ["assignments.csv", "windows.csv"].map(|name| fs::read_to_string(out.join(name)).unwrap())
    };
    let by_model = ["--demand-ahead", "60s", "--demand-model", &model];
    let one = replay("one", "1", &by_model);
    assert!(
        one == replay("two", "2", &by_model),
        "the number of threads shows"
    );
    let recent = replay("recent", "2", &by_model[..2]);
    assert!(one != recent, "the model says what lately was");
    // every row is a rider's, and no rider has two
    let text = fs::read_to_string(&requests).unwrap();
    let asked: BTreeSet<&str> = request_ids(&text).into_iter().collect();
    let served = request_ids(&one[0]);
    let once: BTreeSet<&str> = served.iter().copied().collect();
    assert!(served.len() > 300, "the load is too light");
    assert_eq!(once.len(), served.len());
    assert!(once.is_subset(&asked), "a phantom got a car");
    // where demand is not looked ahead to, the file is read and nothing else
    let off = replay("off", "2", &[]);
    let zero = ["--demand-ahead", "0s", "--demand-model", &model];
    assert!(replay("zero", "2", &zero) == off, "the model shows");
    let unasked = replay("unasked", "2", &by_model[2..]);
    assert!(unasked == off, "the model shows");
}
