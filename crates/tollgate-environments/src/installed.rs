//! Finds the Debian packages, or files without a package, that make an environment possible.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::commands;

/// The package database answers within milliseconds.
const MOST: Duration = Duration::from_secs(5);

/// A package or file that was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Debian package with its version, or path of the file.
    pub name: String,
    /// Whether `name` is a package.
    pub is_package: bool,
    /// Size on disk: Installed-Size of dpkg(1) for a package, the file's size otherwise.
    pub bytes: u64,
}

impl Installed {
    pub(crate) fn find(file: &Path) -> Option<Self> {
        let file = file.canonicalize().ok()?;
        let bytes = file.metadata().ok()?.len();
        let alone = || Self { name: file.display().to_string(), is_package: false, bytes };
        Some(package_of(&file).unwrap_or_else(alone))
    }
}

/// Finds a file's package. If /bin is a link to /usr/bin, a package may list the file under either name.
fn package_of(file: &Path) -> Option<Installed> {
    let dpkg = commands::find("dpkg-query")?;
    let begun = Instant::now();
    let ask = |arguments: &[&str]| commands::output(&dpkg, arguments, &|| begun.elapsed() > MOST).ok();
    let merged = file.strip_prefix("/usr").ok().map(|rest| Path::new("/").join(rest));
    let names = [Some(PathBuf::from(file)), merged];
    let owner = names.iter().flatten().find_map(|name| ask(&["-S", name.to_str()?]))?;
    let package = owner_in(&owner)?;
    described(&ask(&["-W", "-f", FIELDS, package])?)
}

/// Fields of a package. The size is in KiB, rounded up for each file.
const FIELDS: &str = "${binary:Package}\t${Version}\t${Installed-Size}\n";

/// The package in a line of `dpkg-query -S`: `podman: /usr/bin/podman`. Lines about diversions have another form.
fn owner_in(said: &str) -> Option<&str> {
    said.lines().find_map(|line| {
        let (packages, _) = line.split_once(": ")?;
        let package = packages.split(',').next()?.trim();
        (!package.is_empty() && !package.contains(' ')).then_some(package)
    })
}

fn described(line: &str) -> Option<Installed> {
    let mut fields = line.lines().next()?.split('\t');
    let (name, version, size) = (fields.next()?, fields.next()?, fields.next()?);
    let bytes = size.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    Some(Installed { name: format!("{name} {version}"), is_package: true, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_file_is_read() {
        let said = "diversion by dash from: /bin/sh\nruncs, runc:amd64: /usr/sbin/runc\n";
        assert_eq!(owner_in(said), Some("runcs"));
        assert_eq!(owner_in(""), None);
        let found = described("runc:amd64\t1.1.5+ds1-1\t9876\n").unwrap();
        assert_eq!((found.name.as_str(), found.bytes), ("runc:amd64 1.1.5+ds1-1", 9876 << 10));
        for wrong in ["", "runc", "runc\t1\t", "runc\t1\t18446744073709551615"] {
            assert_eq!(described(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_of_no_package_has_its_own_size() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, [0; 1234]).unwrap();
        let found = Installed::find(&file).unwrap();
        assert_eq!((found.bytes, found.is_package), (1234, false));
        assert_eq!(Installed::find(&directory.path().join("none")), None);
    }

    #[test]
    fn a_program_of_a_package_has_the_package_s_size() {
        let Some(dpkg) = commands::find("dpkg-query").filter(|_| Path::new("/var/lib/dpkg/status").exists())
        else {
            return println!("skipped: there is no dpkg, or it has no list");
        };
        let begun = Instant::now();
        let found = Installed::find(&dpkg).unwrap();
        if !found.is_package && begun.elapsed() > MOST {
            return println!("skipped: dpkg answers after more than {MOST:?}");
        }
        assert!(found.is_package && found.name.starts_with("dpkg"), "{found:?}");
        assert!(found.bytes > dpkg.metadata().unwrap().len(), "{found:?}");
    }
}
