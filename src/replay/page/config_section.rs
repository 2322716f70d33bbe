//! The settings of the region that was replayed.

use super::{
    charts::{Column, Table},
    markup::{Element, of_text},
};
use crate::config::RegionConfig;

/// Every setting with its value; those that are not the default first.
pub(super) fn config_section(config: &RegionConfig) -> Element {
    let (changed, defaults): (Vec<_>, Vec<_>) =
        rows(config).into_iter().partition(|row| row[1] != row[2]);
    let columns = || {
        vec![
            Column::text("Setting"),
            Column::figure("Value"),
            Column::figure("Default"),
        ]
    };
    let mut card = Element::new("div").class("card");
    card = if changed.is_empty() {
        card.child(of_text("p", "Every setting has its default."))
    } else {
        let table = Table {
            columns: columns(),
            rows: changed,
        };
        card.child(of_text("h3", "Not the default"))
            .child(table.element())
    };
    let table = Table {
        columns: columns(),
        rows: defaults,
    };
    card.child(
        Element::new("details")
            .child(of_text("summary", "The settings at their default"))
            .child(table.element()),
    )
}

fn rows(config: &RegionConfig) -> Vec<Vec<String>> {
    let (values, defaults) = (config.settings(), RegionConfig::default().settings());
    let rows = values.iter().map(|(name, value)| {
        let default = defaults
            .get(name)
            .map_or_else(String::new, ToString::to_string);
        vec![name.clone(), value.to_string(), default]
    });
    rows.collect()
}
