//! How long the windows took to solve.

use std::fmt::Write as _;

use super::{
    charts::{Column, Figure, HistogramChart, Table, figure, histogram},
    collect::Collected,
    figures::{short, whole},
    markup::Element,
};
use crate::replay::{Kpis, Policy};

/// The distribution of solve times; nothing where nothing was solved.
pub(super) fn solve_times(collected: &Collected, kpis: &[Kpis]) -> Option<Element> {
    let run = collected
        .runs
        .iter()
        .find(|run| run.policy == Policy::Batch)?;
    let kpis = kpis.iter().find(|kpis| kpis.is_of(Policy::Batch))?;
    let times = kpis.solve_ms;
    let (p50, p99, max) = (times.p50?, times.p99?, times.max?);
    let marks = [
        ("median".to_owned(), p50),
        ("p99".to_owned(), p99),
        ("longest".to_owned(), max),
    ];
    let description = format!(
        "Of {} windows half took up to {} ms, 99 % up to {} ms, the longest {} ms.",
        whole(run.solve_ms.total()),
        short(p50),
        short(p99),
        short(max)
    );
    let drawing = histogram(&HistogramChart {
        title: "Solve times of the windows",
        description: &description,
        unit: "milliseconds, logarithmic",
        values: &run.solve_ms,
        marks: &marks,
    });
    let quantiles = [0.5, 0.9, 0.95, 0.99, 0.999].map(|q| {
        let value = run.solve_ms.quantile(q).unwrap_or(0.0);
        vec![
            format!("{} %", short(100.0 * q)),
            format!("{} ms", short(value)),
        ]
    });
    let mut rows = quantiles.to_vec();
    rows.push(vec!["all".into(), format!("{} ms", short(max))]);
    let mut says = description;
    says.push_str(" Wall-clock times of this machine while it replayed: the one figure here that a second run does not repeat.");
    if kpis.windows_deferring > 0 {
        let _ = write!(
            says,
            " {} windows had more requests than max_snapshot_requests and took the oldest.",
            whole(kpis.windows_deferring as u64)
        );
    }
    Some(figure(Figure {
        id: "solve".into(),
        title: "How long a window takes to solve".into(),
        says,
        key: None,
        drawings: vec![drawing],
        table: Table {
            columns: vec![
                Column::text("Share of windows"),
                Column::figure("Solved within"),
            ],
            rows,
        },
    }))
}
