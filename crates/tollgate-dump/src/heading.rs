//! Recognises lines that name the system or processor of the following text, headings in any language, and prose.

use crate::line::{Line, excerpt};
use crate::number::word;
use crate::piece::{Named, Style};

const OPENINGS: &str = "on |os: |os |system: |target: |guest: |host: |microsoft |machine: |connected to ";

/// Returns what the line names at its beginning: `Windows XP Kernel Version 2600 (Service Pack 2) UP Free x86 compatible`,
/// `## Windows 2000 SP4`, `Linux version 6.1.0`, `CPU#1`.
pub(crate) fn read(line: &Line<'_>) -> Option<Named> {
    let text = line.text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    // Only a list number or a mark may precede the name, and a heading is not a sentence.
    if line.is_command || is_sentence(line.text) || line.text.len() - text.len() > 24 {
        return None;
    }
    let text = OPENINGS.split('|').find_map(|opening| without(text, opening)).unwrap_or(text);
    if let Some(rest) = without(text, "windows ") {
        return windows(rest);
    }
    if let Some(rest) = without(text, "linux version ") {
        return Some(Named::System { name: format!("linux {}", word(rest).0), is_64_bit: bits(rest) });
    }
    let number = without(text, "cpu#").or_else(|| without(text, "info registers vcpu "))?;
    let number = &number[..number.bytes().take_while(u8::is_ascii_digit).count()];
    number.parse().ok().map(Named::Processor)
}

fn is_sentence(text: &str) -> bool {
    text.ends_with(['.', ',', ':', '\u{3002}', '\u{3001}']) || text.contains('\u{3002}')
}

/// Returns how a line is set off as a heading, in any language. List items are not headings: they are steps on one machine.
pub(crate) fn style(line: &Line<'_>) -> Option<Style> {
    const LONGEST: usize = 100;
    const MARKS: &str = "■□◆◇▲△▼▽●○◎★☆§【〓▣▶►";
    if let Some(level) = line.level {
        return Some(Style::Level(level));
    }
    let text = line.text;
    let begins =
        text.starts_with(|c: char| MARKS.contains(c) || c == '#' || c == '\u{7b2c}' || c.is_ascii_digit());
    if line.is_command || !begins || is_sentence(text) || text.chars().nth(LONGEST).is_some() {
        return None;
    }
    let first = text.chars().next()?;
    let is_named = |rest: &str| rest.chars().any(|c| c.is_alphabetic());
    match first {
        '#' => {
            let level = text.bytes().take_while(|&byte| byte == b'#').count();
            let is_level = level <= 6 && text[level..].starts_with(' ') && is_named(&text[level..]);
            is_level.then_some(Style::Level(level as u8))
        }
        // "Chapter" and "section" in Chinese and Japanese, with the number in between.
        '\u{7b2c}' => {
            let kind = text.chars().take(6).find(|c| "章節部編".contains(*c))?;
            Some(Style::Mark(kind))
        }
        '0'..='9' => {
            let (number, rest) = word(text);
            let mut parts = number.trim_end_matches('.').split('.');
            let is_part = |part: &str| {
                matches!(part.len(), 1 | 2)
                    && !part.starts_with('0')
                    && part.bytes().all(|byte| byte.is_ascii_digit())
            };
            let count = parts.clone().count();
            (count > 1 && parts.all(is_part) && is_named(rest)).then_some(Style::Numbered(count))
        }
        mark => is_named(text).then_some(Style::Mark(mark)),
    }
}

/// Returns the level that a line of `=` or `-` gives to the line above it.
pub(crate) fn underline(text: &str) -> Option<u8> {
    let is_of = |sign: u8| text.len() >= 3 && text.bytes().all(|byte| byte == sign);
    if is_of(b'=') { Some(1) } else { is_of(b'-').then_some(2) }
}

/// Returns whether a line is prose: words that no tool prints between its rows.
pub(crate) fn is_prose(text: &str) -> bool {
    if text.chars().any(|c| c > '\u{7f}' && c.is_alphanumeric()) {
        return true;
    }
    let is_word = |word: &str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'\'' || byte == b'`')
    };
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '"' | '(' | '*'));
    begins && text.split(' ').filter(|word| is_word(word)).count() >= 3
}

