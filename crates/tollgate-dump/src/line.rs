//! Splits bytes of any encoding into lines, without prompts, quotation marks and the prefixes of logs.

use std::{borrow::Cow, ops::ControlFlow};

use crate::{log, markup};

/// The most bytes that are read of a line. No tool prints a line of nearly this length, except a table as digits on one
/// line.
pub const MAX_LINE: usize = 1 << 20;
const MAX_EXCERPT: usize = 160;

#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// Line number, from 1.
    pub number: usize,
    /// Trimmed text, in ASCII if a tool printed it, with tabs as two spaces.
    pub text: &'a str,
    /// Whether it follows a debugger's prompt.
    pub is_command: bool,
    pub tool: Option<Tool>,
    pub processor: Option<u32>,
    /// Whether its end was not read.
    pub is_cut: bool,
    /// Level of the heading, in HTML.
    pub level: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The Windows debugger of another machine: `kd>`.
    Kd,
    /// The Windows debugger of its own machine: `lkd>`.
    LocalKd,
    /// The Windows debugger of a program: `0:000>`.
    User,
    /// gdb and QEMU's monitor, which are used on one machine at the same time.
    Gdb,
    Bochs,
}

pub(crate) fn each(text: &[u8], mut visit: impl FnMut(Line<'_>) -> ControlFlow<()>) {
    let is_html = markup::is_used(text);
    match text {
        [0xff, 0xfe, rest @ ..] => each_wide(rest, u16::from_le_bytes, visit),
        [0xfe, 0xff, rest @ ..] => each_wide(rest, u16::from_be_bytes, visit),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => {
            for (index, line) in lines(rest).enumerate() {
                let kept = &line[..line.len().min(MAX_LINE)];
                let (text, is_cut) = (clean(kept), kept.len() < line.len());
                if visit_html(&text, is_html, index + 1, is_cut, &mut visit).is_break() {
                    return;
                }
            }
        }
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|&byte| byte == b'\n')
}

fn each_wide(text: &[u8], unit: fn([u8; 2]) -> u16, mut visit: impl FnMut(Line<'_>) -> ControlFlow<()>) {
    let (units, _) = text.as_chunks::<2>();
    let feed = |pair: &[u8; 2]| unit(*pair) == u16::from(b'\n');
    let units = match units.last() {
        Some(last) if feed(last) => &units[..units.len() - 1],
        _ => units,
    };
    for (index, line) in units.split(feed).enumerate() {
        let kept = &line[..line.len().min(MAX_LINE / 2)];
        let chars = char::decode_utf16(kept.iter().map(|pair| unit(*pair)));
        let text = plain(chars.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)), kept.len());
        if visit_line(&text, (index + 1, None), kept.len() < line.len(), &mut visit).is_break() {
            return;
        }
    }
}

/// Visits the lines that a line of HTML shows, which all have its number.
fn visit_html(
    text: &str,
    is_html: bool,
    number: usize,
    is_cut: bool,
    visit: &mut impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if !is_html || !text.contains(['<', '&']) {
        return visit_line(text, (number, None), is_cut, visit);
    }
    let (lines, level) = markup::lines(text);
    lines.iter().try_for_each(|text| visit_line(text, (number, level), is_cut, visit))
}

fn visit_line(
    text: &str,
    (number, level): (usize, Option<u8>),
    is_cut: bool,
    visit: &mut impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    // A truncated word would look like a shorter one.
    let whole = if is_cut { text.rfind([' ', ',']).map_or(text, |end| &text[..end]) } else { text };
    let mut text = whole.trim_matches(' ');
    // Quoted mail and Markdown.
    while let Some(quoted) = text.strip_prefix('>') {
        text = quoted.trim_start_matches(' ');
    }
    let text = log::without(text);
    let (text, tool, processor) = match prompt(text) {
        Some((text, tool, processor)) => (text.trim_matches(' '), Some(tool), processor),
        None => (text, None, None),
    };
    visit(Line { number, text, is_command: tool.is_some(), tool, processor, is_cut, level })
}

/// Decodes a line. Bytes that are not UTF-8 are read as Latin-1.
fn clean(line: &[u8]) -> Cow<'_, str> {
    let is_plain = line.iter().all(|byte| matches!(byte, b' '..=b'~'));
    match str::from_utf8(line) {
        Ok(text) if is_plain => Cow::Borrowed(text),
        Ok(text) => Cow::Owned(plain(text.chars(), line.len())),
        Err(_) => Cow::Owned(plain(line.iter().copied().map(char::from), line.len())),
    }
}

