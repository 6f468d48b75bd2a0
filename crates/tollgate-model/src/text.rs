//! Untrusted text, made safe to show.

use std::borrow::Cow;
use std::io;

/// Escapes characters that command a terminal or change the direction of writing.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(commands_a_reader) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if commands_a_reader(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Like [`clean`] for a text of several lines, each of which then ends with a newline: tabs stay.
pub fn clean_lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(clean).collect::<Vec<_>>().join("\t") + "\n";
    text.lines().map(line).collect()
}

/// The first line that is not empty, without characters that command a reader.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.replace(commands_a_reader, "")
}

/// Whether `c` is a control character, a mark that changes the direction of writing or breaks a line, or invisible: Unicode's
/// categories Cc, Cf, Zl and Zp except the visible signs among them, and Hangul fillers.
pub fn commands_a_reader(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// Quotes a word for a shell's command line, for people to paste.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Most characters of a document's text that a message quotes.
pub const MOST_QUOTED: usize = 200;

/// The beginning of a text that a message quotes: [`clean`], and cut after [`MOST_QUOTED`] characters with `…`.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    beginning(text, MOST_QUOTED)
}

/// The first `most` characters of a text, escaped as in [`excerpt`].
pub fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    let begin = |text: &str| text.char_indices().nth(most).map(|(end, _)| end);
    let end = begin(text);
    let shown = clean(&text[..end.unwrap_or(text.len())]);
    match (begin(&shown), end) {
        (None, None) => shown,
        (cut, _) => Cow::Owned(format!("{}…", &shown[..cut.unwrap_or(shown.len())])),
    }
}

/// A message about a document, with at most [`MOST_QUOTED`] characters of the text that it quotes. It quotes one text at most, between
/// `"` or `` ` ``, and names after it the expected form, as serde does.
pub fn shorten(message: &str) -> Cow<'_, str> {
    let Some(open) = message.find(['"', '`']) else { return beginning(message, 2 * MOST_QUOTED) };
    let quoted = open + 1;
    let ends = ["\", expected ", "`, expected ", "\" at line ", "` at line ", "` is "];
    let close = ends.iter().find_map(|end| message[quoted..].rfind(end)).map(|at| quoted + at);
    let (inner, rest) = message[quoted..].split_at(close.unwrap_or(message.len()) - quoted);
    Cow::Owned(format!("{}{}{}", &message[..quoted], excerpt(inner), beginning(rest, 2 * MOST_QUOTED)))
}

/// `a, b and c`.
pub fn listed<T: ToString>(parts: &[T]) -> String {
    let parts: Vec<String> = parts.iter().map(T::to_string).collect();
    match parts.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        parts => parts.concat(),
    }
}

/// The text of an I/O error without its number: `No space left on device`.
pub fn plainly(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Describes the error of a call. A call that starts a process or a thread and fails with EAGAIN has met one of three limits,
/// which fork(2) and pthread_create(3) name: waiting does not help.
pub fn said_by(call: &str, error: &io::Error) -> String {
    const EAGAIN: i32 = 11;
    let plain = plainly(error);
    let starts = ["fork", "clone", "vfork", "pthread_create", "thread", "process"];
    match error.raw_os_error() {
        Some(EAGAIN) if starts.iter().any(|word| call.contains(word)) => format!(
            "{plain}: RLIMIT_NPROC (ulimit -u), pids.max of a cgroup or kernel.threads-max does not allow one more process or thread"
        ),
        _ => plain,
    }
}

const SIGNALS: &str = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU \
    URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS";

/// The name of a signal, `SIGHUP`. `None` if the number has no name.
pub fn signal_name(signal: i32) -> Option<String> {
    let name = SIGNALS.split(' ').nth(usize::try_from(signal).ok()?.checked_sub(1)?)?;
    Some(format!("SIG{name}"))
}

/// The number of a signal by its name: `SIGHUP`, or `SIGRT_1` as strace(1) names real-time signals.
pub fn signal_number(name: &str) -> Option<i32> {
    const REAL_TIME: i32 = 32;
    if let Some(number) = name.strip_prefix("SIGRT_") {
        return number
            .parse()
            .ok()
            .filter(|number| (0..=32).contains(number))
            .map(|number: i32| REAL_TIME + number);
    }
    let name = name.strip_prefix("SIG")?;
    let at = SIGNALS.split(' ').position(|signal| signal == name)?;
    i32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn a_quotation_ends_after_200_characters() {
        let long = "é".repeat(201);
        assert_eq!(excerpt(&long), format!("{}…", "é".repeat(200)));
        assert!(matches!(excerpt(&long[2..]), Cow::Borrowed(_)));
        assert_eq!(excerpt("a\u{1b}b"), "a\\u{1b}b");
        assert_eq!(excerpt(&"\u{9b}".repeat(100)).chars().count(), 201);
    }

    #[test]
    fn lines_stay_and_nothing_else_commands_a_reader() {
        assert_eq!(
            clean_lines("a\tb\n\u{1b}[2J\rx\r\n\n\u{202e}c\u{ad}"),
            "a\tb\n\\u{1b}[2J\\rx\n\n\\u{202e}c\\u{ad}\n"
        );
        assert_eq!(clean_lines(""), "");
        assert_eq!(first_line("\n \u{1b}one\u{2066} 1 \ntwo"), "one 1");
        assert_eq!(first_line("\n"), "");
    }

    #[test]
    fn words_of_a_shell_are_quoted_where_they_must_be() {
        assert_eq!(quoted("container:seccomp=none"), "container:seccomp=none");
        assert_eq!(quoted("exec:docker run -i it's"), "'exec:docker run -i it'\\''s'");
        assert_eq!(quoted("a;b"), "'a;b'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_message_keeps_what_it_says_about_a_long_text() {
        #[derive(Debug, serde::Deserialize)]
        enum Unit {
            #[serde(rename = "ns")]
            Nanoseconds,
        }
        for unit in ["x", "é\"", "`, expected ", "\u{1b}["] {
            let json = serde_json::to_string(&unit.repeat(100_000)).unwrap();
            let number = serde_json::from_str::<u8>(&json).unwrap_err().to_string();
            let variant = serde_json::from_str::<Unit>(&json).unwrap_err().to_string();
            for (message, expected) in
                [(number, ", expected u8 at line 1"), (variant, ", expected `ns` at line 1")]
            {
                let said = shorten(&message);
                assert!(said.chars().count() < 300, "{said}");
                assert!(said.contains("…") && said.contains(expected), "{said}");
                assert!(!said.contains('\u{1b}'));
            }
        }
        let short = "missing field `samples` at line 1 column 7";
        assert_eq!(shorten(short), short);
        assert!(matches!(serde_json::from_str("\"ns\""), Ok(Unit::Nanoseconds)));
    }

    #[test]
    fn an_error_loses_its_number_and_nothing_else() {
        assert_eq!(plainly(&io::Error::from_raw_os_error(28)), "No space left on device");
        assert_eq!(plainly(&io::Error::other("odd (os error")), "odd (os error");
    }

    #[test]
    fn a_process_that_is_refused_names_the_limits() {
        let refused = io::Error::from_raw_os_error(11);
        assert!(said_by("fork(2)", &refused).contains("pids.max"));
        assert_eq!(said_by("mlock(2)", &refused), "Resource temporarily unavailable");
        assert_eq!(said_by("fork(2)", &io::Error::from_raw_os_error(12)), "Cannot allocate memory");
    }
}
