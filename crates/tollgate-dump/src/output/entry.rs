use std::fmt;
use std::str::FromStr;

use tollgate_x86::Selector;
use tollgate_x86::walk::{Crossing, Event, Size};

/// A crossing that can be requested, and its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// No walk.
    None,
    /// A walk.
    Walk {
        /// The instruction.
        way: Way,
        /// In long mode, whether it starts in compatibility mode, or returns to it.
        narrow: bool,
    },
}

/// The instruction of a crossing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// INT with a vector.
    Int(u8),
    /// CALL with the selector of a gate or of code.
    Call(Selector),
    /// SYSENTER.
    Sysenter,
    /// SYSCALL.
    Syscall,
    /// IRET.
    Iret,
    /// SYSEXIT.
    Sysexit,
    /// SYSRET.
    Sysret,
}

impl Way {
    /// Returns whether it leaves the kernel, and so begins in ring 0.
    pub(crate) fn is_return(self) -> bool {
        matches!(self, Self::Iret | Self::Sysexit | Self::Sysret)
    }

    pub(crate) fn crossing(self, long: bool, narrow: bool) -> Crossing {
        let wide = long && !narrow;
        let size = if wide { Size::Quad } else { Size::Double };
        match self {
            Self::Int(vector) => Crossing::Event(Event::Int(vector)),
            // A far pointer in memory has a 32-bit offset, or 64-bit with REX.W; for a gate it is ignored.
            Self::Call(selector) => Crossing::FarCall { selector, offset: 0, size: Size::Double },
            Self::Sysenter => Crossing::Sysenter,
            Self::Syscall => Crossing::Syscall,
            Self::Iret => Crossing::InterruptReturn { size },
            Self::Sysexit => Crossing::Sysexit { wide },
            Self::Sysret => Crossing::Sysret { wide },
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(vector) => write!(f, "int {vector:x}"),
            Self::Call(selector) => write!(f, "call {selector}"),
            Self::Sysenter => f.write_str("sysenter"),
            Self::Syscall => f.write_str("syscall"),
            Self::Iret => f.write_str("iret"),
            Self::Sysexit => f.write_str("sysexit"),
            Self::Sysret => f.write_str("sysret"),
        }
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        if ["eretu", "erets"].contains(&text) {
            return Err("ERETU and ERETS return from what FRED delivers, which is not walked".to_owned());
        }
        let (way, narrow) = match text.strip_suffix(":32").filter(|way| *way != "int" && *way != "call") {
            Some(way) => (way, true),
            None => (text, false),
        };
        let way = match way.split_once(':') {
            None => match way {
                "sysenter" => Some(Way::Sysenter),
                "syscall" => Some(Way::Syscall),
                "iret" => Some(Way::Iret),
                "sysexit" => Some(Way::Sysexit),
                "sysret" => Some(Way::Sysret),
                _ => None,
            },
            Some(("int", vector)) => number(vector).and_then(|it| u8::try_from(it).ok()).map(Way::Int),
            Some(("call", selector)) => {
                number(selector).and_then(|it| u16::try_from(it).ok()).map(|it| Way::Call(Selector(it)))
            }
            Some(_) => None,
        };
        way.map(|way| Self::Walk { way, narrow }).ok_or_else(|| {
            "it is none of int:VECTOR (hexadecimal, such as int:2e), call:SELECTOR, sysenter, syscall, iret, sysexit, \
             sysret, those with :32 appended for compatibility mode, and none"
                .to_owned()
        })
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_by_their_names() {
        let walk = |way, narrow| Ok(Entry::Walk { way, narrow });
        assert_eq!("int:2e".parse(), walk(Way::Int(0x2e), false));
        assert!("eretu".parse::<Entry>().is_err_and(|why| why.contains("FRED")));
        assert_eq!("int:0x80:32".parse(), walk(Way::Int(0x80), true));
        assert_eq!("int:32".parse(), walk(Way::Int(0x32), false), "a vector, not a mode");
        assert_eq!("syscall:32".parse(), walk(Way::Syscall, true));
        assert_eq!("call:4b".parse(), walk(Way::Call(Selector(0x4b)), false));
        assert_eq!("none".parse(), Ok(Entry::None));
        for wrong in [
            "",
            "int",
            "int:",
            "int:100",
            "int:+1",
            "int 2e",
            "syscall:64",
            "sysenter:32:32",
            "none:32",
            "é:32",
        ] {
            assert!(wrong.parse::<Entry>().is_err(), "{wrong}");
        }
    }
}