/// Removes colours and control characters, and undoes the typography that word processors and Chinese and Japanese fonts
/// apply to ASCII.
fn plain(mut chars: impl Iterator<Item = char>, length: usize) -> String {
    let mut text = String::with_capacity(length);
    while let Some(c) = chars.next() {
        match c {
            '\t' => text.push_str("  "),
            '\u{1b}' => skip_escape(&mut chars),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => text.push(' '),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => text.push('-'),
            '\u{2018}' | '\u{2019}' | '\u{b4}' | '\u{2032}' => text.push('`'),
            '\u{ff01}'..='\u{ff5e}' => text.extend(char::from_u32(u32::from(c) - 0xfee0)),
            '\u{200b}'..='\u{200f}' | '\u{feff}' => {}
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text
}

/// Skips the rest of a terminal's control sequence (ECMA-48, 5.4): `ESC [` to a final byte, `ESC ]` to BEL.
fn skip_escape(chars: &mut impl Iterator<Item = char>) {
    match chars.next() {
        Some('[') => {
            chars.find(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        Some(']') => {
            chars.find(|&c| c == '\u{7}' || c == '\\');
        }
        _ => {}
    }
}

/// Returns the text after a debugger's prompt, and the processor that it names: `kd>`, `lkd>`, `1: kd>`, `0: kd:x86>`,
/// `0:000>`, `<bochs:1>`, `(gdb)`, `(qemu)`, `pwndbg>`, `gdb-peda$`.
fn prompt(text: &str) -> Option<(&str, Tool, Option<u32>)> {
    for mark in ["(gdb)", "(qemu)", "pwndbg>", "gdb-peda$", "gef>"] {
        if let Some(rest) = text.strip_prefix(mark) {
            return Some((rest, Tool::Gdb, None));
        }
    }
    if let Some(rest) = text.strip_prefix("<bochs") {
        let rest = rest.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        return Some((rest.strip_prefix('>')?, Tool::Bochs, None));
    }
    const LONGEST: usize = 24;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b'>')?;
    let (head, rest) = (&text[..end], &text[end + 1..]);
    let digits = head.bytes().take_while(u8::is_ascii_digit).count();
    let (number, name) = head.split_at(digits);
    if let Some(thread) = name.strip_prefix(':').filter(|_| digits > 0) {
        let is_user = thread.len() >= 3 && thread.bytes().take(3).all(|byte| byte.is_ascii_digit());
        if is_user {
            return Some((rest, Tool::User, None));
        }
    }
    let (processor, name) = match name.strip_prefix(':') {
        Some(name) => (number.parse().ok(), name),
        None => (None, name.strip_prefix('.').unwrap_or(name)),
    };
    let name = name.trim_matches([' ', '*']);
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    let tool = match name {
        "kd" => Tool::Kd,
        "lkd" => Tool::LocalKd,
        _ => return None,
    };
    Some((rest, tool, processor))
}

pub(crate) fn excerpt(text: &str) -> &str {
    let end = (0..=MAX_EXCERPT.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        each(text, |line| {
            all.push(line.text.to_owned());
            ControlFlow::Continue(())
        });
        all
    }

    fn utf16(text: &str) -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn one_text_in_many_dresses() {
        let plain = ["idtr=8003f400", "", "tr=28"];
        for text in
            ["idtr=8003f400\n\ntr=28\n", "idtr=8003f400\r\n\r\ntr=28", "kd> idtr=8003f400\n\n0: kd> tr=28\n"]
        {
            assert_eq!(all(text.as_bytes()), plain, "{text:?}");
            assert_eq!(all(&utf16(text)), plain, "{text:?} in UTF-16");
        }
        assert_eq!(all("\u{1b}[32midtr\u{1b}[0m=8003f400\n>\n> > tr=28".as_bytes()), plain);
        assert_eq!(
            all("\u{feff}\u{a0}idtr=8003f400\u{3000}\n\u{ff54}r\u{ff1d}28".as_bytes()),
            ["idtr=8003f400", "tr=28"]
        );
        assert_eq!(all(b"\xa0tr=28\xa0"), ["tr=28"], "Latin-1");
    }

    #[test]
    fn prompts() {
        for (text, rest, processor) in [
            ("kd> r", "r", None),
            ("lkd>r", "r", None),
            ("12: kd> r", "r", Some(12)),
            ("0: kd:x86> r", "r", Some(0)),
            ("32.kd> r", "r", None),
            ("0:000> r", "r", None),
            ("<bochs:12> r", "r", None),
            ("(gdb) r", "r", None),
            ("(qemu) r", "r", None),
        ] {
            let (found, _, number) = prompt(text).unwrap();
            assert_eq!((found.trim(), number), (rest, processor), "{text}");
        }
        for text in ["", ">", "kd", "a kd> r", "<bochs", "0: x> r", "tr=28 > 5", "\u{3042}>"] {
            assert!(prompt(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_line_is_cut_where_it_is_too_long() {
        let length = |text: &[u8]| {
            let mut length = 0;
            each(text, |line| {
                assert!(line.is_cut);
                length = line.text.len();
                ControlFlow::Continue(())
            });
            length
        };
        assert_eq!(length(&vec![b'a'; MAX_LINE + 1]), MAX_LINE);
        assert_eq!(
            length(&b"00 ".repeat(MAX_LINE / 3 + 1)),
            MAX_LINE / 3 * 3 - 1,
            "a word that is cut is left out"
        );
    }

    #[test]
    fn no_line_is_made_up() {
        assert_eq!(all(b""), [""]);
        assert_eq!(all(b"\n"), [""]);
        assert_eq!(all(b"a\n\n"), ["a", ""]);
        assert_eq!(all(&[0xff, 0xfe, b'a']), [""], "half a character");
    }
}
