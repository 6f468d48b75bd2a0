//! The kernel's release and version: uname(2), or the file that has them.

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine};
use crate::{calls, text::digits};

pub(crate) fn release_text(machine: &Machine) -> Answer<String> {
    let listed = listed(machine, "/proc/sys/kernel/osrelease", release_in);
    machine.or_call(listed, "uname(2) release", || Some(calls::uname()[0].clone()))
}

pub(crate) fn version_text(machine: &Machine) -> Answer<String> {
    let listed = listed(machine, "/proc/sys/kernel/version", version_in);
    machine.or_call(listed, "uname(2) version", || Some(calls::uname()[1].clone()))
}

/// From the file that contains nothing else, or from the banner if a sandbox lacks that file.
fn listed(machine: &Machine, path: &str, part: fn(&str) -> Option<&str>) -> Answer<String> {
    match machine.line(path) {
        Err(Unknown::Absent(_)) => machine
            .line("/proc/version")?
            .parse("a kernel's banner", |banner| part(banner).map(str::to_owned)),
        answer => answer,
    }
}

/// Parses `Linux version RELEASE (builder) (compiler) #1 SMP …`.
fn release_in(banner: &str) -> Option<&str> {
    banner.strip_prefix("Linux version ")?.split_whitespace().next()
}

/// Parses the same banner from the build number on. Text in parentheses may contain another `#`.
fn version_in(banner: &str) -> Option<&str> {
    let mut depth = 0i32;
    let start = banner.find(|c: char| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        c == '#' && depth <= 0
    });
    banner.get(start?..)
}

/// Version and patch level, from a release such as `6.18.44-generic`.
pub(crate) fn release_numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((some_digits(numbers.next()?)?, some_digits(numbers.next()?)?))
}

fn some_digits(text: &str) -> Option<u32> {
    if text.is_empty() { None } else { digits(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banners() {
        let banner =
            "Linux version 6.1.0-9-amd64 (a@b) (gcc (Debian #7) 12.2, GNU ld 2.40) #1 SMP Debian 6.1.27-1";
        assert_eq!(release_in(banner), Some("6.1.0-9-amd64"));
        assert_eq!(version_in(banner), Some("#1 SMP Debian 6.1.27-1"));
        assert_eq!(release_in("Darwin 1"), None);
        assert_eq!(version_in("Linux version 6.1"), None);
    }

    #[test]
    fn releases() {
        assert_eq!(release_numbers("6.18.44-fc"), Some((6, 18)));
        assert_eq!(release_numbers("4.9"), Some((4, 9)));
        for text in ["", "6", "six.1", "6.", "99999999999.1"] {
            assert_eq!(release_numbers(text), None, "{text}");
        }
    }

    takes_any! { text in "\\PC{0,80}|[#() a-zé]{0,60}" => release_in(&text), version_in(&text) }
}
