//! The page of `--report`: one file that needs nothing else, sound whatever it was made from.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    clippy::format_collect,
    reason = "a test fails by panicking, compares what it wrote itself, and is not in a hurry"
)]

mod chance;
mod command_line;

use std::{collections::BTreeSet, fs};

use chance::Chance;
use command_line::{Desk, Ran, everything_in, kheya, run};
use roxmltree::{Document, Node, ParsingOptions};

const HEADER: &str =
    "request_id,requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,trip_s";

/// Most bytes of a page, whatever the demand.
const MOST_BYTES: usize = 500_000;

/// Attributes of SVG that hold one number.
const NUMBERS: [&str; 11] = [
    "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height",
];

/// A desk with a small recorded city.
fn small_city() -> (Desk, String, String) {
    let desk = Desk::new();
    let out = desk.path("city");
    run([
        "generate",
        "--out",
        out.to_str().unwrap(),
        "--hours",
        "0.5",
        "--requests-per-hour",
        "1600",
        "--drivers",
        "150",
        "--seed",
        "3",
    ])
    .done();
    let path = |name: &str| out.join(name).to_str().unwrap().to_owned();
    (desk, path("requests.csv"), path("drivers.csv"))
}

/// Makes a page and checks it.
fn page_of(desk: &Desk, args: &[&str]) -> String {
    let file = desk.path("page.html");
    run([args, &["--report", file.to_str().unwrap()]].concat()).done();
    let page = fs::read_to_string(&file).unwrap();
    check(&page);
    page
}

/// Everything that holds for every page.
fn check(page: &str) {
    assert!(page.len() <= MOST_BYTES, "{} bytes", page.len());
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(page, options).unwrap();
    let nodes: Vec<Node> = document.descendants().filter(Node::is_element).collect();
    needs_nothing_else(page, &nodes);
    names_are_unique_and_lead_somewhere(&nodes);
    let charts: Vec<Node> = nodes
        .iter()
        .copied()
        .filter(|node| node.has_tag_name((SVG, "svg")))
        .collect();
    assert!(!charts.is_empty());
    for chart in charts {
        says_what_it_shows(chart);
        lies_on_the_paper(chart);
    }
}

const SVG: &str = "http://www.w3.org/2000/svg";

fn needs_nothing_else(page: &str, nodes: &[Node]) {
    for node in nodes {
        let name = node.tag_name().name();
        let foreign = [
            "script",
            "img",
            "link",
            "iframe",
            "object",
            "embed",
            "base",
            "form",
            "image",
            "a",
            "foreignObject",
            "audio",
            "video",
            "source",
        ];
        let inside = name == "a"
            && node
                .attribute("href")
                .is_some_and(|href| href.starts_with('#'));
        assert!(inside || !foreign.contains(&name), "a <{name}>");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(
                !name.starts_with("on") && name != "style" && name != "src",
                "{name}"
            );
            assert!(!value.contains("javascript:"), "{value}");
        }
    }
    let style = nodes.iter().find(|node| node.has_tag_name((HTML, "style")));
    let style = style.unwrap().text().unwrap();
    assert!(!style.contains("@import") && !style.contains("//"));
    assert!(
        style
            .match_indices("url(")
            .all(|(at, _)| style[at..].starts_with("url(#"))
    );
    assert!(page.contains("default-src &#39;none&#39;"));
}

const HTML: &str = "http://www.w3.org/1999/xhtml";

fn names_are_unique_and_lead_somewhere(nodes: &[Node]) {
    let mut ids = BTreeSet::new();
    for id in nodes.iter().filter_map(|node| node.attribute("id")) {
        assert!(ids.insert(id), "{id} twice");
    }
    for node in nodes {
        let named = node.attribute("aria-labelledby").unwrap_or_default();
        let linked = node.attribute("href").map(|href| &href[1..]);
        let labelled = node.attribute("for");
        for id in named.split(' ').chain(linked).chain(labelled) {
            assert!(id.is_empty() || ids.contains(id), "there is no {id}");
        }
    }
}

fn text_of(node: Node) -> String {
    // an element tells its first text too
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|text| text.text()).collect()
}

