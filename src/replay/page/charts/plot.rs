//! What stands around a drawing: its heading, its name for those who hear it, its table.

use super::super::markup::{Element, of_text};

/// Width of every drawing: a phone's, so that text scales down on none.
pub(super) const WIDTH: f64 = 400.0;

/// The head of a column.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Column {
    name: String,
    is_text: bool,
}

impl Column {
    /// A column of texts.
    pub(in super::super) fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            is_text: true,
        }
    }

    /// A column of figures.
    pub(in super::super) fn figure(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            is_text: false,
        }
    }
}

/// Figures in rows; the first cell of a row names it.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Table {
    /// Heads of the columns.
    pub(in super::super) columns: Vec<Column>,
    /// Rows of as many cells.
    pub(in super::super) rows: Vec<Vec<String>>,
}

impl Table {
    /// As an element that scrolls by itself where the screen is too narrow for it.
    pub(in super::super) fn element(&self) -> Element {
        let class = |n: usize| match self.columns.get(n) {
            Some(column) if column.is_text => "words",
            _ => "figures",
        };
        let head = self.columns.iter().enumerate().map(|(n, column)| {
            of_text("th", &column.name)
                .with("scope", "col")
                .class(class(n))
        });
        let body = self.rows.iter().map(|row| {
            let cells = row.iter().enumerate().map(|(n, cell)| {
                let name = if n == 0 { "th" } else { "td" };
                let element = of_text(name, cell).class(class(n));
                if n == 0 {
                    element.with("scope", "row")
                } else {
                    element
                }
            });
            Element::new("tr").children(cells)
        });
        let table = Element::new("table")
            .child(Element::new("thead").child(Element::new("tr").children(head)))
            .child(Element::new("tbody").children(body));
        Element::new("div").class("scroll").child(table)
    }
}

/// A drawing with all that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Figure {
    /// Unique in the page.
    pub(in super::super) id: String,
    /// What it shows.
    pub(in super::super) title: String,
    /// What is to be seen in it, in whole sentences.
    pub(in super::super) says: String,
    /// What the fillings mean.
    pub(in super::super) key: Option<Element>,
    /// The drawings, of [`WIDTH`], with their heights.
    pub(in super::super) drawings: Vec<Drawing>,
    /// The figures it is drawn from.
    pub(in super::super) table: Table,
}

/// One drawing of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Drawing {
    /// Its height.
    pub(in super::super) height: f64,
    /// What it shows, for those who hear it.
    pub(in super::super) title: String,
    /// What is to be seen in it.
    pub(in super::super) description: String,
    /// Its content.
    pub(in super::super) content: Vec<Element>,
}

/// The figure as an element.
pub(in super::super) fn figure(figure: Figure) -> Element {
    let mut element = Element::new("figure")
        .class("card")
        .with("id", &figure.id)
        .child(
            Element::new("figcaption")
                .child(of_text("h3", &figure.title))
                .child(of_text("p", &figure.says)),
        )
        .children(figure.key);
    let is_bare = figure.drawings.is_empty();
    for (n, drawing) in figure.drawings.into_iter().enumerate() {
        element = element.child(svg(&format!("{}-{n}", figure.id), drawing));
    }
    if is_bare {
        return element.child(figure.table.element());
    }
    element.child(behind(&figure.table))
}

/// A drawing as an SVG that is read out by its title and description.
pub(in super::super) fn svg(id: &str, drawing: Drawing) -> Element {
    let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
    Element::new("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("role", "img")
        .with(
            "aria-labelledby",
            format_args!("{title_id} {description_id}"),
        )
        .with(
            "viewBox",
            format_args!("0 0 {WIDTH} {}", super::super::figures::at(drawing.height)),
        )
        .child(of_text("title", &drawing.title).with("id", title_id))
        .child(of_text("desc", &drawing.description).with("id", description_id))
        .children(drawing.content)
}

/// The table behind a drawing.
pub(in super::super) fn behind(table: &Table) -> Element {
    Element::new("details")
        .child(of_text("summary", "The figures as a table"))
        .child(table.element())
}
