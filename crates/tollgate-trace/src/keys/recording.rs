//! Keys in a file: bytes that a terminal sent, as recorded by `script --log-in FILE` of util-linux or written by printf(1).

/// The most bytes of a recording.
pub const MOST_BYTES: u64 = 1 << 20;
const ESCAPE: u8 = 0x1b;
/// The longest sequence that a key sends.
const LONGEST: usize = 16;

/// Splits a recording into keys, each as the bytes that a terminal sends. A newline is Enter, which sends a carriage return.
pub fn keys(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = without_frame(bytes);
    let mut keys = Vec::new();
    while !rest.is_empty() {
        let (key, behind) = rest.split_at(length(rest));
        keys.push(if key == b"\n" { b"\r".to_vec() } else { key.to_vec() });
        rest = behind;
    }
    keys
}

/// Removes the lines with which script(1) begins and ends a file.
fn without_frame(bytes: &[u8]) -> &[u8] {
    const END: &[u8] = b"\nScript done on ";
    let mut keys = bytes;
    if keys.starts_with(b"Script started on ") {
        let end = keys.iter().position(|byte| *byte == b'\n').map_or(keys.len(), |at| at + 1);
        keys = &keys[end..];
    }
    match keys.windows(END.len()).rposition(|window| window == END) {
        Some(at) => &keys[..at],
        None => keys,
    }
}

/// The length of the first key: a control sequence (ECMA-48), a keypad or function key (SS3), a UTF-8 character, or a byte.
fn length(bytes: &[u8]) -> usize {
    match bytes {
        [ESCAPE, b'[', rest @ ..] => {
            let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
            rest.iter().take(LONGEST).position(is_final).map_or(1, |at| at + 3)
        }
        // Other bytes after ESC O are Escape and two keys: vi has a command O.
        [ESCAPE, b'O', b'A'..=b'D' | b'F' | b'H' | b'P'..=b'S', ..] => 3,
        [first, ..] => {
            let length = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            let is_character = bytes.get(..length).is_some_and(|key| str::from_utf8(key).is_ok());
            if is_character { length } else { 1 }
        }
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let written = keys("iä\u{1b}[A\u{1b}[15~\u{1b}OB\u{1b}:wq\n".as_bytes());
        let expected = ["i", "ä", "\u{1b}[A", "\u{1b}[15~", "\u{1b}OB", "\u{1b}", ":", "w", "q", "\r"];
        assert_eq!(written, expected.map(|key| key.as_bytes().to_vec()));
    }

    #[test]
    fn what_script_writes_around_them_is_none() {
        let file = b"Script started on 2026-11-26 10:00:00+00:00 [COMMAND=\"vi\"]\n:q\r\nScript done on 2026-11-26\n";
        assert_eq!(keys(file), [b":".to_vec(), b"q".to_vec(), b"\r".to_vec()]);
        assert_eq!(keys(b"Script started on "), Vec::<Vec<u8>>::new());
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(bytes: Vec<u8>) {
            prop_assume!(!bytes.starts_with(b"Script") && !bytes.contains(&b'\n'));
            prop_assert_eq!(keys(&bytes).concat(), bytes);
        }
    }
}
