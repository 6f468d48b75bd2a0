//! The delay of a command for each key of a session.

use crate::keys::{ENDING, Key, PATIENCE, SIZE, Session};
use serde::Serialize;
use tollgate_model::traced::Backend;
use tollgate_model::{Unit, stats};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};

/// How many keys are listed: of the slowest, and of those without an answer.
const SHOWN: usize = 3;

/// The output of `--keys` with `--format json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KeysOfTerminal"))]
pub struct KeysRecord {
    /// The command and its arguments.
    command: Vec<String>,
    /// The tracer of its calls: `bpf`, `ptrace`, or `rusage` if none traced them.
    backend: Backend,
    /// The delay from the end of its read(2) of a key to the end of the first write(2) to the terminal after that.
    command_delay: Delays,
    /// The delay from the key to the first byte for the screen, at the terminal's master.
    screen_delay: Delays,
    /// The typed keys, in order.
    keys: Vec<OfKey>,
    /// The number of keys that were not typed because the command had ended.
    left: usize,
    /// Whether tollgate ended the command because it did not end by itself after the last key.
    is_ended_here: bool,
    /// Further notes.
    notes: Vec<String>,
}

/// The delays of the keys that have one.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DelaysOfKeys"))]
struct Delays {
    /// The number of keys that have one.
    keys: usize,
    /// The median; null if no key has a delay.
    median_ns: Option<f64>,
    /// The 99th percentile; with fewer than 100 keys, the longest. Null if no key has a delay.
    p99_ns: Option<f64>,
    /// The longest; null if no key has a delay.
    max_ns: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KeyOfTerminal"))]
struct OfKey {
    /// Its bytes, as written in Rust: `\\r` is Enter.
    key: String,
    /// The command's delay; null if it wrote nothing to the terminal before the next key, or was not traced.
    command_ns: Option<u64>,
    /// The screen's delay; null if no byte came.
    screen_ns: Option<u64>,
}

impl Delays {
    fn of(delays: impl Iterator<Item = u64>) -> Self {
        let mut all: Vec<f64> = delays.map(|ns| ns as f64).collect();
        all.sort_unstable_by(f64::total_cmp);
        let max_ns = all.last().copied();
        let p99_ns = if all.len() < 100 { max_ns } else { stats::quantile(&all, 0.99) };
        Self { keys: all.len(), median_ns: stats::quantile(&all, 0.5), p99_ns, max_ns }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let time = |ns: Option<f64>| {
            ns.map_or_else(|| "–".to_owned(), |ns| figures::estimate(ns, Unit::Nanoseconds))
        };
        let times = [self.median_ns, self.p99_ns, self.max_ns].map(time);
        [name.to_owned(), self.keys.to_string()].into_iter().chain(times).collect()
    }
}

impl KeysRecord {
    /// Builds the record of a session.
    pub fn of(session: &Session) -> Self {
        let traced = &session.trace.traced;
        Self {
            command: traced.command.clone(),
            backend: traced.backend,
            command_delay: Delays::of(session.keys.iter().filter_map(|key| key.command_ns)),
            screen_delay: Delays::of(session.keys.iter().filter_map(|key| key.screen_ns)),
            keys: session.keys.iter().map(OfKey::of).collect(),
            left: session.left,
            is_ended_here: session.is_ended_here,
            notes: traced.notes.clone(),
        }
    }

    /// Renders the record as text.
    pub fn text(&self, width: usize) -> String {
        let by = match self.backend {
            Backend::Bpf => "traced with BPF",
            Backend::Ptrace => "traced with ptrace(2), which stops each call twice",
            _ => "not traced",
        };
        let (rows, columns) = SIZE;
        let command = self.command.join(" ");
        let keys = self.keys.len();
        let head = format!("{command}: {keys} keys on a terminal of {columns} × {rows}, {by}");
        let mut table = Table::new(&["delay of a key", "keys", "median", "p99", "max"]);
        table.row(Look::Plain, &self.command_delay.cells("read(2) to end of write(2)"), &[]);
        table.row(Look::Plain, &self.screen_delay.cells("key to screen"), &[]);
        let said: String = self.sentences().iter().map(|line| paragraph(line, width, "  ")).collect();
        format!("{}{}{said}", paragraph(&head, width, ""), table.render(width))
    }

