//! The page around its sections.

use super::{
    account::Account,
    markup::{Element, of_text},
};

/// Nothing is loaded from anywhere, and no script runs, even if one came in.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = include_str!("style.css");

/// A section with a heading.
pub(super) struct Section {
    /// Unique in the page.
    pub(super) id: &'static str,
    /// Its heading.
    pub(super) title: &'static str,
    /// Its content.
    pub(super) content: Vec<Element>,
}

/// The whole page.
pub(super) fn document(
    title: &str,
    account: &Account,
    lead: Vec<Element>,
    sections: Vec<Section>,
) -> String {
    let meta = |name: &'static str, content: &str| {
        Element::new("meta")
            .with("name", name)
            .with("content", content)
    };
    let head = Element::new("head")
        .child(Element::new("meta").with("charset", "utf-8"))
        .child(
            Element::new("meta")
                .with("http-equiv", "Content-Security-Policy")
                .with("content", POLICY),
        )
        .child(meta("viewport", "width=device-width, initial-scale=1"))
        .child(meta("color-scheme", "light dark"))
        .child(meta("referrer", "no-referrer"))
        .child(of_text("title", title))
        .child(Element::new("style").sheet(STYLE));
    let header = Element::new("header")
        .child(of_text("p", "Kheya").class("brand"))
        .child(of_text("h1", title))
        .children(lead);
    let links = sections.iter().map(|section| {
        let link = of_text("a", section.title).with("href", format_args!("#{}", section.id));
        Element::new("li").child(link)
    });
    let contents = Element::new("nav")
        .with("aria-label", "Sections")
        .child(Element::new("ul").children(links));
    let sections = sections.into_iter().map(|section| {
        Element::new("section")
            .with("id", section.id)
            .child(of_text("h2", section.title))
            .children(section.content)
    });
    let footer = Element::new("footer").child(
        Element::new("p")
            .text("Made by kheya ")
            .text(env!("CARGO_PKG_VERSION"))
            .text(" with: ")
            .child(of_text("code", &account.command)),
    );
    let body = Element::new("body").child(
        Element::new("main")
            .child(header)
            .child(contents)
            .children(sections)
            .child(footer),
    );
    let html = Element::new("html")
        .with("xmlns", "http://www.w3.org/1999/xhtml")
        .with("lang", "en")
        .child(head)
        .child(body);
    format!("<!DOCTYPE html>\n{html}\n")
}

/// Cards beside each other where there is room.
pub(super) fn cards(cards: impl IntoIterator<Item = Element>) -> Element {
    Element::new("div").class("cards").children(cards)
}

/// A list of facts with their names.
pub(super) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Element {
    let pairs = facts.into_iter().map(|(name, fact)| {
        Element::new("div")
            .child(of_text("dt", name))
            .child(of_text("dd", fact))
    });
    Element::new("dl").class("facts").children(pairs)
}
