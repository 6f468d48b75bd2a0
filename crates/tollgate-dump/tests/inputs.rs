//! Generated inputs: for any bytes, reading and joining ends soon, with sound results.
//!
//! `TOLLGATE_FUZZ_INPUTS` sets their number; ten million take minutes in release:
//! `TOLLGATE_FUZZ_INPUTS=10000000 cargo test --release -p tollgate-dump --test all -- inputs:: --nocapture`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::time::Duration;

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use tollgate_dump::{FORMATS, MAX_BYTES, MAX_LINE, MAX_LINES, MAX_PIECES, MAX_STATES, fuzz, join, read};

const DUMPS: [&str; 12] = [
    include_str!("dumps/article-ja.txt"),
    include_str!("dumps/kd-three-systems.txt"),
    include_str!("dumps/kd-windows-7-x64.txt"),
    include_str!("dumps/qemu-linux-64.txt"),
    include_str!("dumps/qemu-linux-32.txt"),
    include_str!("dumps/bochs.txt"),
    include_str!("dumps/bochs-long.txt"),
    include_str!("dumps/gdb.txt"),
    include_str!("dumps/head_64.txt"),
    include_str!("corpus/qemu-bios.txt"),
    include_str!("corpus/kd-pcr-64.txt"),
    include_str!("corpus/oops-i386-2.6.18.txt"),
];

/// A pseudorandom sequence (Marsaglia, "Xorshift RNGs", 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn choose<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Returns the parts of inputs: the lines of whole sessions and the examples of all formats.
fn lines() -> Vec<&'static str> {
    let sessions = DUMPS.iter().flat_map(|text| text.lines());
    sessions.chain(FORMATS.iter().map(|spec| spec.example)).collect()
}

/// Makes a few lines, some of them damaged.
fn input(numbers: &mut Numbers, lines: &[&str], text: &mut Vec<u8>) {
    text.clear();
    match numbers.below(8) {
        0 => text.extend((0..numbers.below(64)).map(|_| numbers.next() as u8)),
        1 => {
            const SIGNS: &[u8] = b"0123456789abcdefx`'_-:=[]()<>?|*+@., \t\r\n\\#;\x1b\xff\xfe";
            text.extend((0..numbers.below(96)).map(|_| SIGNS[numbers.below(SIGNS.len())]));
        }
        2 => {
            // Consecutive lines.
            let first = numbers.below(lines.len());
            for line in lines.iter().skip(first).take(1 + numbers.below(12)) {
                text.extend_from_slice(line.as_bytes());
                text.push(b'\n');
            }
        }
        _ => {
            for _ in 0..=numbers.below(4) {
                text.extend_from_slice(numbers.choose(lines).as_bytes());
                text.push(b'\n');
            }
        }
    }
    for _ in 0..numbers.below(6) {
        spoil(numbers, lines, text);
    }
}

fn spoil(numbers: &mut Numbers, lines: &[&str], text: &mut Vec<u8>) {
    let at = numbers.below(text.len() + 1);
    match numbers.below(7) {
        0 => text.truncate(at),
        1 => text.insert(at, numbers.next() as u8),
        2 if at < text.len() => {
            text.remove(at);
        }
        3 if at < text.len() => text[at] ^= 1 << numbers.below(8),
        4 if at < text.len() => text[at] = b"0123456789abcdef"[numbers.below(16)],
        5 => {
            let other = numbers.choose(lines).as_bytes();
            let part = &other[numbers.below(other.len() + 1)..];
            text.splice(at..at, part.iter().copied());
        }
        _ if at < text.len() => {
            let end = (at + 1 + numbers.below(8)).min(text.len());
            text.drain(at..end);
        }
        _ => {}
    }
}

#[test]
fn spoiled_sessions_are_taken() {
    let count = std::env::var("TOLLGATE_FUZZ_INPUTS").ok().map(|count| count.parse::<u64>().unwrap());
    let count = count.unwrap_or(10_000);
    let lines = lines();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ count);
    let (mut text, mut found) = (Vec::new(), 0);
    for _ in 0..count {
        input(&mut numbers, &lines, &mut text);
        found += fuzz(&text);
    }
    assert!(found as u64 > count, "nothing is found in inputs that are hardly spoiled");
}

/// Makes lines of all formats, each with other numbers.
fn many_lines(length: usize) -> Vec<u8> {
    let lines = lines();
    let mut numbers = Numbers(1);
    let mut text = Vec::with_capacity(length + 100);
    while text.len() < length {
        for &byte in numbers.choose(&lines).as_bytes() {
            let is_turned = byte.is_ascii_digit() && numbers.below(8) == 0;
            text.push(if is_turned { b'0' + numbers.below(10) as u8 } else { byte });
        }
        text.push(b'\n');
    }
    text
}

#[test]
fn five_megabytes_are_read_whole() {
    // Without optimisation, a tenth.
    let length = if cfg!(debug_assertions) { 500_000 } else { 5_000_000 };
    let text = many_lines(length);
    let dump = read(&text, None);
    assert_eq!((dump.cut, dump.lines.total), (None, text.iter().filter(|&&byte| byte == b'\n').count()));
    let session = join(&dump, None);
    assert!(!session.states.is_empty() && session.states.len() <= MAX_STATES);
}

