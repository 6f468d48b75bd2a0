//! Environments as the user calls them.

/// The name by which an environment is called, and its own name: `old=vm:exact` is called `old`, others by their own name.
pub fn named(given: &str) -> (&str, &str) {
    /// Most characters that fit in a table's column.
    const LONGEST: usize = 32;
    // Names have a colon before the first equals sign.
    let is_label = |label: &str| {
        let is_of_it = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        (1..=LONGEST).contains(&label.len()) && label.chars().all(is_of_it)
    };
    match given.split_once('=') {
        Some((label, name)) if is_label(label) => (label, name),
        _ => (given, given),
    }
}
