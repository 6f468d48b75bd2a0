//! Parses strings as strace(1) prints them, and the arguments of execve(2). Pure.

/// Further arguments of a command are left out.
const MOST_ARGUMENTS: usize = 1024;

/// Parses `"/usr/bin/sh", ["sh", "t.sh"], 0x7ffca402cd90 /* 39 vars */`; only the path if no arguments are printed.
pub(super) fn execve(arguments: &str) -> Option<(String, Vec<String>)> {
    let (path, rest) = string(arguments.trim_start())?;
    let mut all = Vec::new();
    let mut rest = rest.trim_start_matches([',', ' ']).strip_prefix('[').unwrap_or("");
    while let Some((argument, after)) = string(rest) {
        if all.len() < MOST_ARGUMENTS {
            all.push(argument);
        }
        match after.strip_prefix(", ") {
            Some(after) => rest = after,
            None => break,
        }
    }
    if rest.starts_with("...") {
        all.push("…".to_owned());
    }
    if all.is_empty() {
        all.push(path.clone());
    }
    Some((path, all))
}

/// Parses a quoted string; returns the rest as well. A truncated string (`"abc"...`) ends with an ellipsis.
fn string(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut bytes = Vec::new();
    let mut at = 0;
    let raw = inner.as_bytes();
    loop {
        match *raw.get(at)? {
            b'"' => break,
            b'\\' => at += escaped(raw.get(at + 1..)?, &mut bytes)?,
            byte => bytes.push(byte),
        }
        at += 1;
    }
    let rest = inner.get(at + 1..)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    match rest.strip_prefix("...") {
        Some(rest) => {
            text.push('…');
            Some((text, rest))
        }
        None => Some((text, rest)),
    }
}

/// Decodes what follows a backslash; returns the number of bytes read.
fn escaped(text: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    let digits = |radix: u32, most: usize, from: &[u8]| -> (usize, u32) {
        let taken = from.iter().take(most).map_while(|&byte| char::from(byte).to_digit(radix));
        taken.fold((0, 0), |(count, value), digit| (count + 1, value * radix + digit))
    };
    let plain = match *text.first()? {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'x' => {
            let (count, value) = digits(16, 2, text.get(1..)?);
            bytes.push(value as u8);
            return Some(1 + count);
        }
        b'0'..=b'7' => {
            let (count, value) = digits(8, 3, text);
            bytes.push(value as u8);
            return Some(count);
        }
        other => other,
    };
    bytes.push(plain);
    Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_as_it_was_typed() {
        let of = |text: &str| execve(text).unwrap();
        let (path, all) =
            of(r#""/usr/bin/printf", ["printf", "a\tb\\\"\303\244\x41", ""], 0x7ffca402cd90 /* 39 vars */"#);
        assert_eq!(
            (path.as_str(), all),
            ("/usr/bin/printf", vec!["printf".to_owned(), "a\tb\\\"äA".to_owned(), String::new()])
        );
        assert_eq!(of(r#""/bin/x", ["x", "long"..., ...], 0x1"#).1, ["x", "long…", "…"]);
        assert_eq!(of(r#""/bin/x", 0x7ffe /* 3 args */, 0x1"#).1, ["/bin/x"]);
        for text in ["", "\"", "\"\\", "\"\\x", "NULL", "[\"a\"]"] {
            assert_eq!(execve(text), None, "{text}");
        }
    }

    takes_any! { text in "\\PC{0,40}|[\"\\\\x0-9a, \\[\\].]{0,40}" => execve(&text) }
}
