//! The text of a configuration, as `scripts/kconfig/confdata.c` reads it: `CONFIG_X=value`, `# CONFIG_X is not set`,
//! comments. If an option is set twice, the last line counts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::error::ConfigError;
use crate::value::Value;

/// The number of lines at the top in which the kernel's version may stand.
const HEADER_LINES: usize = 64;
/// Options that kernels of an architecture set, and its folder. User-mode Linux sets the options of its host as well.
const ARCHITECTURES: [(&str, &str); 28] = [
    ("UML", "um"),
    ("X86", "x86"),
    ("X86_32", "x86"),
    ("X86_64", "x86"),
    ("ARM64", "arm64"),
    ("ARM", "arm"),
    ("RISCV", "riscv"),
    ("PPC", "powerpc"),
    ("PPC32", "powerpc"),
    ("PPC64", "powerpc"),
    ("S390", "s390"),
    ("LOONGARCH", "loongarch"),
    ("MIPS", "mips"),
    ("SPARC", "sparc"),
    ("SPARC32", "sparc"),
    ("SPARC64", "sparc"),
    ("ALPHA", "alpha"),
    ("ARC", "arc"),
    ("CSKY", "csky"),
    ("HEXAGON", "hexagon"),
    ("IA64", "ia64"),
    ("M68K", "m68k"),
    ("MICROBLAZE", "microblaze"),
    ("NIOS2", "nios2"),
    ("OPENRISC", "openrisc"),
    ("PARISC", "parisc"),
    ("SUPERH", "sh"),
    ("XTENSA", "xtensa"),
];
const EXCERPT: usize = 48;

/// A kernel configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The kernel's version, such as `6.18.5`, from the line above the options.
    pub version: Option<String>,
    /// The architecture as that line names it, such as `x86`; see [`Configuration::architecture`].
    pub named: Option<String>,
    /// The options, by name without `CONFIG_`.
    pub options: BTreeMap<String, Value>,
    /// Options that are set more than once.
    pub repeated: Option<Repeated>,
    /// Lines that are neither options nor comments.
    pub foreign: Option<Foreign>,
    /// Whether the last line has no newline, as in a file that was cut short.
    pub unended: bool,
}

/// Options that are set more than once.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repeated {
    /// The number of lines that set an option that an earlier line had set.
    pub lines: usize,
    /// The number of the first of these lines, from 1.
    #[serde(rename = "first_line")]
    pub first: usize,
    /// The option that this line sets.
    #[serde(rename = "first")]
    pub name: String,
}

/// Lines that are neither options nor comments.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Foreign {
    /// The number of these lines.
    pub lines: usize,
    /// The number of the first of these lines, from 1.
    #[serde(rename = "first_line")]
    pub first: usize,
    /// The beginning of that line; bytes that are not UTF-8 are replaced.
    #[serde(rename = "first")]
    pub excerpt: String,
}

enum Line<'a> {
    Option(&'a str, Value),
    Comment(&'a str),
    Foreign,
}

/// Parses the text of a configuration.
///
/// # Errors
/// If no line is an option, or fewer lines are options than are not: then it is some other text.
pub fn parse(bytes: &[u8]) -> Result<Configuration, ConfigError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.is_empty() {
        return Err(ConfigError::Empty);
    }
    let mut configuration = Configuration { unended: !bytes.ends_with(b"\n"), ..Configuration::default() };
    let mut options = 0_usize;
    for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        match std::str::from_utf8(line).map_or(Line::Foreign, |line| classify(line.trim())) {
            Line::Option(name, value) => {
                options += 1;
                configuration.set(name, value, at + 1);
            }
            Line::Comment(comment) if at < HEADER_LINES => configuration.learn(comment),
            Line::Comment(_) => {}
            Line::Foreign => configuration.leave_out(line, at + 1),
        }
    }
    match &configuration.foreign {
        Some(foreign) if foreign.lines >= options => Err(ConfigError::NoConfiguration {
            options,
            others: foreign.lines,
            line: foreign.first,
            excerpt: foreign.excerpt.clone(),
        }),
        None if options == 0 => Err(ConfigError::NoOptions),
        _ => Ok(configuration),
    }
}