#[test]
fn reading_takes_no_square_of_the_text() {
    // A step for each pair of bytes would take a minute for each of these lines.
    let length = 1 << 18;
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let begin = used();
    for line in [
        "=",
        ":",
        " ",
        ">",
        "\n",
        "0",
        "0 ",
        "0x",
        "0x00 ",
        "00 ",
        "[",
        "_K",
        "msr[",
        "GDT[",
        "+",
        "a=",
        "a:",
        "\\x00",
        "\u{1b}[",
        "-",
        "|",
        "<",
        "(KINTERRUPT ",
        "0: kd>\n",
        "0: kd> r\n1: kd> r\n",
        "Windows XP\nCPU#1\nCPU#2\n",
        "idtr=8003f400\n",
        "idtr=8003f400\nidtr=8003f500\n",
        "idtr=8003f400\nThis is some prose.\nmsr[174] = 00000000`00000008\n",
        "\u{25a0} a\nidtr=8003f400\n",
        "<a ",
        "<br>&gt;",
        "8003f570  00\n",
        "dt _KTSS 0\n+0x004 Esp0 : 1\n",
        "cs: ",
        "R8 =",
        ".quad 0,",
        "db 1,",
        "00000000  00  |.|\n",
        "0028 80042000 000020ab TSS32 Busy 0 Nb By P  Nl 0000008b\n",
        "!",
        "tr=28 ",
        "あ",
        "\u{a0}",
    ] {
        let text: Vec<u8> = line.bytes().cycle().take(length).collect();
        let dump = read(&text, None);
        let pieces = dump.pieces.len();
        let session = join(&dump, None);
        assert!(used() - begin < Duration::from_secs(100), "after {line:?}");
        assert!(pieces <= 2 * MAX_PIECES, "{line:?} gives {pieces} pieces");
        assert!(session.states.len() <= MAX_STATES);
    }
}

#[test]
fn the_promised_limits_hold_and_the_line_is_named() {
    let row = "tr=28\n";
    let dump = read(row.repeat(MAX_PIECES + 10).as_bytes(), None);
    assert_eq!((dump.pieces.len(), dump.cut), (MAX_PIECES, Some(MAX_PIECES + 1)));
    assert_eq!(dump.lines.total, MAX_PIECES);
    assert_eq!(read(row.as_bytes(), None).cut, None);
    let dump = read(&vec![b'\n'; MAX_LINES + 10], None);
    assert_eq!((dump.lines.total, dump.cut), (MAX_LINES, Some(MAX_LINES + 1)));
    if !cfg!(debug_assertions) {
        let line = format!("{}\n", "0".repeat(MAX_LINE));
        let dump = read(line.repeat(2 * MAX_BYTES / MAX_LINE + 2).as_bytes(), None);
        assert_eq!(dump.cut, Some(2 * MAX_BYTES / MAX_LINE + 1));
    }
    let systems: String = (0..MAX_STATES + 3).map(|number| format!("idtr={:08x}\n\n", number * 16)).collect();
    let session = join(&read(systems.as_bytes(), None), None);
    assert_eq!((session.states.len(), session.cut), (MAX_STATES, Some(2 * MAX_STATES + 1)));
}

#[test]
fn a_line_without_end_is_read_in_part_and_said_to_be() {
    for text in [vec![b'0'; 3 << 20], b"00 ".repeat(1 << 20)] {
        let dump = read(&text, None);
        assert_eq!((dump.pieces.len(), dump.complaints.len()), (1, 1));
        assert_eq!(
            dump.complaints[0].wrong.to_string(),
            "the line is longer than 1048576 bytes, and the rest of it was not read"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_taken(bytes in any::<Vec<u8>>()) {
        fuzz(&bytes);
    }

    #[test]
    fn any_text_is_taken_as_any_format(text in "([ -~\\n\\t`]|0x|[0-9a-f]{2,8} ){0,200}", format in 0..FORMATS.len()) {
        let dump = read(text.as_bytes(), Some(FORMATS[format].format));
        let lines = dump.lines;
        prop_assert_eq!(lines.total, lines.understood + lines.empty + lines.foreign);
        prop_assert!(dump.pieces.iter().all(|piece| (1..=lines.total).contains(&piece.line)));
        prop_assert!(dump.pieces.is_sorted_by_key(|piece| piece.block));
        join(&dump, None);
    }

    #[test]
    fn foreign_text_around_it_changes_nothing(
        before in "[ぁ-ん。、 ]{0,40}", after in "[ぁ-ん。、 ]{0,40}", dump in 0..DUMPS.len(),
    ) {
        let text = format!("{before}\n{}\n{after}\n", DUMPS[dump]);
        let strip = |text: &str| {
            let mut pieces = read(text.as_bytes(), None).pieces;
            pieces.iter_mut().for_each(|piece| piece.line = 0);
            pieces
        };
        prop_assert_eq!(strip(&text), strip(DUMPS[dump]));
    }
}
