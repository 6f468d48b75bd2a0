//! Text that the program prints, for tests that compare all of a screen or of a sentence.

use super::Home;

pub fn screen<'a>(home: &Home, arguments: impl IntoIterator<Item = &'a str>) -> String {
    let mut command = home.tollgate(arguments);
    let output = command.env("COLUMNS", "80").assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("text")
}

pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text from `from` to `to`, or to the end if `to` does not follow.
pub fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("no {from:?} in\n{text}"));
    let rest = &text[start..];
    &rest[..rest.find(to).unwrap_or(rest.len())]
}

pub fn refusals<'a>(home: &Home, lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().map(|line| format!("{line}\n    {}\n", home.refusal(line.split(' ')))).collect()
}