fn classify(line: &str) -> Line<'_> {
    if line.is_empty() {
        return Line::Comment("");
    }
    if let Some(comment) = line.strip_prefix('#') {
        let comment = comment.trim();
        let off = comment.strip_prefix("CONFIG_").and_then(|rest| rest.strip_suffix(" is not set"));
        return match off {
            Some(name) if is_name(name) => Line::Option(name, Value::Off),
            _ => Line::Comment(comment),
        };
    }
    let option = line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('='));
    match option.and_then(|(name, value)| Some((name, Value::parse(value)?))) {
        Some((name, value)) if is_name(name) => Line::Option(name, value),
        _ => Line::Foreign,
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl Configuration {
    /// Returns the value of an option, by name without `CONFIG_`; `None` if the kernel does not offer it.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.options.get(name)
    }

    /// Returns the architecture, by the name of its folder in the kernel's source: from the option that every kernel of
    /// it sets, or else from the line above the options. Before 3.0 that line is missing, and up to 3.9 it names the
    /// machine: `i386`, `x86_64`.
    pub fn architecture(&self) -> Option<&str> {
        let is_built_in = |name: &&(&str, &str)| self.value(name.0) == Some(&Value::BuiltIn);
        let by_option = ARCHITECTURES.iter().find(is_built_in).map(|(_, folder)| *folder);
        by_option.or(match self.named.as_deref() {
            Some("i386" | "x86_64") => Some("x86"),
            named => named,
        })
    }

    /// Returns the numbers of the kernel's version.
    pub fn release(&self) -> Option<(u32, u32, u32)> {
        let mut numbers = self.version.as_deref()?.split(['.', '-']).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next().and_then(Result::ok).unwrap_or(0)))
    }

    /// Returns the compiler's own description; kernels before 5.8 have at most the version number of gcc.
    pub fn compiler(&self) -> Option<String> {
        match (self.value("CC_VERSION_TEXT"), self.value("GCC_VERSION")) {
            (Some(Value::Text(text)), _) if !text.is_empty() => Some(text.clone()),
            (_, Some(Value::Number(number))) if number != "0" => {
                let number: u32 = number.parse().ok()?;
                Some(format!("gcc {}.{}.{}", number / 10000, number / 100 % 100, number % 100))
            }
            _ => None,
        }
    }

    fn set(&mut self, name: &str, value: Value, line: usize) {
        match self.options.entry(name.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => {
                entry.insert(value);
                let first = || Repeated { lines: 0, first: line, name: name.to_owned() };
                self.repeated.get_or_insert_with(first).lines += 1;
            }
        }
    }

    fn leave_out(&mut self, line: &[u8], number: usize) {
        let first = || Foreign { lines: 0, first: number, excerpt: excerpt(line) };
        self.foreign.get_or_insert_with(first).lines += 1;
    }

    /// Reads the version from `Linux/x86 6.18.5 Kernel Configuration`, or `Linux kernel version: 2.6.32` before 3.0.
    fn learn(&mut self, comment: &str) {
        if self.version.is_some() {
            return;
        }
        let named = comment.strip_prefix("Linux/").and_then(|rest| rest.strip_suffix("Kernel Configuration"));
        if let Some((architecture, version)) = named.and_then(|rest| rest.trim().split_once(' ')) {
            self.named = Some(architecture.to_owned());
            self.version = Some(version.trim().to_owned());
        } else if let Some(version) = comment.strip_prefix("Linux kernel version:") {
            self.version = Some(version.trim().to_owned());
        }
    }
}

