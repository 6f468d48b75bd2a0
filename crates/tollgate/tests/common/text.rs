//! Text that the program prints, for tests that compare all of a screen or of a sentence.

use super::Home;

/// Its output on 80 columns, after success.
pub fn screen<'a>(home: &Home, arguments: impl IntoIterator<Item = &'a str>) -> String {
    let mut command = home.tollgate(arguments);
    let output = command.env("COLUMNS", "80").assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("text")
}

pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text from here to there; to the end where that does not follow.
pub fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("no {from:?} in\n{text}"));
    let rest = &text[start..];
    &rest[..rest.find(to).unwrap_or(rest.len())]
}

pub fn refusals<'a>(home: &Home, lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().map(|line| format!("{line}\n    {}\n", home.refusal(line.split(' ')))).collect()
}
