//! The ways to have files in memory, side by side: `tollgate ram --compare`.

use serde::Serialize;
use tollgate_model::Run;
use tollgate_output::table::{Look, Table, paragraph};

use crate::summary::Summary;

/// What is measured on each way, and its row's name.
pub const CASES: [(&str, &str); 8] = [
    ("files/read{block=4k, state=cached}", "pread 4 KiB, cached"),
    ("files/direct-read{block=4k, buffer=aligned}", "pread 4 KiB, O_DIRECT"),
    ("files/direct-read{block=4k, buffer=unaligned}", "the same, misaligned by 1"),
    ("files/write{block=4k, mode=buffered}", "pwrite 4 KiB, buffered"),
    ("files/write{block=4k, mode=direct}", "pwrite 4 KiB, O_DIRECT"),
    ("files/write{block=1m, mode=direct}", "pwrite 1 MiB, O_DIRECT"),
    ("files/fsync", "fsync after 4 KiB"),
    ("files/create{after=nothing}", "create a file"),
];

/// One way, and what was measured on it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Way {
    /// Such as `loop, ext4`.
    pub way: String,
    /// Whether it can be had here.
    pub works: bool,
    /// Why it does not work, or None.
    pub why: Option<String>,
    /// What it is made of: `loop over tmpfs, direct I/O`.
    pub device: Option<String>,
    /// Bytes of memory that it took while it was empty.
    pub empty_bytes: Option<f64>,
    /// The figures, in the order of the table.
    pub cases: Vec<Figure>,
}

/// The figure of a case on one way.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FigureOfRam"))]
pub struct Figure {
    /// The case.
    pub case: &'static str,
    /// In nanoseconds.
    pub median: Option<f64>,
    /// Why there is none.
    pub why: Option<String>,
    #[serde(skip)]
    words: String,
}

/// The document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaysOfRam"))]
pub struct Records<'a> {
    /// In the order in which they were measured.
    pub ways: &'a [Way],
}

impl Way {
    /// The run that was made on it, or why it cannot be had.
    pub fn new(name: &str, made: &Result<Run, String>) -> Self {
        let run = match made {
            Ok(run) => run,
            Err(why) => {
                return Self {
                    way: name.to_owned(),
                    works: false,
                    why: Some(why.clone()),
                    device: None,
                    empty_bytes: None,
                    cases: Vec::new(),
                };
            }
        };
        let summary = Summary::of(run);
        let figure = |(case, _): (&'static str, _)| {
            let row = summary.rows.iter().find(|row| row.case.to_string() == case);
            let figures = row.and_then(|row| row.figures());
            Figure {
                case,
                median: figures.map(|figures| figures.bounded()),
                why: row.and_then(|row| row.why()).map(str::to_owned),
                words: figures.map_or_else(
                    || row.map_or("not measured", |row| row.status()).to_owned(),
                    |figures| figures.in_words(),
                ),
            }
        };
        let fact = |name: &str| run.facts.get(name).and_then(|fact| fact.value());
        Self {
            way: name.to_owned(),
            works: true,
            why: None,
            device: fact("ram.device").and_then(|value| value.as_text()).map(str::to_owned),
            empty_bytes: fact("ram.taken.before").and_then(|value| value.as_f64()),
            cases: CASES.into_iter().map(figure).collect(),
        }
    }
}

/// The table, and beneath it why parts of it are empty.
pub fn text(ways: &[Way], width: usize) -> String {
    let mut table = Table::new(&["", "brd", "null_blk", "loop", "tmpfs"]).with_words(&[""]);
    let mut row = |name: &str, cell: &dyn Fn(&Way) -> String| {
        let cells: Vec<String> = std::iter::once(name.to_owned())
            .chain(ways.iter().map(|way| if way.works { cell(way) } else { "-".to_owned() }))
            .collect();
        table.row(Look::Plain, &cells, &[]);
    };
    row("file system", &|way| way.way.split_once(", ").map_or("tmpfs", |(_, name)| name).to_owned());
    row("block device", &|way| if way.device.as_deref() == Some("tmpfs") { "no" } else { "yes" }.to_owned());
    row("memory while empty", &|way| match way.empty_bytes {
        Some(bytes) => format!("{:.1} MiB", bytes / f64::from(1 << 20)),
        None => "unknown".to_owned(),
    });
    for (at, (_, name)) in CASES.iter().enumerate() {
        row(name, &|way| way.cases.get(at).map_or_else(String::new, |figure| figure.words.clone()));
    }
    let mut text = table.render(width);
    text.push('\n');
    for way in ways {
        if let Some(why) = &way.why {
            text.push_str(&paragraph(&format!("{}: {why}", way.way), width, "  "));
        }
        for figure in &way.cases {
            if let Some(why) = &figure.why {
                text.push_str(&paragraph(&format!("{}: {}: {why}", way.way, figure.case), width, "  "));
            }
        }
    }
    let note = "Medians of a few seconds each, one way after the other: a small difference may be the machine's. Memory is taken for what is written, and \
                all of it is given back.";
    text.push_str(&paragraph(note, width, ""));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_has_its_reason_beneath_the_table() {
        let missing = |name: &str| Way::new(name, &Err(format!("there is no {name} here")));
        let ways = [missing("brd, ext4"), missing("null_blk, ext4"), missing("loop, ext4"), missing("tmpfs")];
        let text = text(&ways, 80);
        assert!(text.contains("brd, ext4: there is no brd, ext4 here"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(CASES.iter().all(|(_, name)| text.contains(name)), "{text}");
        let json = serde_json::to_string(&Records { ways: &ways }).expect("JSON");
        assert!(json.contains("\"works\":false"), "{json}");
    }
}
