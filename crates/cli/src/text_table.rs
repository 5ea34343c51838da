//! Tables as text: each column is as wide as its widest cell.

/// The lines of a table with the titles `head` and the cells of `rows`, with two spaces between columns.
pub(crate) fn text_table<H: AsRef<str>, R: AsRef<[String]>>(head: impl AsRef<[H]>, rows: &[R]) -> String {
    let head: Vec<&str> = head.as_ref().iter().map(AsRef::as_ref).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row.as_ref()[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let rows = rows.iter().map(|row| row.as_ref().iter().map(String::as_str).collect());
    let mut text = String::new();
    for row in std::iter::once(head.clone()).chain(rows) {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["r1".to_owned(), "[start, é)".to_owned(), String::new()]];
        let table = text_table(["range", "keys", "note"], &rows);
        assert_eq!(table, "range  keys        note\nr1     [start, é)\n");
    }
}