/// A chart has a title, a description, and a table of figures beside it.
fn says_what_it_shows(chart: Node) {
    assert_eq!(chart.attribute("role"), Some("img"));
    let words = |name: &str| {
        let named = chart.children().find(|node| node.has_tag_name((SVG, name)));
        text_of(named.unwrap())
    };
    let title = words("title");
    assert!(title.len() > 5, "a title: {title:?}");
    assert!(words("desc").len() > 5, "{title} has no description");
    let figure = chart
        .ancestors()
        .find(|node| node.has_tag_name((HTML, "figure")))
        .unwrap();
    let table = figure
        .descendants()
        .find(|node| node.has_tag_name((HTML, "table")));
    let rows = table
        .unwrap()
        .descendants()
        .filter(|node| node.has_tag_name((HTML, "tr")));
    let rows: Vec<usize> = rows.map(|row| row.children().count()).collect();
    assert!(rows.len() >= 2, "{title}: no figures");
    assert!(
        rows.iter().all(|cells| *cells == rows[0]),
        "{title}: {rows:?}"
    );
}

/// Every number of a chart is one, and lies on it.
fn lies_on_the_paper(chart: Node) {
    let numbers = |text: &str| -> Vec<f64> {
        let parts = text.split(|c: char| c.is_whitespace() || ",MLZVHmvhl".contains(c));
        let parts = parts.filter(|part| !part.is_empty());
        parts
            .map(|part| {
                part.parse()
                    .unwrap_or_else(|_| panic!("{part:?} in {text:?}"))
            })
            .collect()
    };
    let paper = numbers(chart.attribute("viewBox").unwrap());
    let [_, _, width, height] = paper[..] else {
        panic!("{paper:?}");
    };
    assert!(
        width == 400.0 && (60.0..2000.0).contains(&height),
        "{paper:?}"
    );
    for node in chart.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            if !NUMBERS.contains(&name) && !["d", "points"].contains(&name) {
                continue;
            }
            for number in numbers(value) {
                assert!(number.is_finite(), "{name}={value}");
                // moves within a path may be negative, but small
                assert!(
                    (-20.0..=width.max(height) + 20.0).contains(&number),
                    "{name}={value}"
                );
            }
        }
        if node.has_tag_name((SVG, "text")) {
            let text = text_of(node);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}

#[test]
fn a_page_of_all_rules_shows_everything() {
    let (desk, requests, drivers) = small_city();
    let page = page_of(
        &desk,
        &[
            "replay",
            &requests,
            "--drivers-file",
            &drivers,
            "--policy",
            "all",
        ],
    );
    for id in ["cost", "wait", "frontier", "solve", "time-charts", "map"] {
        assert!(
            page.contains(&format!(
                "<figure class=\"card{}\" id=\"{id}\"",
                if id == "map" { " map" } else { "" }
            )),
            "{id} is missing"
        );
    }
    for rule in ["greedy-edge", "greedy", "greedy-now"] {
        assert!(
            page.contains(&format!("<strong>Against {rule}</strong>")),
            "{rule}"
        );
    }
    assert!(page.contains("a weak baseline"));
    assert!(page.contains("kheya replay "));
}

#[test]
fn a_gain_is_not_told_without_greedy_edge_beside_it() {
    let (desk, requests, drivers) = small_city();
    let files = ["replay", &requests, "--drivers-file", &drivers, "--policy"];
    let both = page_of(&desk, &[&files[..], &["both"]].concat());
    assert!(!both.contains("Against greedy") && both.contains("--policy all"));
    let one = page_of(&desk, &[&files[..], &["greedy-now"]].concat());
    assert!(!one.contains("id=\"solve\"") && !one.contains("id=\"frontier\""));
}

#[test]
fn names_that_mean_harm_stay_texts() {
    let desk = Desk::new();
    let name = "\"><img src=x onerror=alert(1)><script>alert(2)<&'\u{202e}.csv";
    let header = HEADER.replace("trip_s", "<b onclick=x>");
    let rows: String = (0..40)
        .map(|n| {
            format!(
                "r{n},{},23.75,90.39,23.76,90.40,300\n",
                1_767_720_600_000_i64 + n * 1000
            )
        })
        .collect();
    let file = desk.file(name, format!("{header}\n{rows}"));
    let page = page_of(
        &desk,
        &[
            "replay",
            &file,
            "--drivers",
            "20",
            "--map",
            "trip_s=<b onclick=x>",
        ],
    );
    assert!(page.contains("&quot;&gt;&lt;img src=x onerror=alert(1)&gt;"));
    assert!(page.contains("&lt;b onclick=x&gt;"));
    assert!(!page.contains("<img") && !page.contains("<script") && !page.contains("<b "));
    assert!(!page.contains('\u{202e}'));
}

