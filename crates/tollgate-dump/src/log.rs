//! Removes what a log puts before a line of the kernel: the time, the host, the level.
//!
//! - The kernel's own console: `[ 2150.391559]`, `[    C1]`, `<4>`; /dev/kmsg and netconsole: `4,1234,5678901,-;`.
//! - dmesg(1): `[Sat Nov 28 11:00:00 2026]` of `-T`, `[  +0.000012]` of `-d`, `[Nov28 11:00]` of `-e`,
//!   `2026-11-28T11:00:00,123456+00:00` of `--time-format iso`, `kern  :warn  : ` of `-x`.
//! - syslog and journalctl(1): `Nov 28 11:00:00 host kernel: `, `2026-11-28T11:00:00+00:00 host kernel: `,
//!   `1764327600.123456 host kernel: `, `[ 2150.391559] host kernel: `.
//! - A program that logs a serial line: `[2026-11-28 11:00:00] `, `11:00:00.123 `.

const MOST: usize = 6;
/// The last position at which `kernel:` may begin.
const FARTHEST: usize = 120;
const LONGEST: usize = 40;

pub(crate) fn without(line: &str) -> &str {
    let mut text = line;
    for count in 0..MOST {
        match one(text, count > 0) {
            Some(rest) => text = rest.trim_start_matches(' '),
            None => break,
        }
    }
    text
}

/// Skips the first prefix. `is_log`: another one preceded it.
fn one(text: &str, is_log: bool) -> Option<&str> {
    level(text)
        .or_else(|| bracket(text, is_log))
        .or_else(|| record(text))
        .or_else(|| facility(text))
        .or_else(|| name(text, is_log))
        .or_else(|| date(text))
}

fn level(text: &str) -> Option<&str> {
    let (level, rest) = text.strip_prefix('<')?.split_once('>')?;
    (is_number(level) && level.len() <= 3).then_some(rest)
}

fn bracket(text: &str, is_log: bool) -> Option<&str> {
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    let inner = inner.trim_matches(' ');
    let is_mark = || inner.strip_prefix(['C', 'T']).is_some_and(is_number);
    (inner.len() <= LONGEST && (is_seconds(inner) || has_clock(inner) || is_log && is_mark())).then_some(rest)
}

fn record(text: &str) -> Option<&str> {
    let (head, rest) = text.split_once(';').filter(|(head, _)| head.len() <= LONGEST)?;
    let mut fields = head.split(',');
    let is_it = fields.by_ref().take(3).filter(|field| is_number(field)).count() == 3;
    (is_it && fields.next().is_some()).then_some(rest)
}

fn facility(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("kern")?.trim_start_matches(' ').strip_prefix(':')?;
    let (level, rest) = rest.split_once(':')?;
    let level = level.trim_matches(' ');
    ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"].contains(&level).then_some(rest)
}

/// `Nov 28 11:00:00 host kernel: `: before the name a time and a host, or nothing.
fn name(text: &str, is_log: bool) -> Option<&str> {
    const NAME: &str = "kernel:";
    const WORDS: usize = 6;
    let searched = &text.as_bytes()[..text.len().min(FARTHEST)];
    let at = searched.windows(NAME.len()).position(|window| window == NAME.as_bytes())?;
    let before = &text[..at];
    let words = before.split(' ').filter(|word| !word.is_empty()).count();
    let first = before.split(' ').next().unwrap_or_default();
    let is_time = has_clock(before) || is_seconds(first);
    let is_it = words == 0 || words <= WORDS && is_time || words == 1 && is_log;
    (is_it && (words == 0 || before.ends_with(' '))).then_some(&text[at + NAME.len()..])
}

fn date(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once(' ')?;
    let is_date =
        first.len() >= 10 && first.bytes().take(10).enumerate().all(|(at, byte)| is_of_date(at, byte));
    if is_date && first.len() == 10 {
        let (clock, rest) = rest.split_once(' ')?;
        return has_clock(clock).then_some(rest);
    }
    // Bytes separated by colons are not a clock time.
    let is_clock = first.split([':', '.', ',']).all(is_number) && first.matches(':').count() == 2;
    (has_clock(first) && (is_date || is_clock)).then_some(rest)
}

/// Returns whether a byte can be at this position of `2026-11-28`.
fn is_of_date(at: usize, byte: u8) -> bool {
    if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() }
}

fn has_clock(text: &str) -> bool {
    text.as_bytes()
        .windows(5)
        .any(|window| window[2] == b':' && [0, 1, 3, 4].iter().all(|&at| window[at].is_ascii_digit()))
}

fn is_seconds(text: &str) -> bool {
    let text = text.strip_prefix('+').unwrap_or(text);
    text.split_once('.')
        .is_some_and(|(whole, parts)| is_number(whole) && is_number(parts) && parts.len() >= 3)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "CS:  0010 DS: 0000 ES: 0000 CR0: 0000000080050033";

    #[test]
    fn what_stands_before_a_line_is_left_out() {
        for before in [
            "",
            "[ 2150.391559] ",
            "[ 2150.391559][   T28] ",
            "[    0.000000] [    C1] ",
            "<4>[ 2150.391559] ",
            "<1>",
            "4,1234,5678901,-;",
            "6,1234,5678901,-,caller=T28;",
            "[Sat Nov 28 11:00:00 2026] ",
            "[Nov28 11:00] ",
            "[  +0.000012] ",
            "2026-11-28T11:00:00,123456+00:00 ",
            "kern  :warn  : [ 2150.391559] ",
            "kern  :alert : [Sat Nov 28 11:00:00 2026] ",
            "Nov 28 11:00:00 host kernel: ",
            "Nov  8 11:00:00 host.example.org kernel: [ 2150.391559] ",
            "Nov 28 11:00:00.123456 host kernel: ",
            "Sat 2026-11-28 11:00:00 UTC host kernel: ",
            "2026-11-28T11:00:00.123456+00:00 host kernel: [ 2150.391559] ",
            "2026-11-28T11:00:00+0000 host kernel: ",
            "1764327600.123456 host kernel: ",
            "[ 2150.391559] host kernel: ",
            "kernel: [ 2150.391559] ",
            "kernel:[ 2150.391559] ",
            "[2026-11-28 11:00:00] [ 2150.391559] ",
            "2026-11-28 11:00:00.123 ",
            "11:00:00.123 [ 2150.391559] ",
        ] {
            assert_eq!(without(&format!("{before}{LINE}")), LINE, "{before}");
        }
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        for line in [
            "[1] = 0x00af9b000000ffff, // code",
            "[+0x002] Selector         : 0x8 [Type: unsigned short]",
            "[x] CS: 0010",
            "[C1] CS: 0010",
            "The kernel: it has an IDT",
            "12:30 is a time",
            "2e:  808655cd nt!KiSystemService",
            "1,2,3;",
            "kern : of it",
            "00:10:20:30:40:50:60:70 80:90:00:10:20:30:40:50",
            "kernel",
            "é kernel: é",
        ] {
            assert_eq!(without(line), line);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[\\[<0-9:.\\-, a-zé\\]>;]{0,60}(kernel:)?\\PC{0,20}") {
            prop_assert!(text.ends_with(without(&text)));
        }
    }
}
