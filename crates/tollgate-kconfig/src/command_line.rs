use crate::areas::AREAS;

/// Parses a kernel command line into its parameters. Those after `--` belong to init and are left out. Double quotes
/// protect white space inside a value: `next_arg` in lib/cmdline.c.
pub fn parameters(command_line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = command_line;
    let words = std::iter::from_fn(move || {
        rest = rest.trim_start();
        let mut quoted = false;
        let end = rest.find(|c: char| {
            quoted ^= c == '"';
            c.is_whitespace() && !quoted
        });
        let (word, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = tail;
        (!word.is_empty()).then_some(word)
    });
    words.take_while(|&word| word != "--").map(|word| match word.split_once('=') {
        Some((name, value)) => (name, Some(value.trim_matches('"'))),
        None => (word, None),
    })
}

/// Returns the last value given to a parameter. `-` and `_` are equivalent in names: `parameq` in kernel/params.c.
pub fn parameter<'a>(command_line: &'a str, name: &str) -> Option<&'a str> {
    let same = |given: &str| given.replace('-', "_") == name;
    parameters(command_line).filter(|(given, _)| same(given)).last().map(|(_, value)| value.unwrap_or(""))
}

/// A parameter of the command line that overrides an option.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overridden {
    /// The option, by its present name.
    pub option: &'static str,
    /// The parameter as it was given, such as `mitigations=off`.
    pub parameter: String,
}

/// Returns the options that a command line overrides.
pub fn overridden(command_line: &str) -> Vec<Overridden> {
    let given: Vec<(&str, Option<&str>)> = parameters(command_line).collect();
    let mut found = Vec::new();
    for entry in AREAS.iter().flat_map(|area| area.entries) {
        for &parameter in entry.parameters {
            let same = |name: &str| name.replace('-', "_") == parameter;
            if let Some((name, value)) = given.iter().rev().find(|(name, _)| same(name)) {
                let parameter = value.map_or((*name).to_owned(), |value| format!("{name}={value}"));
                found.push(Overridden { option: entry.name, parameter });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn command_lines() {
        let line =
            "quiet mitigations=off dyndbg=\"file a.c +p; func b\" preempt=none preempt=full -- preempt=lazy";
        assert_eq!(parameter(line, "mitigations"), Some("off"));
        assert_eq!(parameter(line, "dyndbg"), Some("file a.c +p; func b"));
        assert_eq!(parameter(line, "preempt"), Some("full"), "the last one counts, up to --");
        assert_eq!(parameter(line, "quiet"), Some(""));
        assert_eq!(parameter(line, "func"), None);
        assert_eq!(parameter("ia32-emulation=0", "ia32_emulation"), Some("0"));
    }

    proptest! {
        #[test]
        fn a_parameter_is_found_among_others(value in "[a-z0-9,]{1,20}", before in "[a-z =]{0,40}") {
            let line = format!("{before} the_one={value} after");
            prop_assert_eq!(parameter(&line, "the_one"), Some(value.as_str()));
        }

        #[test]
        fn any_text_is_taken(text in "\\PC{0,200}|[a-z =\"\n-]{0,200}", name in "[a-z_]{0,8}") {
            let _ = (parameter(&text, &name), overridden(&text));
        }
    }
}