#[test]
fn odd_demand_has_a_page_too() {
    let desk = Desk::new();
    let row = |n: i64, lat: f64, lng: f64| {
        format!(
            "r{n},{},{lat},{lng},{lat},{lng},300\n",
            1_767_720_600_000_i64 + n * 1000
        )
    };
    let at_once = HEADER.to_owned() + "\na,1767720600000,0.5,179.999,0.5,-179.999,1\n";
    let one_place: String = (0..30).map(|n| row(n, 23.75, 90.39)).collect();
    let over_years: String = (0..60).map(|n| row(n * 40_000_000, -41.3, 174.8)).collect();
    let date_line: String = (0..200)
        .map(|n| row(n, -17.0, if n % 2 == 0 { 179.98 } else { -179.98 }))
        .collect();
    for (name, text) in [
        ("one.csv", at_once),
        ("place.csv", format!("{HEADER}\n{one_place}")),
        ("years.csv", format!("{HEADER}\n{over_years}")),
        ("line.csv", format!("{HEADER}\n{date_line}")),
    ] {
        let file = desk.file(name, text);
        page_of(
            &desk,
            &["replay", &file, "--drivers", "3", "--policy", "all"],
        );
    }
    // nobody is served: the only car starts when everybody has given up
    let file = desk.file("none.csv", format!("{HEADER}\n{}", row(0, 23.75, 90.39)));
    let late = "driver_id,from_ms,lat,lng\nd,1900000000000,23.75,90.39\n";
    let late = desk.file("late.csv", late);
    let page = page_of(
        &desk,
        &["replay", &file, "--drivers-file", &late, "--policy", "all"],
    );
    assert!(page.contains("served 0.0 %"));
}

#[test]
fn a_page_stays_small_where_demand_is_wide_and_long() {
    let desk = Desk::new();
    let mut chance = Chance::new(8);
    let mut place = |from: f64| from + chance.below(10_000) as f64 / 10_000.0;
    let rows: String = (0..12_000_i64)
        .map(|n| {
            let at = 1_767_720_600_000 + n * 60_000;
            let (lat, lng) = (place(23.0), place(90.0));
            format!("r{n},{at},{lat},{lng},{lat},{lng},300\n")
        })
        .collect();
    let file = desk.file("wide.csv", format!("{HEADER}\n{rows}"));
    let page = page_of(
        &desk,
        &["replay", &file, "--drivers", "60", "--policy", "all"],
    );
    let hexes = page.matches("class=\"hex").count();
    assert!((50..=420).contains(&hexes), "{hexes} cells");
}

/// The rows of the table behind a chart, without their head.
fn table_of(page: &str, figure: &str) -> Vec<Vec<String>> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(page, options).unwrap();
    let figure = document
        .descendants()
        .find(|node| node.attribute("id") == Some(figure))
        .unwrap();
    let body = figure
        .descendants()
        .find(|node| node.has_tag_name((HTML, "tbody")))
        .unwrap();
    let rows = body.children();
    rows.map(|row| row.children().map(text_of).collect())
        .collect()
}

#[test]
fn the_bins_agree_with_the_figures() {
    let (desk, requests, _) = small_city();
    // cars for everybody: the quantiles of all riders are then those of the served
    let args = ["replay", &requests, "--drivers", "400", "--policy", "all"];
    let answer = run([&args[..], &["--format", "json"]].concat()).json();
    let page = page_of(&desk, &args);

    let by_time = table_of(&page, "time-charts");
    let asked: u64 = by_time
        .iter()
        .map(|row| row[1].parse::<u64>().unwrap())
        .sum();
    assert_eq!(asked, answer["input"]["rows_used"].as_u64().unwrap());

    let waits = table_of(&page, "wait");
    let runs = answer["runs"].as_array().unwrap();
    assert_eq!(waits.len(), runs.len());
    for (row, run) in waits.iter().zip(runs) {
        assert_eq!(row[0], run["policy"].as_str().unwrap());
        assert_eq!(run["matched"], run["requests"]);
        for (cell, quantile) in [(2, "p50"), (4, "p90"), (5, "p95")] {
            let told: f64 = row[cell].strip_suffix(" s").unwrap().parse().unwrap();
            let exact = run["wait_s"][quantile].as_f64().unwrap();
            // a bin is 1 % wide, and the table tells whole seconds
            assert!((told - exact).abs() < 0.6 + 0.015 * exact, "{told} {exact}");
        }
    }
}

