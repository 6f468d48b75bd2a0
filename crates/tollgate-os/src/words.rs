//! Words of a command line, split as a shell splits them, without its expansions (Shell Command Language 2.2 of POSIX).

/// The unfinished construct at the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// Text within `'`.
    #[error("a single quote (') is not closed")]
    Single,
    /// Text within `"`.
    #[error("a double quote (\") is not closed")]
    Double,
    /// A backslash at the end.
    #[error("a backslash ends the command: write \\\\ for one")]
    Backslash,
}

/// Splits at blanks. Within single quotes every character stands for itself; within double quotes `\"`, `\\`, `\$` and
/// `` \` `` stand for the second character; elsewhere a backslash makes the next character literal. A backslash at the end of
/// a line continues it. There are no comments.
///
/// # Errors
/// The line ends within a quote or after a backslash.
pub fn split(line: &str) -> Result<Vec<String>, Unfinished> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => single(&mut rest, word.get_or_insert_default())?,
            '"' => double(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next().ok_or(Unfinished::Backslash)? {
                '\n' => {}
                plain => word.get_or_insert_default().push(plain),
            },
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

fn single(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), Unfinished> {
    loop {
        match rest.next().ok_or(Unfinished::Single)? {
            '\'' => return Ok(()),
            plain => word.push(plain),
        }
    }
}

fn double(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), Unfinished> {
    let mut next = || rest.next().ok_or(Unfinished::Double);
    loop {
        match next()? {
            '"' => return Ok(()),
            '\\' => match next()? {
                plain @ ('"' | '\\' | '$' | '`') => word.push(plain),
                '\n' => {}
                other => word.extend(['\\', other]),
            },
            plain => word.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Unfinished, split};

    #[test]
    fn words_are_those_of_a_shell() {
        let of = |line| split(line).unwrap();
        assert_eq!(of("  nice  -n 5 "), ["nice", "-n", "5"]);
        assert_eq!(
            of(r#"sh -c 'exec "$0" "$@"' a\ b "" '' "x\"\\\a$y""#),
            ["sh", "-c", "exec \"$0\" \"$@\"", "a b", "", "", "x\"\\\\a$y"]
        );
        assert_eq!(of("a'b'\"c\"d"), ["abcd"]);
        assert_eq!(of("grep #1 \\\n file \"a\\\nb\""), ["grep", "#1", "file", "ab"]);
        assert!(of(" ").is_empty());
        for (open, why) in [
            ("'a", Unfinished::Single),
            ("\"a", Unfinished::Double),
            ("\"a\\", Unfinished::Double),
            ("a\\", Unfinished::Backslash),
        ] {
            assert_eq!(split(open), Err(why));
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
