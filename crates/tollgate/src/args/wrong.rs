//! Words that do not form a command line of this program.

/// clap's message in one line: the fault and its tips, without the usage that `--help` has.
pub fn one_line(message: &str) -> String {
    let lines =
        message.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let mut text = String::new();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.strip_prefix("error: ").unwrap_or(line);
        let (joint, line) = match line.strip_prefix("tip: ") {
            Some(tip) => ("; ", question(tip)),
            None => (" ", line.to_owned()),
        };
        if !text.is_empty() {
            text.push_str(joint);
        }
        text.push_str(&line);
    }
    text
}

/// `did you mean 'list'?` for clap's `a similar subcommand exists: 'list'`; other tips unchanged.
fn question(tip: &str) -> String {
    match tip.split_once(": ") {
        Some((similar, names)) if similar.contains("similar") => format!("did you mean {names}?"),
        _ => tip.to_owned(),
    }
}
