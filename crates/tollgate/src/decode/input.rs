//! The input: arguments, files, standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use crate::failure::{Failure, plainly};

/// The most that is read. A text of this length is decoded in a few seconds.
const MAX_BYTES: u64 = 256 << 20;

/// All named inputs, one after the other: bytes in hexadecimal, and the text of files and of standard input. Standard
/// input alone where nothing was named.
///
/// # Errors
/// A file that cannot be read; nothing named where standard input is a terminal.
pub fn read(named: &[String]) -> Result<Vec<u8>, Failure> {
    if named.is_empty() {
        return match io::stdin().is_terminal() {
            true => Err(Failure::input(
                "nothing to decode: name bytes in hexadecimal, a file, or paste into standard input",
            )),
            false => standard_input(),
        };
    }
    let mut text = Vec::new();
    let mut was_text = true;
    for name in named {
        let is_text = is_bytes(name);
        // Words of one argument list belong to one line; a file begins on a line of its own.
        if !text.is_empty() {
            text.push(if is_text && was_text { b' ' } else { b'\n' });
        }
        was_text = is_text;
        match name.as_str() {
            "-" => text.extend(standard_input()?),
            _ if is_text => text.extend_from_slice(name.as_bytes()),
            _ => text.extend(file(name)?),
        }
    }
    Ok(text)
}

/// Whether an argument is bytes: it is no file, and has only hexadecimal digits and separators.
fn is_bytes(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_hexdigit() || c.is_ascii_whitespace() || "xX=:`,;-_hH[]".contains(c);
    name != "-"
        && !Path::new(name).exists()
        && name.contains(|c: char| c.is_ascii_hexdigit())
        && name.chars().all(fits)
}

fn standard_input() -> Result<Vec<u8>, Failure> {
    whole(io::stdin().lock(), "standard input")
}

fn file(name: &str) -> Result<Vec<u8>, Failure> {
    let file = File::open(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::input(format!(
            "{name}: neither bytes in hexadecimal, such as ffff0000009bcf00, nor a file that exists"
        )),
        _ => Failure::input(format!("{name}: {}", plainly(&error))),
    })?;
    whole(file, name)
}

fn whole(input: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    input
        .take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| Failure::input(format!("{name}: {}", plainly(&error))))?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(Failure::input(format!("{name}: more than {} MiB is not read at once", MAX_BYTES >> 20))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_distinguished_from_files() {
        for bytes in ["ffff0000009bcf00", "0x0000ffff", "c0000081=00230010`00000000", "ff ff"] {
            assert!(is_bytes(bytes), "{bytes}");
        }
        for other in ["session.txt", "-", "", "Cargo.toml", "xx", "/dev/null", "=:"] {
            assert!(!is_bytes(other), "{other}");
        }
    }

    #[test]
    fn words_stay_on_one_line() {
        let text = read(&["ffff0000".to_owned(), "009bcf00".to_owned()]).expect("bytes");
        assert_eq!(text, b"ffff0000 009bcf00");
        assert!(read(&["no-such-file.txt".to_owned()]).is_err());
    }
}