fn windows(rest: &str) -> Option<Named> {
    const VERSIONS: [&str; 16] = [
        "nt", "2000", "xp", "vista", "2003", "2008", "2012", "2016", "2019", "2022", "2025", "7", "8.1", "8",
        "10", "11",
    ];
    let rest = without(rest, "server ").unwrap_or(rest);
    let version = VERSIONS.into_iter().find(|version| {
        let behind = without(rest, version);
        behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.'))
    })?;
    Some(Named::System { name: format!("windows {version}"), is_64_bit: bits(rest) })
}

fn bits(text: &str) -> Option<bool> {
    let text = excerpt(text).to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match (
        names(&["x64", "64-bit", "64bit", "amd64", "x86_64", "x86-64"]),
        names(&["x86 ", "32-bit", "32bit", "i686"]),
    ) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

fn without<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Returns whether a line without a prompt is nevertheless a command, of those whose answer cannot be read without it.
pub(crate) fn is_command(text: &str) -> bool {
    const COMMANDS: &str = "dt |rdmsr |sudo rdmsr |# rdmsr |$ sudo rdmsr |dps |dds |dqs |dq |dd |db |dw ";
    COMMANDS.split('|').any(|command| text.starts_with(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Option<Named> {
        read(&line(text))
    }

    fn line(text: &str) -> Line<'_> {
        Line { number: 1, text, is_command: false, tool: None, processor: None, is_cut: false, level: None }
    }

    #[test]
    fn headings_in_any_language_and_no_lists() {
        for (text, style_of_it) in [
            ("■int 2Eの実際", Some(Style::Mark('■'))),
            ("● Der Weg über SYSENTER", Some(Style::Mark('●'))),
            ("## sysenter in practice", Some(Style::Level(2))),
            ("3.1 Interrupt gates", Some(Style::Numbered(2))),
            ("第2章 sysenter", Some(Style::Mark('章'))),
            ("#define STAR 0xc0000081", None),
            ("# rdmsr 0x174.", None),
            ("1. r idtr を実行する", None),
            ("2.0 1.5", None),
            ("■ここでは IDT を見る。", None),
            ("■■■■", None),
            ("kernel entry", None),
        ] {
            assert_eq!(style(&line(text)), style_of_it, "{text}");
        }
        assert_eq!(style(&Line { level: Some(2), ..line("x") }), Some(Style::Level(2)));
    }

    #[test]
    fn prose_is_told_from_what_tools_print() {
        for text in ["まず IDTR を見る。", "On XP the MSRs are used:", "次へ", "(see the manual for more)"]
        {
            assert!(is_prose(text), "{text}");
        }
        for text in [
            "nt!KiFastCallEntry:",
            "80865710 b923000000      mov     ecx,23h",
            "r idtr",
            "[END]",
            "IDT=",
            ";; 12",
        ] {
            assert!(!is_prose(text), "{text}");
        }
    }

    #[test]
    fn systems_and_processors() {
        for (text, name, is_64_bit) in [
            (
                "Windows XP Kernel Version 2600 (Service Pack 2) UP Free x86 compatible",
                "windows xp",
                Some(false),
            ),
            ("Windows 7 Kernel Version 7601 (Service Pack 1) MP (1 procs) Free x64", "windows 7", Some(true)),
            ("■ Windows 2000 SP4の場合", "windows 2000", None),
            ("3.1 Windows XP Professional x64 Edition (RC1)", "windows xp", Some(true)),
            ("## On Windows Server 2003", "windows 2003", None),
            ("Connected to Windows 8.1 9600 x64 target", "windows 8.1", Some(true)),
            ("[    0.000000] Linux version 6.1.0-18-amd64 (gcc)", "linux 6.1.0-18-amd64", Some(true)),
        ] {
            assert_eq!(named(text), Some(Named::System { name: name.to_owned(), is_64_bit }), "{text}");
        }
        assert_eq!(named("CPU#12"), Some(Named::Processor(12)));
        assert_eq!(named("info registers vcpu 1"), Some(Named::Processor(1)));
    }

    #[test]
    fn a_mention_is_no_heading() {
        for text in [
            "",
            "Unlike Windows 2000, this one",
            "Windows",
            "windows 95",
            "Windows 20000",
            "CPU#",
            "Windowsの",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
    }
}
