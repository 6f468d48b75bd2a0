use tollgate_model::Traced;
use tollgate_model::traced::{FileOperation, FileTime, Parts};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table};

use super::{misaligned, text};

const MOST_OPERATIONS: usize = 6;

pub(crate) fn text(traced: &Traced, top: usize, width: usize) -> String {
    let mut files: Vec<(&FileTime, Parts)> = traced.files.iter().map(|file| (file, parts(file))).collect();
    files.sort_by_key(|(_, parts)| std::cmp::Reverse(parts.total_ns()));
    let mut table = Table::new(&["file", "total", "cpu", "disk", "other waiting"]).with_dispensable(1);
    let longest = (width / 2).clamp(24, 60);
    for (file, parts) in files.iter().take(top) {
        let mut shown: Vec<String> = file.operations.iter().take(MOST_OPERATIONS).map(in_words).collect();
        if file.operations.len() > MOST_OPERATIONS {
            shown.push(format!("{} more", file.operations.len() - MOST_OPERATIONS));
        }
        table.row(Look::Plain, &cells(text::cut_front(&file.path, longest), *parts), &shown);
    }
    if let Some(others) = files.get(top..).filter(|others| !others.is_empty()) {
        let sum = others.iter().fold(Parts::default(), |sum, (_, parts)| sum.plus(*parts));
        table.row(Look::Faint, &cells(text::counted(others.len() as u64, "other", "others"), sum), &[]);
    }
    format!("{}{}", table.render(width), misaligned::paragraphs(traced, width))
}

fn cells(name: String, parts: Parts) -> [String; 5] {
    let other = parts.total_ns().saturating_sub(parts.on_cpu_ns).saturating_sub(parts.disk_ns);
    [
        name,
        text::time(parts.total_ns()),
        text::time(parts.on_cpu_ns),
        text::time(parts.disk_ns),
        text::time(other),
    ]
}

fn parts(file: &FileTime) -> Parts {
    file.operations.iter().fold(Parts::default(), |sum, operation| sum.plus(operation.parts))
}

/// `read ×120 3.20 ms (4.50 MiB)`.
fn in_words(operation: &FileOperation) -> String {
    let mut shown = format!(
        "{} ×{} {}",
        text::cut(&operation.operation, 24),
        text::grouped(operation.count),
        text::time(operation.parts.total_ns())
    );
    if operation.bytes > 0 {
        shown.push_str(&format!(" ({})", figures::bytes(operation.bytes as f64)));
    }
    if operation.errors > 0 {
        shown.push_str(&format!(", {} failed", text::grouped(operation.errors)));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::examples;

    #[test]
    fn the_slowest_file_is_first_with_its_operations() {
        let table = anstream::adapter::strip_str(&text(&examples::build(), 12, 120)).to_string();
        let lines: Vec<&str> = table.lines().collect();
        assert!(
            lines[1].contains("stddef.h") && table.contains("read ×120 5.00 ms (4.50 MiB); open ×3 5.00 ms"),
            "{table}"
        );
        assert!(lines.iter().any(|line| line.starts_with("pipe ")), "{table}");
        let one = anstream::adapter::strip_str(&text(&examples::build(), 1, 120)).to_string();
        assert!(one.contains("1 other ") && !one.contains("pipe"), "{one}");
    }
}
