//! Links to a kernel's headers, so that they find each other although their packages are not installed.
//!
//! Each header directory becomes a directory of links. A link in the package is replaced by one to the entry that was found.
//! A Makefile that includes another by its absolute path is copied, with the path of the links instead.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tollgate_os::paths::read_regular;

use crate::error::{EnvironmentError, plainly, unusable};

use super::headers::{Headers, Roots, followed};

const MOST_DIRECTORIES: usize = 4;
/// Limit for reading a Makefile in bytes; the kernel's has 70 KiB.
const MOST_MAKEFILE: u64 = 1 << 20;

/// Makes `into` and the links in it. Returns the directory for `make -C`.
pub(super) fn lay(roots: &Roots, headers: &Headers, into: &Path) -> Result<PathBuf, EnvironmentError> {
    fs::create_dir(into).map_err(|error| fault(into, error))?;
    let mut links = Links { roots, into, laid: Vec::new() };
    links.directory(&headers.installed, &headers.found)
}

fn fault(path: &Path, error: std::io::Error) -> EnvironmentError {
    unusable!("{}: {}", path.display(), plainly(error))
}

struct Links<'a> {
    roots: &'a Roots,
    into: &'a Path,
    /// The directories that have links, by their installed paths.
    laid: Vec<(PathBuf, PathBuf)>,
}

impl Links<'_> {
    /// Makes a directory of links to the entries of `found`, whose installed path is `installed`.
    fn directory(&mut self, installed: &Path, found: &Path) -> Result<PathBuf, EnvironmentError> {
        if let Some((_, own)) = self.laid.iter().find(|(known, _)| known == installed) {
            return Ok(own.clone());
        }
        if self.laid.len() == MOST_DIRECTORIES {
            return Err(unusable!("the Makefiles of the headers include too many others"));
        }
        let own = self.into.join(self.laid.len().to_string());
        fs::create_dir(&own).map_err(|error| fault(&own, error))?;
        self.laid.push((installed.to_owned(), own.clone()));
        for entry in fs::read_dir(found).map_err(|error| fault(found, error))? {
            let entry = entry.map_err(|error| fault(found, error))?;
            let (path, link) = (entry.path(), own.join(entry.file_name()));
            match fs::read_link(&path) {
                Ok(target) => {
                    let named = followed(&installed.join(entry.file_name()), &target);
                    let real = self.roots.entry(&named).ok_or_else(|| absent(&path, &named))?;
                    symlink(real, &link).map_err(|error| fault(&link, error))?;
                }
                Err(_) if entry.file_name() == "Makefile" => self.makefile(&path, &link)?,
                Err(_) => symlink(&path, &link).map_err(|error| fault(&link, error))?,
            }
        }
        Ok(own)
    }

    /// Copies a Makefile to `own`, with absolute paths of included files changed to the links.
    fn makefile(&mut self, makefile: &Path, own: &Path) -> Result<(), EnvironmentError> {
        let text = read_regular(makefile, MOST_MAKEFILE).map_err(|error| fault(makefile, error.into()))?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = Vec::new();
        let mut is_other = false;
        for line in text.lines() {
            let included = line.strip_prefix("include ").map(|path| Path::new(path.trim()));
            match included.filter(|path| path.is_absolute()) {
                Some(path) => {
                    lines.push(format!("include {}", self.included(makefile, path)?.display()));
                    is_other = true;
                }
                None => lines.push(line.to_owned()),
            }
        }
        if is_other {
            fs::write(own, lines.join("\n") + "\n").map_err(|error| fault(own, error))
        } else {
            symlink(makefile, own).map_err(|error| fault(own, error))
        }
    }

    fn included(&mut self, by: &Path, path: &Path) -> Result<PathBuf, EnvironmentError> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(absent(by, path));
        };
        let found = self.roots.directory(above).ok_or_else(|| absent(by, above))?;
        Ok(self.directory(above, &found)?.join(name))
    }
}

fn absent(by: &Path, named: &Path) -> EnvironmentError {
    let mut names = named.components().filter_map(|component| component.as_os_str().to_str());
    let package = names.find(|name| name.starts_with("linux-") || name.starts_with("kernel-"));
    let package = package.map(|name| format!(" (package {name})")).unwrap_or_default();
    unusable!(
        "{} needs {}, which is neither installed nor unpacked beside the kernel{package}",
        by.display(),
        named.display()
    )
}
