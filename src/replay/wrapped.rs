//! Sentences in lines that a terminal shows whole.

/// Text broken into lines of at most 100 characters, the later ones indented.
pub(in crate::replay) fn wrapped(text: &str, indent: usize) -> String {
    const WIDTH: usize = 100;
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}
