//! The table of `strace -c`, with the requested columns (`-U`). Pure.

use tollgate_model::traced::{Call, Parts};

use super::line::seconds;

/// A column, by its heading in strace's `print_call_cost` (count.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Share,
    Total,
    Shortest,
    Longest,
    Mean,
    Calls,
    Errors,
    Name,
}

const COLUMNS: [(&str, Column); 8] = [
    ("% time", Column::Share),
    ("seconds", Column::Total),
    ("shortest", Column::Shortest),
    ("longest", Column::Longest),
    ("usecs/call", Column::Mean),
    ("calls", Column::Calls),
    ("errors", Column::Errors),
    ("syscall", Column::Name),
];

/// More calls than any kernel has.
const MOST_CALLS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Table {
    /// The previous line, which may be the heading.
    before: String,
    columns: Vec<(Column, usize)>,
    state: Section,
    /// Whether these are the calls of 32-bit programs, which have a table of their own.
    is_32_bit: bool,
    pub calls: Vec<Call>,
    /// The number of calls in the last row.
    pub total: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Outside,
    Rows,
    Total,
}

impl Table {
    pub fn take(&mut self, line: &str) -> bool {
        let is_rule = line.starts_with("---") && line.bytes().all(|byte| byte == b'-' || byte == b' ');
        let taken = match self.state {
            _ if line.starts_with("System call usage summary for ") => {
                self.is_32_bit = line.contains("32 bit");
                true
            }
            Section::Outside if is_rule => {
                self.columns = columns(&self.before, line).unwrap_or_default();
                if !self.columns.is_empty() {
                    self.state = Section::Rows;
                }
                !self.columns.is_empty()
            }
            Section::Outside => false,
            Section::Rows if is_rule => {
                self.state = Section::Total;
                true
            }
            Section::Rows => {
                let call = self.row(line);
                let is_row = call.is_some();
                self.calls.extend(call.filter(|_| self.calls.len() < MOST_CALLS));
                is_row
            }
            Section::Total => {
                self.state = Section::Outside;
                let calls = self.row(line).map(|total| total.count);
                self.total = calls.map(|calls| self.total.unwrap_or(0).saturating_add(calls));
                calls.is_some()
            }
        };
        self.before = line.chars().take(200).collect();
        taken
    }

    /// Returns whether a line may be the heading of a table; only the next line confirms it.
    pub fn is_head(line: &str) -> bool {
        line.contains("syscall") && line.contains("calls") && !line.contains('(')
    }

    fn row(&self, line: &str) -> Option<Call> {
        if !line.is_ascii() {
            return None;
        }
        let mut call = Call {
            name: String::new(),
            count: 0,
            errors: 0,
            unfinished: 0,
            stopped: 0,
            total_ns: 0,
            max_ns: 0,
            parts: Parts::default(),
            histogram: Vec::new(),
        };
        let mut begin = 0;
        for (at, (column, end)) in self.columns.iter().enumerate() {
            // The last column may be wider than its rule.
            let end = if at + 1 == self.columns.len() { line.len() } else { *end };
            let cell = line.get(begin.min(line.len())..end.min(line.len()))?.trim();
            begin = end;
            match column {
                Column::Share | Column::Shortest | Column::Mean => {}
                Column::Total => call.total_ns = seconds(cell)?,
                Column::Longest => call.max_ns = seconds(cell).unwrap_or(0),
                Column::Calls => call.count = cell.parse().ok()?,
                Column::Errors if cell.is_empty() => {}
                Column::Errors => call.errors = cell.parse().ok()?,
                Column::Name => call.name = cell.to_owned(),
            }
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if call.name.is_empty() || call.name.len() > 64 || !call.name.bytes().all(fits) {
            return None;
        }
        if self.is_32_bit {
            call.name.push_str(" (32-bit)");
        }
        // The table does not say which part of the time was on a processor.
        call.parts.unknown_ns = call.total_ns;
        Some(call)
    }
}

/// Parses the columns of a heading, each with the end of its rule; `None` if it is not a heading or lacks a required column.
fn columns(head: &str, rule: &str) -> Option<Vec<(Column, usize)>> {
    let mut found = Vec::new();
    let mut begin = 0;
    let ends = rule
        .char_indices()
        .filter(|&(at, c)| c == '-' && !rule[at + 1..].starts_with('-'))
        .map(|(at, _)| at + 1);
    for end in ends {
        // Headings of text start with their rule, those of numbers end with it.
        let cell = head.get(begin.min(head.len())..end.min(head.len()))?.trim();
        found.push((COLUMNS.iter().find(|(name, _)| *name == cell)?.1, end));
        begin = end;
    }
    let has = |column| found.iter().any(|(it, _)| *it == column);
    (has(Column::Name) && has(Column::Calls) && has(Column::Total)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Table, usize) {
        let mut table = Table::default();
        let taken = text.lines().filter(|line| table.take(line)).count();
        (table, taken)
    }

    #[test]
    fn the_usual_columns() {
        let (table, taken) = read(
            "% time     seconds  usecs/call     calls    errors syscall\n\
             ------ ----------- ----------- --------- --------- ----------------\n \
             84.88    0.001724         191         9         4 wait4\n  \
             7.19    0.000146           2        70           close\n  \
             0.00    0.000000           0         1           a_name_of_more_than_16\n\
             ------ ----------- ----------- --------- --------- ----------------\n\
             100.00    0.002031                    80         4 total\n",
        );
        assert_eq!((taken, table.total), (6, Some(80)));
        let rows: Vec<(&str, u64, u64, u64)> = table
            .calls
            .iter()
            .map(|call| (call.name.as_str(), call.count, call.errors, call.total_ns))
            .collect();
        assert_eq!(
            rows,
            [("wait4", 9, 4, 1_724_000), ("close", 70, 0, 146_000), ("a_name_of_more_than_16", 1, 0, 0)]
        );
    }

    #[test]
    fn columns_that_were_asked_for() {
        let (table, _) = read(
            "System call usage summary for 32 bit mode:\n\
             syscall              calls    errors     seconds shortest  longest\n\
             ---------------- --------- --------- ----------- -------- --------\n\
             wait4                    9         4    0.148278 0.000008 0.077556\n\
             ---------------- --------- --------- ----------- -------- --------\n\
             total                    9         4    0.148278 0.000008 0.077556\n",
        );
        let call = &table.calls[0];
        assert_eq!(
            (call.name.as_str(), call.max_ns, call.parts.unknown_ns),
            ("wait4 (32-bit)", 77_556_000, 148_278_000)
        );
        assert_eq!(table.total, Some(9));
    }

    #[test]
    fn a_table_without_times_or_another_one_is_none() {
        let (table, taken) = read("syscall calls\n------- -----\nread        5\n");
        assert_eq!((table.calls.len(), taken), (0, 0));
        let (table, taken) = read("a b\n--- ---\n1 2\n");
        assert_eq!((table.calls.len(), taken), (0, 0));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(head in "[ a-z%/]{0,60}", rule in "[- ]{0,60}", rows in "[ 0-9.a-zä]{0,60}") {
            read(&format!("{head}\n---{rule}\n{rows}\n"));
            let usual = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------";
            read(&format!("{usual}\n{rows}\n{rule}\n{rows}"));
        }
    }
}
