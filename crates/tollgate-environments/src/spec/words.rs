//! Words of a command line, split as a shell splits them, without its expansions.

/// Splits at blanks. Within single quotes every character stands for itself; within double quotes `\"`, `\\`, `\$` and `` \` `` stand
/// for the second; elsewhere a backslash makes the next character a plain one (Shell Command Language 2.2 of POSIX).
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        if matches!(next, ' ' | '\t' | '\n') {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match next {
            '\'' => loop {
                match rest.next().ok_or("a single quote (') is not closed")? {
                    '\'' => break,
                    plain => word.push(plain),
                }
            },
            '"' => loop {
                match rest.next().ok_or("a double quote (\") is not closed")? {
                    '"' => break,
                    '\\' => match rest.next().ok_or("a double quote (\") is not closed")? {
                        plain @ ('"' | '\\' | '$' | '`') => word.push(plain),
                        other => word.extend(['\\', other]),
                    },
                    plain => word.push(plain),
                }
            },
            '\\' => word.push(rest.next().ok_or("a backslash ends the command: write \\\\ for one")?),
            plain => word.push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split;

    #[test]
    fn words_are_those_of_a_shell() {
        let of = |line| split(line).unwrap();
        assert_eq!(of("  nice  -n 5 "), ["nice", "-n", "5"]);
        assert_eq!(
            of(r#"sh -c 'exec "$0" "$@"' a\ b "" '' "x\"\\\a$y""#),
            ["sh", "-c", "exec \"$0\" \"$@\"", "a b", "", "", "x\"\\\\a$y"]
        );
        assert_eq!(of("a'b'\"c\"d"), ["abcd"]);
        assert!(of(" ").is_empty());
        for open in ["'a", "\"a", "\"a\\", "a\\"] {
            split(open).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in prop::collection::vec("\\PC{0,12}", 0..6)) {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
            prop_assert_eq!(split(&quoted.join(" ")).unwrap(), words);
        }

        #[test]
        fn no_text_panics(text in "[ '\"\\\\a$]{0,20}|.{0,40}") {
            let _ = split(&text);
        }
    }
}
