//! The rules beside each other: the table of figures, what a rider's cost is made of, and what
//! waiting costs in empty driving.

use super::{
    charts::{
        Column, Dot, Figure, Part, PointChart, StackedBar, Style, Table, figure, point_chart,
        stacked_bars,
    },
    figures::{percent, seconds, short, whole, window},
    markup::{Element, of_text},
};
use crate::replay::{Kpis, Policy};

/// The figures of every rule, a column each, so that four fit a phone.
pub(super) fn figures_table(runs: &[Kpis]) -> Element {
    let mut columns = vec![Column::text("")];
    columns.extend(runs.iter().map(|kpis| Column::figure(kpis.policy)));
    let row = |name: &str, figure: &dyn Fn(&Kpis) -> String| -> Vec<String> {
        std::iter::once(name.to_owned())
            .chain(runs.iter().map(figure))
            .collect()
    };
    let rows = vec![
        row("Window", &|k| window(k.window_ms)),
        row("Served", &|k| percent(k.match_rate)),
        row("Lost", &|k| whole(k.lost() as u64)),
        row("Rider cost", &|k| seconds(k.rider_cost_s)),
        row("Mean pickup", &|k| seconds(k.pickup_eta_s.mean)),
        row("Mean wait", &|k| seconds(k.wait_s.mean)),
        row("Wait, p95", &|k| seconds(k.wait_s.p95)),
        row("Empty km", &|k| percent(k.empty_km_share)),
        row("On trips", &|k| percent(k.utilisation)),
    ];
    let table = Table { columns, rows }.element();
    let note = of_text(
        "p",
        "Pickup and wait are those of served riders: a rule that loses the far ones looks good in them. Compare by rider cost. Empty km: share of all kilometres. On trips: share of the drivers’ time.",
    )
    .class("note");
    Element::new("div")
        .class("card wide")
        .child(table)
        .child(note)
}

/// What the rider cost is made of.
pub(super) fn cost_bars(runs: &[Kpis]) -> Element {
    let parts = |kpis: &Kpis| {
        let share = kpis.match_rate.unwrap_or(0.0);
        let delay = kpis.assign_delay_s.mean.unwrap_or(0.0) * share;
        let pickup = kpis.pickup_eta_s.mean.unwrap_or(0.0) * share;
        let lost = (kpis.rider_cost_s.unwrap_or(0.0) - delay - pickup).max(0.0);
        (delay, pickup, lost)
    };
    let bars: Vec<StackedBar> = runs
        .iter()
        .map(|kpis| {
            let (delay, pickup, lost) = parts(kpis);
            let part = |class, value| Part { class, value };
            StackedBar {
                name: kpis.policy.into(),
                figure: seconds(kpis.rider_cost_s),
                parts: vec![
                    part("solid", delay),
                    part("striped", pickup),
                    part("hollow", lost),
                ],
            }
        })
        .collect();
    let rows = runs.iter().map(|kpis| {
        let (delay, pickup, lost) = parts(kpis);
        let mut row = vec![kpis.policy.to_owned()];
        row.extend([delay, pickup, lost].map(|value| seconds(Some(value))));
        row.push(seconds(kpis.rider_cost_s));
        row
    });
    let table = Table {
        columns: vec![
            Column::text("Rule"),
            Column::figure("Waiting for a car"),
            Column::figure("Car on its way"),
            Column::figure("Lost riders"),
            Column::figure("Rider cost"),
        ],
        rows: rows.collect(),
    };
    let said: Vec<String> = runs
        .iter()
        .map(|kpis| format!("{} {}", kpis.policy, seconds(kpis.rider_cost_s)))
        .collect();
    let drawing = stacked_bars(
        "What a rider’s cost is made of, by rule",
        &format!("Rider cost: {}.", said.join(", ")),
        "seconds a request",
        &bars,
    );
    let key = Element::new("ul").class("key").children(
        [
            ("solid", "until a car is assigned"),
            ("striped", "until it arrives"),
            ("hollow", "lost riders, each as the longest wait and pickup"),
        ]
        .map(|(class, text)| {
            let swatch = Element::new("span").class(format_args!("swatch {class}"));
            Element::new("li").child(swatch).text(text)
        }),
    );
    figure(Figure {
        id: "cost".into(),
        title: "What a rider’s cost is made of".into(),
        says: "Shorter is better. Means over all requests, the lost ones included.".into(),
        key: Some(key),
        drawings: vec![drawing],
        table,
    })
}

/// Rider cost against empty driving; nothing to draw for one rule.
pub(super) fn frontier(runs: &[Kpis]) -> Option<Element> {
    let point = |kpis: &Kpis| Some((kpis.rider_cost_s?, 100.0 * kpis.empty_km_share?));
    let dots: Vec<Dot> = runs
        .iter()
        .filter_map(|kpis| {
            let (x, y) = point(kpis)?;
            let policy: Policy = kpis.policy.parse().ok()?;
            Some(Dot {
                name: kpis.policy.into(),
                style: Style::of_policy(policy),
                x,
                y,
            })
        })
        .collect();
    if dots.len() < 2 {
        return None;
    }
    let rows = dots.iter().map(|dot| {
        vec![
            dot.name.clone(),
            seconds(Some(dot.x)),
            format!("{} %", short(dot.y)),
        ]
    });
    let table = Table {
        columns: vec![
            Column::text("Rule"),
            Column::figure("Rider cost"),
            Column::figure("Empty km"),
        ],
        rows: rows.collect(),
    };
    let drawing = point_chart(&PointChart {
        title: "Rider cost against empty driving".into(),
        description: "Nearer the lower left is better for riders and for drivers.".into(),
        x_unit: "rider cost, seconds".into(),
        y_unit: "empty km, % of all km".into(),
        dots,
        joined: false,
    });
    Some(figure(Figure {
        id: "frontier".into(),
        title: "Waiting against driving".into(),
        says: "Nearer the lower left is better for riders and drivers alike. What other windows would do is for kheya tune.".into(),
        key: None,
        drawings: vec![drawing],
        table,
    }))
}
