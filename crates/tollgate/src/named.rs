//! Environments as the user calls them.

/// What an environment is called, and its name: `old=vm:exact` is called `old`, others as they are named.
pub fn named(given: &str) -> (&str, &str) {
    /// Columns of tables have room for so much.
    const LONGEST: usize = 32;
    // Names have a colon before the first sign of equality.
    let is_label = |label: &str| {
        let is_of_it = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        (1..=LONGEST).contains(&label.len()) && label.chars().all(is_of_it)
    };
    match given.split_once('=') {
        Some((label, name)) if is_label(label) => (label, name),
        _ => (given, given),
    }
}
