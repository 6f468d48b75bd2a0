//! Formats times, counts, commands and how they ended.

use tollgate_model::Unit;
use tollgate_model::text::signal_name;
use tollgate_model::traced::{Attached, Backend, Ended, Parts, Until};
use tollgate_output::figures;

/// Untrusted text is truncated to this many characters first.
const LONGEST: usize = 400;

/// Formats a time in nanoseconds: `344 ms`; zero is `0`.
pub fn time(ns: u64) -> String {
    match ns {
        0 => "0".to_owned(),
        ns => figures::estimate(ns as f64, Unit::Nanoseconds),
    }
}

/// Converts nanoseconds to seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Formats a time in nanoseconds that may be negative: `-10.0 ms`.
pub fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", figures::estimate(ns.abs(), Unit::Nanoseconds))
}

/// Formats a difference in nanoseconds with its sign: `+248 s`; zero is `0`.
pub fn difference(ns: i64) -> String {
    match ns {
        0 => "0".to_owned(),
        ns => figures::difference(ns as f64, Unit::Nanoseconds),
    }
}

/// Formats a number with thousands separators: `61,204`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 process`, `61,204 calls`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Formats a share in percent, without the sign: `98`; a share above 0 that rounds to 0 is `<1`.
pub fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (0, _) | (_, 0) => "0".to_owned(),
        (part, whole) => match part as f64 / whole as f64 * 100.0 {
            small if small < 0.5 => "<1".to_owned(),
            percent => format!("{percent:.0}"),
        },
    }
}

/// Formats how a thread passed its time: longest part first, without zeros.
pub fn parts(parts: Parts) -> String {
    let Parts { on_cpu_ns, sleep_ns, disk_ns, runqueue_ns, unknown_ns } = parts;
    let mut named = [
        (on_cpu_ns, "on a processor"),
        (sleep_ns, "asleep"),
        (disk_ns, "disk"),
        (runqueue_ns, "waiting for a processor"),
        (unknown_ns, "off the processor"),
    ];
    named.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let shown = named.iter().filter(|(ns, _)| *ns > 0);
    shown.map(|(ns, name)| format!("{name} {}", time(*ns))).collect::<Vec<String>>().join(", ")
}

/// Truncates a text to `longest` characters.
pub fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Truncates a path at the front, since paths differ at the end.
pub fn cut_front(text: &str, longest: usize) -> String {
    let length = text.chars().take(16 * LONGEST).count();
    if length <= longest {
        return text.to_owned();
    }
    let end: Vec<char> = text.chars().rev().take(longest.saturating_sub(1)).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// Truncates a sentence from a document.
pub fn sentence(text: &str) -> String {
    cut(text, LONGEST)
}

/// Formats a command as it is typed in a shell.
pub fn command(arguments: &[String]) -> String {
    let mut line = String::new();
    for argument in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        let argument = cut(argument, LONGEST);
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
        if !argument.is_empty() && argument.chars().all(is_plain) {
            line.push_str(&argument)
        } else {
            line.push_str(&format!("'{}'", argument.replace('\'', r"'\''")))
        }
        if line.len() > LONGEST {
            break;
        }
    }
    cut(&line, LONGEST / 2)
}

/// Describes how a command ended.
pub fn ended(ended: Ended) -> String {
    match ended {
        Ended::Exit(status) => format!("exit status {status}"),
        Ended::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
    }
}

/// Describes processes that ran before they were traced.
pub fn attached(attached: &Attached, command: &[String]) -> String {
    const MOST: usize = 8;
    let numbers: Vec<String> = attached.processes.iter().take(MOST).map(u32::to_string).collect();
    let more = attached.processes.len().saturating_sub(MOST);
    let numbers = numbers.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = if attached.processes.len() == 1 { "process" } else { "processes" };
    match (&attached.cgroup, command.is_empty()) {
        (Some(group), _) => format!("control group {}", cut(group, LONGEST / 2)),
        (None, true) => format!("{what} {numbers}"),
        (None, false) => format!("{what} {numbers}, {}", self::command(command)),
    }
}

/// Describes how the trace of running processes ended.
pub fn until(until: Until) -> &'static str {
    match until {
        Until::Exited => "traced until the end",
        Until::Time => "traced for a time",
        Until::Signal => "traced until a signal",
    }
}

/// Names the backend.
pub fn backend(backend: Backend) -> &'static str {
    match backend {
        Backend::Bpf => "BPF",
        Backend::Ptrace => "ptrace(2)",
        Backend::Rusage => "rusage only",
        Backend::Strace => "strace(1)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_to_be_read() {
        assert_eq!([time(0), time(344_000_000)], ["0", "344 ms"]);
        assert_eq!([signed(-1.0e7), signed(1.0e7)], ["-10.0 ms", "10.0 ms"]);
        assert_eq!([difference(0), difference(-2_000)], ["0", "-2.00 µs"]);
        assert_eq!(
            [grouped(0), grouped(999), grouped(61_204), grouped(1_000_000)],
            ["0", "999", "61,204", "1,000,000"]
        );
        assert_eq!([share(0, 5), share(1, 1000), share(98, 100), share(3, 0)], ["0", "<1", "98", "0"]);
    }

    #[test]
    fn an_end_is_named() {
        assert_eq!(ended(Ended::Exit(3)), "exit status 3");
        assert_eq!(ended(Ended::Signal(9)), "killed by SIGKILL");
        assert_eq!(ended(Ended::Signal(64)), "killed by signal 64");
        assert_eq!(ended(Ended::Signal(-1)), "killed by signal -1");
    }

    #[test]
    fn a_command_is_quoted_where_it_must_be_and_cut_where_it_is_long() {
        let words =
            |words: &[&str]| command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["git", "log", "--format=%H", "it's", ""]), r"git log --format=%H 'it'\''s' ''");
        assert!(words(&["x".repeat(5_000_000).as_str()]).chars().count() <= 201);
        assert_eq!(cut_front("/a/long/path", 5), "…path");
        assert_eq!(cut_front("short", 5), "short");
    }

    #[test]
    fn parts_are_shown_longest_first() {
        let all = Parts { on_cpu_ns: 2_800_000, disk_ns: 293_000_000, ..Parts::default() };
        assert_eq!(parts(all), "disk 293 ms, on a processor 2.80 ms");
    }
}
