use thiserror::Error;

use crate::subject::Subject;
use crate::{mips, tso};

/// Why a text is not a program, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnError {
    /// An error in a program for the machine of the published programs.
    #[error(transparent)]
    Mips(#[from] mips::TextError),
    /// An error in a program for processors with store buffers, or in a litmus test.
    #[error(transparent)]
    Tso(#[from] tso::TextError),
}

/// Reads a program: a litmus test of herd7, a lock on processors with store buffers, or a `tst()` for MIPS.
///
/// # Errors
/// The first wrong line, and a correct form.
pub fn from_text(file: &str, text: &str) -> Result<Box<dyn Subject>, OwnError> {
    if tso::herd::is_litmus(file, text) {
        Ok(tso::herd::from_text(file, text)?)
    } else if is_for_x86(text) {
        Ok(tso::from_text(file, text)?)
    } else {
        Ok(mips::from_text(file, text)?)
    }
}

/// Returns whether a program is for x86: `.machine` says so, or more of its lines are x86 than MIPS.
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
