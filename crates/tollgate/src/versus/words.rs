//! A command line as words, as a shell without variables would split it (POSIX.1-2017, Shell Command Language, 2.2 Quoting).

/// The words of a line.
///
/// # Errors
/// A quote that is not closed, or a backslash at the end.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                quoted(&mut letters, word, '\'')?;
            }
            '"' => {
                let word = word.get_or_insert_default();
                quoted(&mut letters, word, '"')?;
            }
            '\\' => {
                let next = letters.next().ok_or("it ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Takes the letters up to the closing quote. In double quotes a backslash quotes another one, and a double quote.
fn quoted(letters: &mut std::str::Chars<'_>, word: &mut String, quote: char) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter == quote => return Ok(()),
            '\\' if quote == '"' => match letters.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => word.push(next),
                Some(next) => word.extend(['\\', next]),
                None => break,
            },
            letter => word.push(letter),
        }
    }
    Err(format!("its quote {quote} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_does_it() {
        let of = |line| words(line).expect("words");
        assert_eq!(of("grep -i 'to do' file"), ["grep", "-i", "to do", "file"]);
        assert_eq!(of(r#"a "b \"c\" \n" d\ e ''"#), ["a", r#"b "c" \n"#, "d e", ""]);
        assert_eq!(of("  \t \n"), Vec::<String>::new());
        assert_eq!(of("a'b'\"c\""), ["abc"]);
        assert!(words("a 'b").is_err() && words("a \"b\\").is_err() && words("a\\").is_err());
    }
}
