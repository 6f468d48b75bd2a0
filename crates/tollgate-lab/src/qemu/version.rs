//! The version of QEMU.

use std::fmt;

/// A version, of which the later is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Changes every year.
    pub major: u16,
    /// Changes with every release of a year.
    pub minor: u16,
    /// Changes with corrections; 50 and above are not released.
    pub micro: u16,
}

impl Version {
    /// Reads what `--version` prints: `QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
    pub(super) fn read(said: &str) -> Option<Self> {
        let (_, rest) = said.split_once("QEMU emulator version ")?;
        let number = rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
        let mut parts = number.split('.').map(|part| part.parse().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self { major, minor, micro: parts.next().flatten().unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distributions_add_their_own() {
        let read = |said| Version::read(said).map(|version| version.to_string());
        let debian =
            "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c) 2003-2022";
        assert_eq!(read(debian).as_deref(), Some("7.2.22"));
        assert_eq!(read("QEMU emulator version 9.2.0 (qemu-9.2.0-1.fc42)\n").as_deref(), Some("9.2.0"));
        assert_eq!(read("QEMU emulator version 10.0.50\n").as_deref(), Some("10.0.50"));
        assert_eq!(read("QEMU emulator version 2.5-rc1").as_deref(), Some("2.5.0"));
        assert_eq!(read("QEMU emulator version 7"), None);
        assert_eq!(read("version 7.2"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(said in "(QEMU emulator version )?[0-9.]{0,12}\\PC{0,20}") {
            let _ = Version::read(&said);
        }

        #[test]
        fn it_is_read_as_it_is_shown(major: u16, minor: u16, micro: u16) {
            let version = Version { major, minor, micro };
            prop_assert_eq!(Version::read(&format!("QEMU emulator version {version} (x)")), Some(version));
        }
    }
}
