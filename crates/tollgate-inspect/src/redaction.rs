//! The parts of files that a capture leaves out: private text that no fact is read from.

use crate::kcore;

const FIRST_SYMBOLS: usize = 16;

pub(crate) fn redacted(path: &str, bytes: &[u8]) -> Vec<u8> {
    match path {
        "/proc/cmdline" => before_init(bytes).to_vec(),
        "/proc/self/status" => without_keys(bytes, &["Name", "Groups"]),
        "/proc/kallsyms" => first_symbols(bytes),
        "/proc/kcore" => kcore::abridged(bytes),
        "/proc/timer_list" => with_words(bytes, b".nohz"),
        _ if path.ends_with("/environ") => container_variables(bytes),
        _ => bytes.to_vec(),
    }
}

/// Without the arguments for init.
fn before_init(line: &[u8]) -> &[u8] {
    const END: &[u8] = b" -- ";
    let end = line.windows(END.len()).position(|window| window == END);
    &line[..end.unwrap_or(line.len())]
}

fn with_words(text: &[u8], word: &[u8]) -> Vec<u8> {
    let kept = |line: &&[u8]| line.trim_ascii_start().starts_with(word);
    text.split_inclusive(|&byte| byte == b'\n').filter(kept).flatten().copied().collect()
}

fn without_keys(text: &[u8], keys: &[&str]) -> Vec<u8> {
    let discarded = |line: &[u8]| {
        keys.iter().any(|key| line.strip_prefix(key.as_bytes()).is_some_and(|rest| rest.starts_with(b":")))
    };
    text.split_inclusive(|&byte| byte == b'\n').filter(|line| !discarded(line)).flatten().copied().collect()
}

/// Only `container=`: other variables contain secrets.
fn container_variables(environ: &[u8]) -> Vec<u8> {
    let kept = environ.split(|&byte| byte == 0).filter(|variable| variable.starts_with(b"container="));
    kept.flat_map(|variable| variable.iter().copied().chain([0])).collect()
}

/// The first lines, and `_text` and `_stext` if these come later.
fn first_symbols(table: &[u8]) -> Vec<u8> {
    let is_start = |line: &[u8]| line.ends_with(b" _text") || line.ends_with(b" _stext");
    let lines: Vec<&[u8]> = table.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    let starts = lines.iter().filter(|line| is_start(line)).copied();
    let mut kept: Vec<&[u8]> = lines.iter().take(FIRST_SYMBOLS).copied().collect();
    for line in starts {
        if !kept.contains(&line) {
            kept.push(line);
        }
    }
    kept.into_iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_stay_where_they_are() {
        let kept = |path: &str, text: &str| String::from_utf8(redacted(path, text.as_bytes())).unwrap();
        assert_eq!(kept("/proc/1/environ", "A=secret\0container=lxc\0B=x"), "container=lxc\0");
        assert_eq!(kept("/proc/self/environ", "A=secret"), "");
        assert_eq!(kept("/proc/cmdline", "quiet -- --token x\n"), "quiet");
        assert_eq!(kept("/proc/cmdline", "quiet\n"), "quiet\n");
        assert_eq!(
            kept("/proc/self/status", "Name:\tx\nUid:\t0\nGroups:\t7\nNgid:\t0\n"),
            "Uid:\t0\nNgid:\t0\n"
        );
        assert_eq!(kept("/proc/self/mountinfo", "as it is"), "as it is");
    }

    #[test]
    fn of_the_symbols_the_first_are_kept() {
        let many: String = (0..200).map(|n| format!("{n:016x} A percpu_{n}\n")).collect();
        let table =
            format!("{many}ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000010 T x\n");
        let kept = String::from_utf8(redacted("/proc/kallsyms", table.as_bytes())).unwrap();
        assert_eq!(kept.lines().count(), FIRST_SYMBOLS + 2);
        assert!(kept.ends_with("T _stext\nffffffff81000000 T _text\n"), "{kept}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for path in ["/proc/cmdline", "/proc/self/status", "/proc/kallsyms", "/proc/kcore", "/proc/timer_list", "/x"] {
                let once = redacted(path, &bytes);
                prop_assert!(once.len() <= bytes.len() + 1, "{}", path);
                prop_assert_eq!(redacted(path, &once), once.clone());
            }
        }
    }
}
