//! Demangles symbols of Rust compilers (RFC 2603, and the older form).

use std::fmt::{self, Write};

/// The longest symbol that is read, and the longest name. A short symbol may stand for a name of any length.
const MOST: usize = 4096;

/// Returns the name of a function without its hash; `None` if it is not such a symbol, or is too long.
pub(super) fn of(symbol: &str) -> Option<String> {
    if symbol.len() > MOST {
        return None;
    }
    rust(symbol)
}

fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut bounded = Bounded(String::new());
    write!(bounded, "{name:#}").ok()?;
    Some(bounded.0)
}

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(symbols: &[&str]) -> Vec<Option<String>> {
        symbols.iter().map(|symbol| of(symbol)).collect()
    }

    #[test]
    fn a_symbol_of_rust_is_its_path() {
        let symbols = [
            "_ZN4core3fmt5write17h8f5a5d0d3a6a2b41E",
            "_ZN47_$LT$std..fs..File$u20$as$u20$std..io..Read$GT$4read17h0123456789abcdefE.llvm.1234567890ABCDEF",
            "_RNvNtCsbDqzXfLQacH_4core3fmt5write",
            "_RINvNtC3std3mem8align_ofjE",
        ];
        let expected = [
            "core::fmt::write",
            "<std::fs::File as std::io::Read>::read",
            "core::fmt::write",
            "std::mem::align_of::<usize>",
        ];
        assert_eq!(names(&symbols), expected.map(|name| Some(name.to_owned())));
    }

    #[test]
    fn what_is_no_symbol_of_a_compiler_has_no_other_name() {
        let long = format!("_ZN{MOST}{}E", "a".repeat(MOST));
        assert_eq!(names(&["read", "", "_Z", "_R", "__libc_read", &long]), vec![None; 6]);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(_R|_ZN|_Z)?[A-Za-z0-9_$.]{0,60}|.{0,40}") {
            prop_assert!(of(&text).is_none_or(|name| name.len() <= MOST));
        }
    }
}
