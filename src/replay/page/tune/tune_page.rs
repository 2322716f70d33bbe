//! The sections of a sweep's page.

use super::{
    super::{
        account::Account,
        config_section::config_section,
        document::{Section, cards, document, facts},
        figures::{percent, seconds, whole},
        input_section::input_section,
        markup::{Element, of_text},
        replay_page::{Once, command, names, once_sections},
    },
    by_hour::by_hour,
    by_rule::by_rule,
    by_setting::by_setting,
    recommended::recommended,
};
use crate::{
    config::RegionConfig,
    replay::tune::{SweepRow, TuneReport},
};

/// The page of a sweep in a region whose other settings are `config`. `once` is the recommended
/// setting of the first fleet, replayed once more to show time and place.
pub fn tune_page(
    account: &Account,
    report: &TuneReport,
    config: &RegionConfig,
    once: Option<&Once<'_>>,
) -> String {
    let mut lead = vec![tuned(account, report)];
    lead.extend(recommended(report));
    let swept = report.sweep.first().map_or("", |row| row.setting.policy);
    let several = report.by_fleet.len() > 1;
    let mut content = Vec::new();
    for (n, fleet) in report.by_fleet.iter().enumerate() {
        let rows: Vec<&SweepRow> = report
            .sweep
            .iter()
            .filter(|row| row.setting.drivers == fleet.drivers)
            .collect();
        if several {
            let cars = format!("{} cars", whole(fleet.drivers as u64));
            content.push(of_text("h3", cars).class("fleet"));
        }
        let rules = if n + 1 == report.by_fleet.len() {
            [by_rule(report), by_hour(report)]
        } else {
            [None, None]
        };
        let mut all = by_setting(n, &rows, swept);
        if rules[0].is_none() && all.len() > 2 {
            // the tall card last: beside each other the columns are then of a height
            all.swap(1, 2);
        }
        all.extend(rules.into_iter().flatten());
        content.push(cards(all));
    }
    let mut sections = vec![Section {
        id: "settings",
        title: "Settings compared",
        content,
    }];
    if let Some(once) = once {
        sections.extend(once_sections(account, once));
    }
    sections.push(Section {
        id: "input",
        title: "Input and settings",
        content: vec![cards(
            input_section(&report.input)
                .into_iter()
                .chain([config_section(config)]),
        )],
    });
    let title = format!("Tuning for {}", names(&report.input));
    document(&title, account, lead, sections)
}

/// What was swept, and how.
fn tuned(account: &Account, report: &TuneReport) -> Element {
    let (input, method) = (&report.input, &report.method);
    let used = (input.rows_read > 0).then(|| input.rows_used as f64 / input.rows_read as f64);
    let seeds: Vec<String> = method.seeds.iter().map(ToString::to_string).collect();
    let fleets: Vec<String> = report
        .by_fleet
        .iter()
        .map(|fleet| whole(fleet.drivers as u64))
        .collect();
    let never = || "never".to_owned();
    let list = facts([
        (
            "Demand",
            format!(
                "{} requests, {} of the rows read",
                whole(method.requests as u64),
                percent(used)
            ),
        ),
        ("Span", account.span(input.from_ms, input.to_ms)),
        (
            "Scored",
            format!(
                "{}; {} blocks of {} minutes",
                account.span(method.scored_from_ms, method.scored_to_ms),
                method.blocks,
                method.block_ms / 60_000
            ),
        ),
        ("Cars", format!("{}, {}", fleets.join(", "), account.fleet)),
        (
            "Runs",
            format!("{}; seeds {}", whole(method.runs as u64), seeds.join(", ")),
        ),
        ("A lost rider costs", seconds(Some(method.lost_rider_s))),
        (
            "Riders give up",
            method.patience.clone().unwrap_or_else(never),
        ),
        (
            "Drivers decline",
            method.acceptance.clone().unwrap_or_else(never),
        ),
    ]);
    Element::new("div").child(list).child(command(account))
}
