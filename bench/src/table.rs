//! Tables that a person reads: Markdown, padded, so that they can be read as they are and kept in a document.

use std::fmt::Write as _;

/// 1234567 as 1 234 567.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        let to_come = digits.len() - place;
        if place > 0 && to_come % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A Markdown table whose columns are as wide as their widest cell.
pub(crate) fn markdown<const N: usize>(heads: [&str; N], rows: Vec<[String; N]>) -> String {
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(rows);
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    lines.insert(1, widths.map(|width| "-".repeat(width)));
    lines.iter().map(|line| padded(line, &widths)).collect()
}

fn padded(line: &[String], widths: &[usize]) -> String {
    let mut text = String::from("|");
    for (cell, width) in line.iter().zip(widths) {
        write!(text, " {cell:<width$} |").expect("writing to a String cannot fail");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [0.4, 999.0, 1_000.0, 1_234_567.0].map(grouped);
        assert_eq!(numbers, ["0", "999", "1 000", "1 234 567"]);
    }
}
