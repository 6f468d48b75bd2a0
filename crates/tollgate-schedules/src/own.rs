//! A program of the user's own, for whichever machine it is.

use thiserror::Error;

use crate::subject::Subject;
use crate::{mips, tso};

/// A text that is no program: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnError {
    /// For the machine that the published programs were made for.
    #[error(transparent)]
    Mips(#[from] mips::TextError),
    /// For processors with store buffers, or a litmus test.
    #[error(transparent)]
    Tso(#[from] tso::TextError),
}

/// The program of a file: a litmus test of herd7, a lock on processors with store buffers, or a `tst()` for MIPS.
///
/// # Errors
/// The first wrong line, and a right one.
pub fn from_text(file: &str, text: &str) -> Result<Box<dyn Subject>, OwnError> {
    if tso::herd::is_litmus(file, text) {
        Ok(tso::herd::from_text(file, text)?)
    } else if is_for_x86(text) {
        Ok(tso::from_text(file, text)?)
    } else {
        Ok(mips::from_text(file, text)?)
    }
}

/// Is a program one for x86? It says so in `.machine`, or more of its lines are of that language than of the other.
fn is_for_x86(text: &str) -> bool {
    let (mut x86, mut mips) = (0, 0);
    for line in text.lines().map(tso::code) {
        if let Some(machine) = line.strip_prefix(".machine") {
            return machine.trim() == "x86";
        }
        let instruction = line.rsplit(':').next().unwrap_or(line).trim();
        let word = instruction.split_whitespace().next().unwrap_or("");
        match (tso::is_line(instruction), mips::is_mnemonic(word)) {
            (true, false) => x86 += 1,
            (false, true) => mips += 1,
            _ => {}
        }
    }
    x86 > mips || tso::is_pseudocode(text) || tso::listing(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_tells_the_machine() {
        for x86 in [
            "x = 1",
            "a: mov eax,1\nnop",
            "critical section",
            ".machine x86\njr ra",
            " 3  l: if x != 1 goto l",
        ] {
            assert!(is_for_x86(x86), "{x86}");
        }
        for mips in
            ["", "nop", "1: jr ra\nnop", "li t0,1 // x = 1", ".kernel k1=set\n", ".machine mips\nmov eax,1"]
        {
            assert!(!is_for_x86(mips), "{mips}");
        }
    }
}
