use std::fmt;

/// The value of one option, as `scripts/kconfig/confdata.c` writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `=y`: built in.
    BuiltIn,
    /// `=m`: built as a module.
    Module,
    /// `# CONFIG_… is not set`, or `=n` in fragments.
    Off,
    /// A number as it is written, decimal or hexadecimal.
    Number(String),
    /// A string, without its quotes and escapes.
    Text(String),
}

impl Value {
    /// Parses the text after the `=`; `None` if it is not a value.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "y" => Some(Self::BuiltIn),
            "m" => Some(Self::Module),
            "n" => Some(Self::Off),
            _ if text.starts_with('"') => unquoted(text).map(Self::Text),
            _ if is_number(text) => Some(Self::Number(text.to_owned())),
            _ => None,
        }
    }

    /// Returns whether the option is built, or has a number or text.
    pub fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Returns whether two values are equal: `0x10` and `16` are.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) if one != two => {
                number(one).is_some_and(|one| Some(one) == number(two))
            }
            _ => self == other,
        }
    }
}

/// Formats the value as it follows `=` in a configuration; `n` if it is off.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("y"),
            Self::Module => f.write_str("m"),
            Self::Off => f.write_str("n"),
            Self::Number(number) => f.write_str(number),
            Self::Text(text) => {
                f.write_str("\"")?;
                for c in text.chars() {
                    if matches!(c, '"' | '\\') {
                        f.write_str("\\")?;
                    }
                    write!(f, "{c}")?;
                }
                f.write_str("\"")
            }
        }
    }
}

/// Unquotes a text whose last character is the closing quote. A backslash escapes any character.
fn unquoted(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix('"')?.chars();
    let mut plain = String::new();
    loop {
        match rest.next()? {
            '"' => return rest.as_str().is_empty().then_some(plain),
            '\\' => plain.push(rest.next()?),
            c => plain.push(c),
        }
    }
}

fn is_number(text: &str) -> bool {
    let all = |digits: &str, are: fn(&u8) -> bool| !digits.is_empty() && digits.as_bytes().iter().all(are);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => all(digits, u8::is_ascii_hexdigit),
        None => all(text.strip_prefix('-').unwrap_or(text), u8::is_ascii_digit),
    }
}

fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values() {
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let number = |text: &str| Some(Value::Number(text.to_owned()));
        assert_eq!(Value::parse("y"), Some(Value::BuiltIn));
        assert_eq!(Value::parse("m"), Some(Value::Module));
        assert_eq!(Value::parse("n"), Some(Value::Off));
        assert_eq!(Value::parse("\"\""), text(""));
        assert_eq!(Value::parse(r#""a \"b\" \\ =y""#), text(r#"a "b" \ =y"#));
        assert_eq!(Value::parse("1000"), number("1000"));
        assert_eq!(Value::parse("-1"), number("-1"));
        assert_eq!(Value::parse("0xdead000000000000"), number("0xdead000000000000"));
        for wrong in ["", "Y", "yes", "\"", "\"a", "\"a\"b", "\"a\\\"", "0x", "0xg", "-", "1 2", "é"] {
            assert_eq!(Value::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_are_the_same_in_both_notations() {
        let value = |text: &str| Value::parse(text).expect("a value");
        assert!(value("0x1000").is_same(&value("4096")));
        assert!(!value("0x1000").is_same(&value("1000")));
        assert!(!value("1").is_same(&value("\"1\"")));
        // Larger than any number of the kernel: equal only if they are written alike.
        let long = "9".repeat(60);
        assert!(value(&long).is_same(&value(&long)) && !value(&long).is_same(&value("9")));
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "\\PC{0,40}|[\"\\\\0-9xa-f-]{0,20}") {
            if let Some(value) = Value::parse(&text) {
                prop_assert_eq!(Value::parse(&value.to_string()), Some(value));
            }
        }

        #[test]
        fn a_text_round_trips(text in "\\PC{0,40}|[\"\\\\ =]{0,10}") {
            let value = Value::Text(text);
            prop_assert_eq!(Value::parse(&value.to_string()), Some(value));
        }
    }
}