/// Returns the beginning of a line, safe to print on one line.
fn excerpt(line: &[u8]) -> String {
    let bytes = line.get(..EXCERPT).unwrap_or(line);
    let mut text = String::from_utf8_lossy(bytes).trim_end().to_owned();
    if bytes.len() < line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Configuration {
        parse(text.as_bytes()).expect("a configuration")
    }

    #[test]
    fn headers() {
        let new = read(
            "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.18.5 Kernel Configuration\n#\nCONFIG_X=y\n",
        );
        assert_eq!((new.architecture(), new.version.as_deref()), (Some("x86"), Some("6.18.5")));
        let old = read(
            "#\n# Automatically generated make config: don't edit\n# Linux kernel version: 2.6.32\n# Tue\nCONFIG_X=y\n",
        );
        assert_eq!((old.architecture(), old.version.as_deref()), (None, Some("2.6.32")));
        assert_eq!((new.release(), old.release()), (Some((6, 18, 5)), Some((2, 6, 32))));
        assert_eq!(read("CONFIG_X=y\n").version, None);
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
        let unix =
            "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_A=y\nCONFIG_B=\"c d\"\n# CONFIG_E is not set\n";
        let windows = format!("\u{feff}{}", unix.replace('\n', "\r\n"));
        assert_eq!(read(&windows), read(unix));
        assert_eq!(read(unix).options.len(), 3);
    }

    #[test]
    fn the_last_one_counts() {
        let twice = read("CONFIG_A=y\nCONFIG_B=m\nCONFIG_A=m\n# CONFIG_A is not set\n");
        assert_eq!(twice.value("A"), Some(&Value::Off));
        assert_eq!(twice.repeated, Some(Repeated { lines: 2, first: 3, name: "A".to_owned() }));
    }

    #[test]
    fn other_lines_are_counted_and_the_first_is_named() {
        let noisy = [b"CONFIG_A=y\n\xff\xfe\0\nCONFIG_B=\nCONFIG_C=1\nCONFIG_D=\"x\"\n".as_slice()].concat();
        let noisy = parse(&noisy).expect("a configuration");
        assert_eq!(noisy.options.len(), 3);
        let foreign = noisy.foreign.expect("foreign lines");
        assert_eq!((foreign.lines, foreign.first), (2, 2));
    }

    #[test]
    fn another_text_is_none() {
        assert_eq!(parse(b""), Err(ConfigError::Empty));
        assert_eq!(parse(b"# only\n\n# comments\n"), Err(ConfigError::NoOptions));
        let prose = parse(b"# a comment\nSome prose.\nCONFIG_A=y\nand more\n");
        let error = ConfigError::NoConfiguration {
            options: 1,
            others: 2,
            line: 2,
            excerpt: "Some prose.".to_owned(),
        };
        assert_eq!(prose, Err(error));
    }

    #[test]
    fn a_file_that_was_cut_short_shows_it() {
        assert!(!read("CONFIG_A=y\n").unended);
        assert!(read("CONFIG_A=y\nCONFIG_B=y").unended);
        let cut = read("CONFIG_A=y\nCONFIG_C=y\nCONFIG_B=\"te");
        assert!(cut.unended && cut.foreign.is_some_and(|foreign| foreign.first == 3));
    }

    #[test]
    fn compilers() {
        let new = read("CONFIG_CC_VERSION_TEXT=\"gcc (GCC) 15.3.0\"\nCONFIG_GCC_VERSION=150300\n");
        assert_eq!(new.compiler().as_deref(), Some("gcc (GCC) 15.3.0"));
        assert_eq!(read("CONFIG_GCC_VERSION=80300\n").compiler().as_deref(), Some("gcc 8.3.0"));
        assert_eq!(read("CONFIG_GCC_VERSION=0\n").compiler(), None);
    }

    fn print(configuration: &Configuration) -> String {
        let line = |(name, value): (&String, &Value)| match value {
            Value::Off => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        };
        configuration.options.iter().map(line).collect()
    }

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::BuiltIn),
            Just(Value::Module),
            Just(Value::Off),
            "-?[0-9]{1,8}|0x[0-9a-f]{1,16}".prop_map(Value::Number),
            "[^\\p{C}\n\r]{0,20}".prop_map(Value::Text),
        ]
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in any::<Vec<u8>>()) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_lines_are_taken(text in "((# )?CONFIG_[A-C]{1,2}(=[ymn0-9\"\\\\]{0,3}| is not set)?\r?\n?){0,30}") {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn what_was_printed_is_read_again(options in prop::collection::btree_map("[A-Z0-9_a-z]{1,12}", any_value(), 1..40)) {
            let configuration = Configuration { options, ..Configuration::default() };
            prop_assert_eq!(parse(print(&configuration).as_bytes()), Ok(configuration));
        }
    }
}
