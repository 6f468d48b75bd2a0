//! Answers: a value with its source, or one of three reasons why there is none; and their conversion to facts.

use std::io;

use tollgate_model::text::clean;
use tollgate_model::{Fact, FactValue, Unknown};

/// Longest text that can be a fact's value; the longest real one is the kernel command line, 2048 bytes.
const MAX_TEXT: usize = 4096;
/// Longest list of texts, in bytes.
const MAX_LIST: usize = 1 << 16;

/// A value and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The value that was read.
    pub value: T,
    /// A path, or a path and an item in it; or a call or an instruction.
    pub source: String,
}

pub(crate) type Answer<T> = Result<Found<T>, Unknown>;

pub(crate) fn found<T>(value: T, source: impl Into<String>) -> Answer<T> {
    Ok(Found { value, source: source.into() })
}

impl<T> Found<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Found<U> {
        Found { value: change(self.value), source: self.source }
    }
}

impl Found<String> {
    /// Looks up `name` in the text; absent if `pick` returns nothing.
    pub(crate) fn part<U>(self, name: &str, pick: impl FnOnce(&str) -> Option<U>) -> Answer<U> {
        match pick(&self.value) {
            Some(value) => found(value, format!("{} {name}", self.source)),
            None => Err(Unknown::Absent(format!("{} has no {name:?}", self.source))),
        }
    }

    /// Parses the text; unreadable, as not being `what`, if `parser` returns nothing.
    pub(crate) fn parse<U>(self, what: &str, parser: impl FnOnce(&str) -> Option<U>) -> Answer<U> {
        match parser(&self.value) {
            Some(value) => found(value, self.source),
            None => {
                let excerpt: String = self.value.chars().take(60).collect();
                Err(Unknown::Unreadable(format!("{}: {excerpt:?} is not {what}", self.source)))
            }
        }
    }
}

/// Converts an answer to a fact: trims texts, escapes control characters, and refuses values that are too large.
pub(crate) fn fact(answer: Answer<impl Into<FactValue>>) -> Fact {
    let found = match answer {
        Ok(found) => found.map(Into::into),
        Err(why) => return unknown(why),
    };
    let source = plain(&found.source);
    match found.value {
        FactValue::Text(text) if text.len() > MAX_TEXT => {
            Fact::unreadable(format!("{source}: longer than {MAX_TEXT} bytes"))
        }
        FactValue::List(items) if items.iter().map(String::len).sum::<usize>() > MAX_LIST => {
            Fact::unreadable(format!("{source}: longer than {MAX_LIST} bytes"))
        }
        FactValue::Real(x) if !x.is_finite() => Fact::unreadable(format!("{source}: {x} is not a number")),
        FactValue::Text(text) => Fact::known(plain(&text), source),
        FactValue::List(items) => {
            Fact::known(items.iter().map(|item| plain(item)).collect::<Vec<_>>(), source)
        }
        value => Fact::known(value, source),
    }
}

pub(crate) fn unknown(why: Unknown) -> Fact {
    match why {
        Unknown::Absent(why) => Fact::absent(plain(&why)),
        Unknown::Refused(why) => Fact::refused(plain(&why)),
        Unknown::Unreadable(why) => Fact::unreadable(plain(&why)),
    }
}

fn plain(text: &str) -> String {
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    clean(trimmed).into_owned()
}

/// Maps an error to one of the three reasons. A file whose feature is off (`/proc/pressure`) is absent too.
pub(crate) fn why(path: &str, error: &io::Error) -> Unknown {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Unknown::Absent(format!("{path} does not exist")),
        Some(libc::ENOTDIR | libc::EOPNOTSUPP) => Unknown::Absent(format!("{path}: {error}")),
        Some(libc::EACCES | libc::EPERM) => Unknown::Refused(format!("{path}: {error}")),
        _ => Unknown::Unreadable(format!("{path}: {error}")),
    }
}

/// Like [`why`], for a call: one that the kernel does not know is absent.
pub(crate) fn why_not(call: &str, errno: i32) -> Unknown {
    let error = io::Error::from_raw_os_error(errno);
    match errno {
        libc::ENOSYS | libc::EINVAL | libc::ENODEV | libc::ENOENT | libc::ENXIO => {
            Unknown::Absent(format!("{call}: {error}"))
        }
        _ => why(call, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer<String> {
        found(text.to_owned(), "a file")
    }

    #[test]
    fn a_fact_is_fit_for_a_terminal() {
        assert_eq!(fact(answer("  quiet\u{1b}[31m\n\0")), Fact::known("quiet\\u{1b}[31m", "a file"));
    }

    #[test]
    fn what_is_too_long_is_no_value() {
        let long = "x".repeat(MAX_TEXT + 1);
        assert!(matches!(fact(answer(&long)), Fact::Unknown { why: Unknown::Unreadable(_) }));
        assert!(matches!(fact(found(vec![long; 20], "a file")), Fact::Unknown { .. }));
    }

    #[test]
    fn what_is_not_finite_is_no_value() {
        assert!(matches!(fact(found(f64::NAN, "a file")), Fact::Unknown { .. }));
    }

    #[test]
    fn errors_are_three_answers() {
        let of = |code| why("/f", &io::Error::from_raw_os_error(code));
        for code in [libc::ENOENT, libc::ENOTDIR, libc::EOPNOTSUPP] {
            assert!(matches!(of(code), Unknown::Absent(_)), "{code}");
        }
        for code in [libc::EACCES, libc::EPERM] {
            assert!(matches!(of(code), Unknown::Refused(_)), "{code}");
            assert!(matches!(why_not("prctl(2)", code), Unknown::Refused(_)), "{code}");
        }
        for code in [libc::EIO, libc::EINVAL, libc::ELOOP, libc::EISDIR] {
            assert!(matches!(of(code), Unknown::Unreadable(_)), "{code}");
        }
        assert!(matches!(why_not("prctl(2)", libc::EINVAL), Unknown::Absent(_)));
    }
}
