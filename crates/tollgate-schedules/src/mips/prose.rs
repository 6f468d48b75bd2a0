//! Recognises text around a listing on a page: sentences, page numbers, and line numbers. A line with an operand of the
//! machine is never prose, but an instruction or a misspelt one.

use super::assembler::is_mnemonic;
use super::lines::is_word;
use super::register::Register;

/// Fewer consecutive words are a misspelt instruction, unless they are written as a sentence.
const SENTENCE: usize = 3;

pub(super) fn is_prose(line: &str) -> bool {
    let line = line.trim();
    // A dot begins a directive, an ellipsis is part of a sentence.
    if line.is_empty() || (line.starts_with('.') && !line.starts_with("..")) || has_operands(line) {
        return false;
    }
    let rest = without_labels(line);
    let mut words = rest.split_whitespace();
    let Some(first) = words.next() else { return false };
    let number = 1 + words.count();
    if is_word(first) {
        return false;
    }
    if number == 1 && first.bytes().all(|byte| byte.is_ascii_digit()) {
        return rest.len() == line.len();
    }
    if is_mnemonic(first) {
        // `move` and `or` are also English words, but an instruction has fewer operands that name nothing of the machine.
        number > SENTENCE && !names_register(line)
    } else if number > SENTENCE {
        true
    } else {
        let is_sentence = first.starts_with(|c: char| c.is_ascii_uppercase()) || line.ends_with('.');
        (number == SENTENCE || is_sentence) && !names_register(line)
    }
}

pub(super) fn without_number(line: &str) -> &str {
    let trimmed = line.trim_start();
    let Some((number, rest)) = trimmed.split_once(char::is_whitespace) else { return line };
    let number = number.trim_end_matches(['.', ')']);
    let is_number =
        !number.is_empty() && number.len() <= 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    let first = without_labels(rest.trim()).split_whitespace().next().unwrap_or_default();
    let is_code = is_mnemonic(first.trim_start_matches('.'))
        || is_word(first)
        || first.is_empty() && rest.trim().ends_with(':');
    if is_number && is_code { rest } else { line }
}

/// Changes `.ll` and `.sc` to `ll` and `sc`: instructions that an old assembler lacked are written like directives.
pub(super) fn without_dot(line: &str) -> Option<String> {
    let rest = without_labels(line.trim());
    let word = rest.split_whitespace().next()?;
    let bare = word.strip_prefix('.').filter(|bare| *bare != "word" && is_mnemonic(bare))?;
    Some(line.replacen(word, bare, 1))
}

fn without_labels(line: &str) -> &str {
    let mut rest = line;
    while let Some((label, behind)) = rest.split_once(':') {
        if label.is_empty() || label.trim_end().contains(char::is_whitespace) {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}

/// Returns whether it has operands like an instruction: `v0,(a0)`, `k1,a0`, `%hi(preempted)`.
fn has_operands(line: &str) -> bool {
    line.split_whitespace().any(|word| {
        let of_memory = word.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let is_list = word.trim_end_matches(',').contains(',')
            && word.split(',').any(|one| Register::named(one).is_some());
        is_list
            || of_memory.is_some_and(|inner| Register::named(inner).is_some())
            || word.contains("%hi(")
            || word.contains("%lo(")
    })
}

/// Returns whether one of its words is a register. `zero` is also an English word.
fn names_register(line: &str) -> bool {
    line.split([' ', '\t', ',']).any(|word| word != "zero" && Register::named(word).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_page_numbers_are_prose() {
        for line in [
            "The routine returns zero if the lock was free.",
            "Note: a lock that is held is not taken",
            "                       4",
            "or both of them hold the lock at once.",
            "move on to the next page then",
            "Acknowledgements",
            "The register k1 holds the address of the lock, or zero.",
            "...",
            "see below.",
        ] {
            assert!(is_prose(line), "{line}");
        }
    }

    #[test]
    fn code_and_what_is_nearly_code_is_not() {
        for line in [
            "",
            "tst: lw v0,(a0)",
            "1:",
            "start:",
            "1: jr ra",
            "nop",
            "lwx v0,(a0)",
            "jump 1f",
            "b 1b",
            "foo",
            ".processes 2",
            ".word 0x0080d821",
            "0080d821",
            "move k1 to a0",
            "lui t0,%hi(preempted)",
            "1: nop",
        ] {
            assert!(!is_prose(line), "{line}");
        }
    }

    #[test]
    fn a_number_before_code_is_that_of_a_line() {
        for (line, code) in [
            ("1  tst: lw v0,(a0)", " tst: lw v0,(a0)"),
            (" 12. 1: jr ra", "1: jr ra"),
            ("3) nop", "nop"),
            ("7 start:", "start:"),
            ("1: jr ra", "1: jr ra"),
            ("4 processes wait", "4 processes wait"),
        ] {
            assert_eq!(without_number(line), code, "{line}");
        }
    }

    #[test]
    fn an_instruction_may_be_written_as_a_directive() {
        assert_eq!(without_dot("0: .ll v0,(a0)").as_deref(), Some("0: ll v0,(a0)"));
        assert_eq!(without_dot(".word 0x0080d821"), None);
        assert_eq!(without_dot(".kernel k1=set"), None);
    }
}
