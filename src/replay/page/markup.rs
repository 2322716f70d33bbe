//! HTML and SVG that cannot come out broken.
//!
//! Promise: whatever strings go in, what comes out is well formed, as HTML and as XML, and says what
//! it was given: names of elements and attributes are our own constants, everything else is escaped
//! on its way in. A file name can neither close an element nor open one.

use std::fmt::{self, Display, Write as _};

/// Elements that have no content and close themselves: HTML's void ones, and shapes of SVG.
const SELF_CLOSING: [&str; 11] = [
    "meta", "input", "br", "col", "path", "circle", "line", "rect", "polygon", "use", "hr",
];

/// An element with its attributes and content.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    /// An empty element.
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            attributes: String::new(),
            content: String::new(),
        }
    }

    /// With an attribute.
    pub(super) fn with(mut self, name: &'static str, value: impl Display) -> Self {
        let _ = write!(self.attributes, " {name}=\"");
        let _ = write!(Escaped(&mut self.attributes), "{value}");
        self.attributes.push('"');
        self
    }

    /// With a class, or several with spaces between.
    pub(super) fn class(self, class: impl Display) -> Self {
        self.with("class", class)
    }

    /// With a text after what it contains already.
    pub(super) fn text(mut self, text: impl Display) -> Self {
        let _ = write!(Escaped(&mut self.content), "{text}");
        self
    }

    /// With a sheet of style or a text of our own that must not be escaped. It holds no `<` or `&`.
    pub(super) fn sheet(mut self, sheet: &'static str) -> Self {
        self.content.push_str(sheet);
        self
    }

    /// With a child after what it contains already.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a child is given away: it is built in place"
    )]
    pub(super) fn child(mut self, child: Self) -> Self {
        let _ = write!(self.content, "{child}");
        self
    }

    /// With children after what it contains already.
    pub(super) fn children(self, children: impl IntoIterator<Item = Self>) -> Self {
        children.into_iter().fold(self, Self::child)
    }
}

/// An element that holds only a text.
pub(super) fn of_text(name: &'static str, text: impl Display) -> Element {
    Element::new(name).text(text)
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}{}", self.name, self.attributes)?;
        if self.content.is_empty() && SELF_CLOSING.contains(&self.name) {
            return f.write_str("/>");
        }
        write!(f, ">{}</{}>", self.content, self.name)
    }
}

/// Escapes what is written through it.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c if is_misleading(c) => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Characters that XML has no place for, or that turn the direction of the text around them.
const fn is_misleading(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => true,
        c => c.is_ascii_control() || matches!(c, '\u{80}'..='\u{9f}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_element_or_attribute() {
        let hostile = "\"><script>alert('&')</script>\u{202e}\0";
        let element = Element::new("p").with("title", hostile).text(hostile);
        let inert = "&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;\u{fffd}\u{fffd}";
        assert_eq!(
            element.to_string(),
            format!("<p title=\"{inert}\">{inert}</p>")
        );
    }

    #[test]
    fn only_elements_without_content_close_themselves() {
        let line = Element::new("line").with("x1", 1);
        assert_eq!(line.to_string(), "<line x1=\"1\"/>");
        assert_eq!(Element::new("td").to_string(), "<td></td>");
        let titled = Element::new("path").child(of_text("title", "a"));
        assert_eq!(titled.to_string(), "<path><title>a</title></path>");
    }
}
