//! The input: arguments, files, standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use tollgate_model::bounded;

use crate::failure::{Failure, plainly};

/// The limit of all inputs together: tables of a hundred machines. A text of this length is decoded in a few seconds.
const MAX_BYTES: u64 = 32 << 20;

/// All named inputs, one after the other: bytes in hexadecimal, and the text of files and of standard input. Only standard input
/// if nothing was named.
/// Fails if a file cannot be read, or if nothing is named and standard input is a terminal.
pub fn read(named: &[String]) -> Result<Vec<u8>, Failure> {
    if named.is_empty() {
        return if io::stdin().is_terminal() {
            Err(Failure::input(
                "nothing to decode: give bytes in hexadecimal or a file, or paste into standard input",
            ))
        } else {
            standard_input(MAX_BYTES)
        };
    }
    let mut text = Vec::new();
    let mut was_text = true;
    for name in named {
        let is_text = is_bytes(name);
        // Words of one argument list form one line; a file begins a new line.
        if !text.is_empty() {
            text.push(if is_text && was_text { b' ' } else { b'\n' });
        }
        was_text = is_text;
        let left = MAX_BYTES.saturating_sub(text.len() as u64);
        match name.as_str() {
            "-" => text.extend(standard_input(left)?),
            _ if is_text => text.extend_from_slice(name.as_bytes()),
            _ => text.extend(file(name, left)?),
        }
    }
    Ok(text)
}

/// Whether an argument is bytes: it is not a file, and has only hexadecimal digits and separators.
fn is_bytes(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_hexdigit() || c.is_ascii_whitespace() || "xX=:`,;-_hH[]".contains(c);
    name != "-"
        && !Path::new(name).exists()
        && name.contains(|c: char| c.is_ascii_hexdigit())
        && name.chars().all(fits)
}

fn standard_input(most: u64) -> Result<Vec<u8>, Failure> {
    whole(io::stdin().lock(), "standard input", most)
}

fn file(name: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let file = File::open(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::input(format!(
            "{name}: neither bytes in hexadecimal, such as ffff0000009bcf00, nor a file that exists"
        )),
        _ => Failure::input(format!("{name}: {}", plainly(&error))),
    })?;
    whole(file, name, most)
}

fn whole(input: impl Read, name: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let read = bounded::whole(input, most);
    read.map_err(|error| Failure::input(format!("{name}: {}", plainly(&error))))?.ok_or_else(|| {
        Failure::input(format!(
            "{name}: `decode` reads at most {} MiB; keep only the tables and registers that a debugger printed",
            MAX_BYTES >> 20
        ))
    })
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

    #[test]
    fn all_inputs_together_have_a_bound() {
        let zeros = || "/dev/zero".to_owned();
        for named in [vec![zeros()], vec!["ff".to_owned(), zeros()]] {
            assert!(matches!(read(&named), Err(Failure::Input(why)) if why.contains("at most 32 MiB")));
        }
        let half = tempfile::NamedTempFile::new().expect("a file");
        half.as_file().set_len(MAX_BYTES / 2).expect("a hole");
        let half = || half.path().display().to_string();
        assert_eq!(read(&[half()]).expect("fits").len() as u64, MAX_BYTES / 2);
        assert!(read(&[half(), half()]).is_err(), "the line between them is one byte too many");
    }
}