/// The page without what clocks measured.
fn without_times(page: &str) -> String {
    let start = page.find("id=\"solve\"").unwrap();
    let end = start + page[start..].find("</figure>").unwrap();
    let text = page[..start].to_owned() + &page[end..];
    // the command names the file
    text.replace("shuffled.csv", "requests.csv")
}

#[test]
fn the_same_page_whatever_the_threads_and_the_order_of_the_rows() {
    let (desk, requests, drivers) = small_city();
    let text = fs::read_to_string(&requests).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let mut rows: Vec<&str> = rows.lines().collect();
    Chance::new(5).shuffle(&mut rows);
    let shuffled = desk.path("city").join("shuffled.csv");
    fs::write(&shuffled, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let file = desk.path("page.html");
    let mut told = Vec::new();
    for (input, threads) in [
        (requests.as_str(), "1"),
        (&requests, "2"),
        (shuffled.to_str().unwrap(), "2"),
    ] {
        let mut command = kheya([
            "replay",
            input,
            "--drivers-file",
            &drivers,
            "--policy",
            "all",
            "--report",
            file.to_str().unwrap(),
        ]);
        command.env("RAYON_NUM_THREADS", threads);
        Ran::of(&command.output().unwrap()).done();
        told.push(without_times(&fs::read_to_string(&file).unwrap()));
    }
    assert!(told[0] == told[1], "the number of threads shows");
    assert!(told[0] == told[2], "the order of the rows shows");
}

#[test]
fn a_page_changes_nothing_else() {
    let (desk, requests, drivers) = small_city();
    let outputs = |report: bool| {
        let out = desk.path(if report { "with" } else { "without" });
        let page = desk.path("page.html");
        let mut args = vec![
            "replay",
            &requests,
            "--drivers-file",
            &drivers,
            "--policy",
            "all",
            "--out",
            out.to_str().unwrap(),
        ];
        if report {
            args.extend(["--report", page.to_str().unwrap()]);
        }
        let said = run(args).done().stdout;
        let read = |name: &str| fs::read(out.join(name)).unwrap();
        // the last lines tell times
        let figures = said.split("solve a window").next().unwrap().to_owned();
        (
            figures,
            everything_in(&out).len(),
            read("assignments.csv"),
            read("windows.csv"),
        )
    };
    assert!(outputs(false) == outputs(true));
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_work() {
    let (desk, requests, drivers) = small_city();
    let taken = desk.path("taken");
    fs::create_dir(&taken).unwrap();
    let nowhere = desk.path("nowhere").join("page.html");
    for page in [&taken, &nowhere] {
        let page = page.to_str().unwrap();
        run([
            "replay",
            &requests,
            "--drivers-file",
            &drivers,
            "--report",
            page,
        ])
        .refused(&["--report", page]);
        run([
            "tune",
            &requests,
            "--drivers-file",
            &drivers,
            "--report",
            page,
        ])
        .refused(&["--report", page]);
    }
    run(["replay", "--verify", &requests, "--report", "page.html"]).refused(&["--report"]);
}

#[test]
fn a_sweep_has_a_page() {
    let (desk, requests, drivers) = small_city();
    let page = page_of(
        &desk,
        &[
            "tune",
            &requests,
            "--drivers-file",
            &drivers,
            "--windows",
            "1s,3s,5s",
            "--max-pickup-eta",
            "300,900",
            "--seeds",
            "2",
            "--policy",
            "all",
        ],
    );
    for id in [
        "differences-0",
        "settings-0",
        "trade-0",
        "rules-compared",
        "by-hour",
        "map",
        "wait",
    ] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id} is missing");
    }
    assert!(page.contains("not enough data"));
    // two fleets, and one window alone
    let two = page_of(
        &desk,
        &[
            "tune",
            &requests,
            "--drivers",
            "100,150",
            "--windows",
            "3s",
            "--seeds",
            "2",
        ],
    );
    assert!(two.contains("With 100 cars: ") && two.contains("With 150 cars: "));
}
