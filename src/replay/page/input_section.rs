//! The input: what was used, and what was left out and why.

use super::{
    charts::{Column, Figure, Part, StackedBar, Table, figure, stacked_bars},
    document::facts,
    figures::{percent, whole},
    markup::{Element, of_text},
};
use crate::replay::input::{InputReport, Reason};

/// The account of the reading.
pub(super) fn input_section(input: &InputReport) -> Vec<Element> {
    vec![dirt(input), reading(input)]
}

/// Rows left out, by reason.
fn dirt(input: &InputReport) -> Element {
    let share =
        |rows: u64| percent((input.rows_read > 0).then(|| rows as f64 / input.rows_read as f64));
    let says = format!(
        "{} rows read, {} used, {} ({}) left out. Every row is used or counted under exactly one reason.",
        whole(input.rows_read),
        whole(input.rows_used),
        whole(input.rows_rejected()),
        share(input.rows_rejected()),
    );
    if input.rejected.is_empty() {
        return Element::new("div")
            .class("card")
            .child(of_text("h3", "Rows left out"))
            .child(of_text("p", says));
    }
    let mut reasons: Vec<(Reason, u64)> = input.rejected.iter().map(|(r, n)| (*r, *n)).collect();
    reasons.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let bars: Vec<StackedBar> = reasons
        .iter()
        .map(|(reason, rows)| StackedBar {
            name: meaning(*reason).into(),
            figure: whole(*rows),
            parts: vec![Part {
                class: "solid",
                value: *rows as f64,
            }],
        })
        .collect();
    let said: Vec<String> = reasons
        .iter()
        .map(|(reason, rows)| format!("{} {}", whole(*rows), meaning(*reason)))
        .collect();
    let rows = reasons.iter().map(|(reason, rows)| {
        vec![
            reason.name().to_owned(),
            meaning(*reason).to_owned(),
            whole(*rows),
            share(*rows),
        ]
    });
    figure(Figure {
        id: "dirt".into(),
        title: "Rows left out".into(),
        says,
        key: None,
        drawings: vec![stacked_bars(
            "Rows left out, by reason",
            &format!("{}.", said.join(", ")),
            "rows",
            &bars,
        )],
        table: Table {
            columns: vec![
                Column::text("Reason"),
                Column::text("Meaning"),
                Column::figure("Rows"),
                Column::figure("Share"),
            ],
            rows: rows.collect(),
        },
    })
}

fn reading(input: &InputReport) -> Element {
    let times = input.trip_time_source;
    let mapping = Table {
        columns: vec![Column::text("Field"), Column::text("Column of the file")],
        rows: input
            .mapping
            .iter()
            .map(|(field, column)| vec![(*field).to_owned(), column.clone()])
            .collect(),
    };
    let resolution_ms = input.time_resolution.get();
    let resolution = if resolution_ms % 1000 == 0 {
        format!("{} s", resolution_ms / 1000)
    } else {
        format!("{resolution_ms} ms")
    };
    let list = facts([
        ("Files", input.files.join(", ")),
        (
            "Times",
            format!(
                "recorded to {resolution}; {} lie on a full minute",
                percent(Some(input.on_minute_share))
            ),
        ),
        (
            "Trip times",
            format!(
                "{} recorded, {} from the drop-off time, {} by the straight line",
                whole(times.trip_s),
                whole(times.dropoff_time),
                whole(times.straight_line)
            ),
        ),
    ]);
    let notes = input
        .notes
        .iter()
        .map(|note| of_text("p", note).class("note"));
    Element::new("div")
        .class("card")
        .child(of_text("h3", "How it was read"))
        .child(list)
        .children(notes)
        .child(
            Element::new("details")
                .child(of_text("summary", "Which column is which"))
                .child(mapping.element()),
        )
}

/// A reason in a few words.
const fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::Ragged => "fields missing or too many",
        Reason::BadTime => "time cannot be read",
        Reason::Missing => "id, time or pickup empty",
        Reason::OutsideRange => "outside --from and --to",
        Reason::BadId => "id cannot be used",
        Reason::BadNumber => "pickup is not a number",
        Reason::ZeroCoordinates => "pickup or drop-off at 0, 0",
        Reason::OutOfRange => "pickup is not on earth",
        Reason::UnknownZone => "zone is not in the zones file",
        Reason::SwappedCoordinates => "latitude and longitude exchanged",
        Reason::FarAway => "over 100 km from the others",
        Reason::NoDropoff => "drop-off missing or unusable",
        Reason::Reversal => "fare reversal of another row",
        Reason::DuplicateId => "id came before, same fields",
        Reason::IdConflict => "id came before, other fields",
        Reason::SampledOut => "left out by --sample",
    }
}
