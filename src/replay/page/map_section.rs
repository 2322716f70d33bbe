//! The map with its pickers. Which measure and rule it shows is a pair of radio buttons that the
//! style sheet looks at: no script.

use std::fmt::Write as _;

use super::{
    atlas::{Atlas, CLASSES, Measure},
    charts::{self, Column, Table},
    collect::Collected,
    figures::{short, whole},
    markup::{Element, of_text},
};

/// Rows of the table behind the map.
const TABLE_ROWS: usize = 25;

/// The map; nothing without demand.
pub(super) fn map_section(collected: &Collected) -> Option<Element> {
    let atlas = Atlas::of(collected)?;
    let area_km2 = atlas.resolution.area_km2();
    let mut says = format!(
        "{} H3 cells of resolution {}, {} km² each. Demand is coloured in steps of four times; the classes of the other two hold about as many cells each and are the same for every rule.",
        atlas.cells.len(),
        atlas.resolution,
        short(area_km2),
    );
    if atlas.requests_beyond > 0 {
        let _ = write!(
            says,
            " {} requests lie beyond the edges of the map.",
            whole(atlas.requests_beyond)
        );
    }
    let caption = Element::new("figcaption")
        .child(of_text("h3", "Where riders ask and where they are lost"))
        .child(of_text("p", says));
    let description = format!(
        "Hexagons coloured by class. {}",
        in_words(&atlas, collected)
    );
    let drawing = charts::hexmap(&atlas, collected, &description);
    let stage = Element::new("div")
        .class("stage")
        .child(charts::svg("map-0", drawing))
        .children(Measure::ALL.map(|measure| key(&atlas, measure)))
        .children(Measure::ALL.into_iter().flat_map(|measure| {
            let runs = 0..charts::runs_of(measure, collected);
            let atlas = &atlas;
            runs.map(move |run| highest(atlas, measure, run))
        }));
    let figure = Element::new("figure")
        .class("card map")
        .with("id", "map")
        .child(caption)
        .children(pickers(collected))
        .child(stage)
        .child(charts::behind(&table(&atlas, collected)));
    Some(figure)
}

fn pickers(collected: &Collected) -> Vec<Element> {
    let pick = |group: &'static str, id: &str, first: bool| {
        let input = Element::new("input")
            .with("type", "radio")
            .with("name", group)
            .with("id", id)
            .class("pick");
        if first {
            input.with("checked", "checked")
        } else {
            input
        }
    };
    let label = |id: &str, text: &str| of_text("label", text).with("for", id);
    let mut elements = Vec::new();
    let mut measures = Element::new("div").class("tabs");
    for measure in Measure::ALL {
        let id = format!("show-{}", measure.letter());
        elements.push(pick("measure", &id, measure == Measure::Demand));
        measures = measures.child(label(&id, measure.name()));
    }
    let mut rules = Element::new("div").class("tabs rules");
    for (n, run) in collected.runs.iter().enumerate() {
        let id = format!("rule-{n}");
        elements.push(pick("rule", &id, n == 0));
        rules = rules.child(label(&id, run.policy.name()));
    }
    elements.push(measures);
    if collected.runs.len() > 1 {
        elements.push(rules);
    }
    elements
}

/// The classes of a measure in words and colours.
fn key(atlas: &Atlas, measure: Measure) -> Element {
    let none = Vec::new();
    let breaks = atlas.breaks.get(&measure).unwrap_or(&none);
    let mut list = Element::new("ul").class(format_args!("key on-{}", measure.letter()));
    for class in 0..=breaks.len().min(CLASSES - 1) {
        let low = class.checked_sub(1).and_then(|n| breaks.get(n));
        let text = match (low, breaks.get(class)) {
            (None, Some(high)) => format!("under {}", short(*high)),
            (Some(low), Some(high)) => format!("{} to {}", short(*low), short(*high)),
            (Some(low), None) => format!("{} and more", short(*low)),
            (None, None) => "all alike".into(),
        };
        let swatch = Element::new("span").class(format_args!("swatch h{}", class + 1));
        list = list.child(Element::new("li").child(swatch).text(text));
    }
    if measure != Measure::Demand {
        let swatch = Element::new("span").class("swatch hatched");
        list = list.child(Element::new("li").child(swatch).text(charts::few_text()));
    }
    let unit = of_text("p", measure.unit()).class(format_args!("unit on-{}", measure.letter()));
    Element::new("div").child(unit).child(list)
}

/// The numbered cells in words.
fn highest(atlas: &Atlas, measure: Measure, run: usize) -> Element {
    let items = charts::highest(atlas, measure, run)
        .into_iter()
        .map(|(bins, value)| {
            let of = format!(", {} requests", whole(u64::from(bins.requests)));
            let text = match measure {
                Measure::Demand => format!("{} requests", short(value)),
                Measure::Unserved => format!("{} %{of}", short(value)),
                Measure::Pickup => format!("{} s{of}", short(value)),
            };
            of_text("li", format_args!("{}: {text}", charts::place_text(bins)))
        });
    Element::new("ol")
        .class(format_args!("highest on-{}", charts::layer(measure, run)))
        .children(items)
}

fn in_words(atlas: &Atlas, collected: &Collected) -> String {
    let most = charts::highest(atlas, Measure::Demand, 0);
    let Some((bins, _)) = most.first() else {
        return String::new();
    };
    let rules: Vec<&str> = collected.runs.iter().map(|run| run.policy.name()).collect();
    format!(
        "Most requests, {}, come from the cell around {}. Unserved riders and pickups are shown for {}.",
        whole(u64::from(bins.requests)),
        charts::place_text(bins),
        rules.join(", ")
    )
}

fn table(atlas: &Atlas, collected: &Collected) -> Table {
    let mut columns = vec![Column::text("Cell around"), Column::figure("Requests")];
    for run in &collected.runs {
        columns.push(Column::figure(format!("{} unserved", run.policy)));
        columns.push(Column::figure(format!("{} pickup", run.policy)));
    }
    let mut cells: Vec<_> = atlas.cells.iter().collect();
    cells.sort_by(|a, b| b.requests.cmp(&a.requests).then(a.cell.cmp(&b.cell)));
    let rows = cells.into_iter().take(TABLE_ROWS).map(|bins| {
        let mut row = vec![charts::place_text(bins), whole(u64::from(bins.requests))];
        for run in 0..collected.runs.len() {
            let figure = |measure: Measure, unit: &str| {
                measure
                    .of(bins, run)
                    .map_or_else(super::figures::dash, |value| {
                        format!("{} {unit}", short(value))
                    })
            };
            row.push(figure(Measure::Unserved, "%"));
            row.push(figure(Measure::Pickup, "s"));
        }
        row
    });
    Table {
        columns,
        rows: rows.collect(),
    }
}
