//! The Windows debugger's `dg`: selectors, explained.
//!
//! ```text
//!                                   P Si Gr Pr Lo
//! Sel    Base     Limit     Type    l ze an es ng Flags
//! ---- -------- -------- ---------- - -- -- -- -- --------
//! 0028 80042000 000020ab TSS32 Busy 0 Nb By P  Nl 0000008b
//! ```
//!
//! In a 64-bit session base and limit have 16 digits with a backtick. Limits are in bytes. The flags are the access byte and
//! above it G, D, L and AVL. Older debuggers lack the column `Lo`, scripts the one for the flags.

use crate::number::{number, plain, word};
use crate::piece::{Form, What};
use crate::{format::Format, line::Line, printed::PrintedDescriptor, sink::Sink};

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    if is_header(line.text) {
        return true;
    }
    if !line.text.as_bytes().get(..5).is_some_and(|head| head[4] == b' ' && head[0].is_ascii_hexdigit()) {
        return false;
    }
    if line.text[4..].trim_start_matches(' ') == "Unable to get descriptor" {
        return plain(&line.text[..4]).is_some();
    }
    let Some(descriptor) = row(line.text) else { return false };
    sink.form(Format::Dg, if descriptor.is_wide { Form::DebuggerWide } else { Form::DebuggerNarrow });
    sink.push(Format::Dg, What::Descriptor(descriptor))
}

fn is_header(text: &str) -> bool {
    let words =
        |expected: &[&str]| text.split_ascii_whitespace().take(expected.len()).eq(expected.iter().copied());
    words(&["P", "Si", "Gr", "Pr"])
        || words(&["Sel", "Base", "Limit", "Type"])
        || words(&["----", "--------"])
        || words(&["----", "-----------------"])
}

fn row(text: &str) -> Option<PrintedDescriptor> {
    let (selector, rest) = word(text);
    let (base, rest) = word(rest);
    let (limit, rest) = word(rest);
    let selector = plain(selector).filter(|hex| hex.digits == 4)?;
    let (base, limit) = (number(base)?, number(limit)?);
    if !matches!((base.digits, limit.digits), (8, 8) | (16, 16)) {
        return None;
    }
    let (kind, flags, mask) = columns(rest)?;
    Some(PrintedDescriptor {
        selector: u16::try_from(selector.value).ok()?,
        base: Some(base.value),
        limit: Some(limit.value),
        kind,
        flags: Some(flags),
        mask,
        is_wide: base.digits == 16,
        ..PrintedDescriptor::default()
    })
}

/// Parses the type, of one to three words, and the flags after it with a mask of the known ones: all, or those that the
/// columns show, which begin with a privilege level.
fn columns(rest: &str) -> Option<(String, u16, u16)> {
    let rest = rest.trim_start_matches(' ');
    let is_level = |at: usize| matches!(rest.as_bytes()[at..], [b' ', b'0'..=b'3', b' ', b'B' | b'N', ..]);
    let at = (0..rest.len().min(24)).find(|&at| rest.is_char_boundary(at) && is_level(at))?;
    let mut words = rest[at..].split_ascii_whitespace();
    let dpl: u16 = words.next()?.parse().ok()?;
    let mut either = |yes: &str, no: &str| match words.next() {
        Some(word) if word == yes => Some(1),
        Some(word) if word == no => Some(0),
        _ => None,
    };
    let (is_big, is_paged, is_present) = (either("Bg", "Nb")?, either("Pg", "By")?, either("P", "Np")?);
    let last: Vec<&str> = words.take(2).collect();
    let kind = rest[..at].trim_end_matches(' ').to_owned();
    let flags = last.last().and_then(|word| plain(word)).filter(|hex| hex.digits == 8);
    let flags = flags.and_then(|hex| u16::try_from(hex.value).ok()).filter(|flags| *flags <= 0xfff);
    if let Some(flags) = flags {
        return Some((kind, flags, 0xfff));
    }
    let shown = dpl << 5 | is_present << 7 | is_big << 10 | is_paged << 11;
    Some(match last.first() {
        Some(&"Lo") => (kind, shown | 1 << 9, 0xee0),
        Some(&"Nl") => (kind, shown, 0xee0),
        _ => (kind, shown, 0xce0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, testing::found};
    use proptest::prelude::*;
    use tollgate_x86::Descriptor;

    fn one(text: &str) -> PrintedDescriptor {
        let row = |what| if let What::Descriptor(descriptor) = what { Some(descriptor) } else { None };
        found(text, row).remove(0)
    }

    /// Prints a row as the debugger does.
    pub fn print(selector: u16, descriptor: &Descriptor, is_wide: bool) -> String {
        let number =
            |value: u32| if is_wide { format!("00000000`{value:08x}") } else { format!("{value:08x}") };
        let flags = descriptor.dg_flags();
        let kind = match (descriptor.s, descriptor.kind & 8) {
            (false, _) if descriptor.kind == 0xb => "TSS32 Busy",
            (false, _) => "<Reserved>",
            (true, 0) => "Data RW Ac",
            (true, _) => "Code RE Ac",
        };
        format!(
            "{selector:04X} {} {} {kind} {} {} {} {} {} {flags:08x}",
            number(descriptor.base),
            number(descriptor.effective_limit()),
            descriptor.dpl,
            if descriptor.d { "Bg" } else { "Nb" },
            if descriptor.g { "Pg" } else { "By" },
            if descriptor.p { "P " } else { "Np" },
            if descriptor.l { "Lo" } else { "Nl" },
        )
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(selector: u16, bytes: [u8; 8], is_wide: bool) {
            let descriptor = Descriptor::decode(bytes);
            let printed = one(&print(selector, &descriptor, is_wide));
            prop_assert_eq!((printed.selector, printed.is_wide), (selector, is_wide));
            prop_assert_eq!(printed.descriptor(), Some(descriptor));
        }
    }

    #[test]
    fn a_row_of_each_width() {
        let narrow = one("0028 80042000 000020ab TSS32 Busy 0 Nb By P  Nl 0000008b");
        assert_eq!((narrow.kind.as_str(), narrow.is_wide, narrow.flags), ("TSS32 Busy", false, Some(0x8b)));
        let wide = one("0050 ffffffff`fff9a000 00000000`00003c00 Data RW Ac 3 Bg By P  Nl 000004f3");
        assert_eq!((wide.base, wide.limit), (Some(0xffff_ffff_fff9_a000), Some(0x3c00)));
        assert_eq!(wide.descriptor().map(|descriptor| descriptor.base), Some(0xfff9_a000));
        let script = one("0070 ffffe000`2037d000 00000000`0000ffff LDT        0 Nb By P  Nl");
        assert_eq!((script.flags, script.mask, script.descriptor()), (Some(0x80), 0xee0, None));
    }

    #[test]
    fn headers_and_holes_are_understood() {
        let text = "                                  P Si Gr Pr Lo
Sel    Base     Limit     Type    l ze an es ng Flags
---- -------- -------- ---------- - -- -- -- -- --------
0058 Unable to get descriptor";
        let dump = read(text.as_bytes(), None);
        assert_eq!((dump.lines.understood, dump.lines.foreign, dump.pieces.len()), (4, 0, 0));
    }

    #[test]
    fn what_is_no_row() {
        for text in
            ["0028", "0028 1 2 3", "0028 80042000 000020ab", "0028 80042000 000020ab TSS 4 Nb By P", "00é8 1"]
        {
            assert!(read(text.as_bytes(), Some(Format::Dg)).pieces.is_empty(), "{text}");
        }
    }
}
