//! The page of a replay.

use super::{
    account::Account,
    collect::Collected,
    config_section::config_section,
    document::{Section, cards, document, facts},
    figures::{percent, short, whole, window},
    headline::headline,
    input_section::input_section,
    map_section::map_section,
    markup::{Element, of_text},
    rules_section::{cost_bars, figures_table, frontier},
    solve_section::solve_times,
    time_section::over_time,
    wait_section::wait_curves,
};
use crate::replay::{Kpis, ReplayReport, Scenario, input::InputReport};

/// A replay of one scenario, for a page.
#[derive(Debug, Clone, Copy)]
pub struct Once<'a> {
    /// What was replayed.
    pub scenario: &'a Scenario,
    /// Its figures.
    pub kpis: &'a [Kpis],
    /// Its bins.
    pub collected: &'a Collected,
}

/// The page of a replay of one scenario: what was replayed, its figures in words, and the charts.
pub fn replay_page(
    account: &Account,
    report: &ReplayReport,
    collected: &Collected,
    scenario: &Scenario,
) -> String {
    let mut lead = headline(report);
    lead.insert(0, replayed(account, report, scenario));
    let runs = &report.runs;
    let rules = [
        Some(cost_bars(runs)),
        Some(wait_curves(collected, runs)),
        frontier(runs),
        solve_times(collected, runs),
    ];
    let sections = vec![
        Section {
            id: "rules",
            title: "Rules compared",
            content: vec![figures_table(runs), cards(rules.into_iter().flatten())],
        },
        Section {
            id: "time",
            title: "Time and place",
            content: vec![time_and_place(account, scenario, collected)],
        },
        Section {
            id: "input",
            title: "Input and settings",
            content: vec![cards(
                input_section(&report.input)
                    .into_iter()
                    .chain([config_section(&scenario.config)]),
            )],
        },
    ];
    let title = format!("Replay of {}", names(&report.input));
    document(&title, account, lead, sections)
}

fn time_and_place(account: &Account, scenario: &Scenario, collected: &Collected) -> Element {
    let time = over_time(collected, &scenario.config, account);
    cards([Some(time), map_section(collected)].into_iter().flatten())
}

/// The recommended setting of a sweep, replayed once.
pub(super) fn once_sections(account: &Account, once: &Once<'_>) -> Vec<Section> {
    let Once {
        scenario,
        kpis,
        collected,
    } = *once;
    let config = &scenario.config;
    let note = format!(
        "The recommended setting (window {}, longest pickup ETA {} s, age weight {}) with {} cars replayed once under seed {}, every request at its recorded time, so its figures are near those above but not the same.",
        window(config.window_ms.get()),
        short(config.max_pickup_eta_s),
        short(config.age_weight),
        whole(scenario.drivers.len() as u64),
        scenario.seed
    );
    let ahead = kpis.iter().find_map(|kpis| kpis.ahead.as_ref());
    let note = ahead.map_or(note.clone(), |ahead| {
        format!(
            "{note} Batch decides {}. {}.",
            ahead.in_words(),
            ahead.wait_in_words()
        )
    });
    let charts = [
        Some(cost_bars(kpis)),
        Some(wait_curves(collected, kpis)),
        solve_times(collected, kpis),
    ];
    vec![
        Section {
            id: "once",
            title: "The recommended setting",
            content: vec![
                of_text("p", note).class("note"),
                figures_table(kpis),
                cards(charts.into_iter().flatten()),
            ],
        },
        Section {
            id: "time",
            title: "Time and place",
            content: vec![time_and_place(account, scenario, collected)],
        },
    ]
}

fn replayed(account: &Account, report: &ReplayReport, scenario: &Scenario) -> Element {
    let input = &report.input;
    let requests = report.runs.first().map_or(0, |kpis| kpis.requests);
    let drivers = report.runs.first().map_or(0, |kpis| kpis.drivers);
    let used = (input.rows_read > 0).then(|| input.rows_used as f64 / input.rows_read as f64);
    let mut list = vec![
        (
            "Demand",
            format!(
                "{} requests, {} of the rows read",
                whole(requests as u64),
                percent(used)
            ),
        ),
        ("Span", account.span(input.from_ms, input.to_ms)),
        (
            "Cars",
            format!("{}, {}", whole(drivers as u64), account.fleet),
        ),
        ("Window", window(scenario.config.window_ms.get())),
        ("Seed", scenario.seed.to_string()),
    ];
    let behaviour = scenario.behaviour;
    list.push(("Riders give up", told(behaviour.patience)));
    list.push(("Drivers decline", told(behaviour.acceptance)));
    Element::new("div")
        .child(facts(list))
        .child(command(account))
}

fn told(behaviour: Option<impl ToString>) -> String {
    behaviour.map_or_else(|| "never".into(), |given| given.to_string())
}

/// The command that made the page, behind a fold.
pub(super) fn command(account: &Account) -> Element {
    Element::new("details")
        .child(of_text("summary", "The command"))
        .child(Element::new("pre").child(of_text("code", &account.command)))
}

/// The names of the files without their directories.
pub(super) fn names(input: &InputReport) -> String {
    let name = |file: &String| {
        let path = std::path::Path::new(file);
        path.file_name()
            .map_or_else(|| file.clone(), |name| name.to_string_lossy().into_owned())
    };
    match input.files.as_slice() {
        [] => "recorded demand".into(),
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
    }
}
