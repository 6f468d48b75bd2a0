//! Rows as an HTML table.

use std::fmt::Write;

use crate::column::Columns;
use crate::markup::{Text, escaped};

/// A table with a caption.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The caption. Without rows only this appears, as a sentence.
    pub caption: Text,
    /// The names of its columns.
    pub head: Vec<Text>,
    /// Its rows. The first cell of each is its name.
    pub rows: Vec<Vec<Text>>,
    /// Whether it is unfolded initially.
    pub is_open: bool,
}

impl Table {
    /// Makes a folded table without rows.
    pub fn new(caption: impl Into<Text>, head: impl IntoIterator<Item = impl Into<Text>>) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self { caption: caption.into(), head, ..Self::default() }
    }

    /// Makes a folded table of rows.
    pub fn from_rows<R>(
        caption: impl Into<Text>,
        columns: &Columns<R>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let cells = |row: R| columns.values(&row).iter().map(|value| Text::label(value.words())).collect();
        let rows = rows.into_iter().map(cells).collect();
        Self { rows, ..Self::new(caption, columns.iter().map(|column| &*column.head)) }
    }

    /// Returns the HTML elements.
    pub fn render(&self) -> String {
        let caption = escaped(self.caption.as_str());
        if self.rows.is_empty() {
            return format!("<p>{caption}.</p>");
        }
        let (begin, end) = if self.is_open {
            (format!("<h3>{caption}</h3>"), "")
        } else {
            (format!("<details class=\"all\"><summary>{caption}</summary>"), "</details>")
        };
        let head: String =
            self.head.iter().map(|name| format!("<th scope=\"col\">{}", escaped(name.as_str()))).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!(
            "{begin}\n<div class=\"scroll\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\"><table><thead><tr>{head}</thead>\
             <tbody>{rows}\n</table></div>{end}"
        )
    }
}

fn line(cells: &[Text]) -> String {
    let mut line = "\n<tr>".to_owned();
    for (at, cell) in cells.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(line, "<{}>{}", if at == 0 { "th" } else { "td" }, escaped(cell.as_str()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_escaped_and_has_its_caption_in_place_of_no_rows() {
        let mut table = Table::new("a < b", ["case", "\"x\""]);
        assert_eq!(table.render(), "<p>a &lt; b.</p>");
        table.rows.push(vec!["<script>".into(), "1".into()]);
        let shown = table.render();
        assert!(shown.contains("<th scope=\"col\">case<th scope=\"col\">&#34;x&#34;"), "{shown}");
        assert!(shown.contains("<tr><th>&lt;script&gt;<td>1") && shown.ends_with("</details>"), "{shown}");
        table.is_open = true;
        assert!(table.render().starts_with("<h3>a &lt; b</h3>"));
    }
}