    fn sentences(&self) -> Vec<String> {
        let slowest = self.slowest();
        let silent: Vec<String> = self
            .numbered()
            .filter(|(_, key)| key.screen_ns.is_none())
            .map(|(number, key)| format!("{number} ({})", key.key))
            .collect();
        let first = silent.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let more = if silent.len() > SHOWN { ", …" } else { "" };
        let (patience, ending) = (PATIENCE.as_secs(), ENDING.as_secs());
        let mut said = Vec::new();
        if !slowest.is_empty() {
            said.push(format!("slowest: {}", slowest.join(", ")));
        }
        if !silent.is_empty() {
            said.push(format!(
                "not answered within {patience} s: {} of {}, {first}{more}",
                silent.len(),
                self.keys.len()
            ));
        }
        if self.left > 0 {
            said.push(format!("{} keys were not typed: the command had ended", self.left));
        }
        if self.is_ended_here {
            said.push(format!("the command had not ended {ending} s after the last key, and was ended: the last keys should quit it"));
        }
        said.extend(self.notes.iter().map(|note| format!("note: {note}")));
        said
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &OfKey)> {
        (1..).zip(&self.keys)
    }

    fn slowest(&self) -> Vec<String> {
        let mut all: Vec<(u64, String)> = self
            .numbered()
            .filter_map(|(number, key)| Some((key.screen_ns?, format!("{number} ({})", key.key))))
            .collect();
        all.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let shown =
            |(ns, key): (u64, String)| format!("{key} {}", figures::estimate(ns as f64, Unit::Nanoseconds));
        all.into_iter().take(SHOWN).map(shown).collect()
    }
}

impl OfKey {
    fn of(key: &Key) -> Self {
        let shown = String::from_utf8_lossy(&key.bytes).escape_debug().to_string();
        Self { key: shown, command_ns: key.command_ns, screen_ns: key.screen_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(delays: &[Option<u64>]) -> KeysRecord {
        let keys = delays.iter().map(|ns| Key { bytes: b"\x1b".to_vec(), command_ns: *ns, screen_ns: *ns });
        let keys: Vec<Key> = keys.collect();
        KeysRecord {
            command: vec!["vi".to_owned(), "x".to_owned()],
            backend: Backend::Bpf,
            command_delay: Delays::of(keys.iter().filter_map(|key| key.command_ns)),
            screen_delay: Delays::of(keys.iter().filter_map(|key| key.screen_ns)),
            keys: keys.iter().map(OfKey::of).collect(),
            left: 2,
            is_ended_here: false,
            notes: Vec::new(),
        }
    }

    #[test]
    fn delays_are_summed_up_and_keys_without_one_are_named() {
        let all = [Some(3_000), Some(1_000), None, Some(2_000)];
        let shown = anstream::adapter::strip_str(&record(&all).text(100)).to_string();
        assert!(shown.contains("2.00 µs  3.00 µs  3.00 µs"), "{shown}");
        assert!(shown.contains("slowest: 1 (\\u{1b}) 3.00 µs, 4 ("), "{shown}");
        assert!(shown.contains("1 of 4, 3 (\\u{1b})") && shown.contains("2 keys were not typed"), "{shown}");
        let none = serde_json::to_value(record(&[None])).expect("JSON");
        assert_eq!(
            (&none["command_delay"]["keys"], &none["screen_delay"]["max_ns"]),
            (&0.into(), &serde_json::Value::Null)
        );
        let many: Vec<_> = (1..=200).map(Some).collect();
        assert!(record(&many).screen_delay.p99_ns < Some(200.0));
    }
}
