//! Finds a kernel's headers: installed, or in packages that were unpacked beside the kernel's, together or apart.
//!
//! Packages name each other by where they would be installed (`/usr/src/…`). Such a name is looked up below each of several roots.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tollgate_os::paths::read_regular;
use tollgate_os::private::Place;

use crate::error::{EnvironmentError, plainly, unusable};

/// Neighbours that are looked at, at the most.
const MOST_NEIGHBOURS: usize = 256;
/// Directories above a kernel image in which its own build may have been made: arch/x86/boot/bzImage.
const MOST_ABOVE: usize = 5;
/// The most that is read of a build's release: it has up to 64 bytes.
const MOST_RELEASE: u64 = 1 << 10;
/// The most that is read of a configuration: Debian's has 270 KiB.
const MOST_CONFIG: u64 = 4 << 20;

/// Directories in which packages were unpacked; the root of the file system is the last.
pub(super) struct Roots(Vec<PathBuf>);

impl Roots {
    /// Those of a kernel image: above its `boot`, `lib/modules/…` or `usr/lib/modules/…`, then the neighbours of that directory.
    pub fn find(kernel_image: &Path) -> Result<Self, EnvironmentError> {
        let image = fs::canonicalize(kernel_image)
            .map_err(|error| unusable!("{}: {}", kernel_image.display(), plainly(error)))?;
        let beside = image.parent().unwrap_or(Path::new("/"));
        let has_modules = |above: &&Path| above.join("lib/modules").is_dir() || above.join("boot").is_dir();
        let root = beside.ancestors().skip(1).take(4).find(has_modules).unwrap_or(beside);
        let mut roots = vec![root.to_owned()];
        if root != Path::new("/") {
            roots.extend(root.parent().map(neighbours).unwrap_or_default());
            roots.push("/".into());
        }
        Ok(Self(roots))
    }

    /// The directory that would be installed as `installed`. One that another user could exchange is not taken: what is found there is
    /// executed.
    pub fn directory(&self, installed: &Path) -> Option<PathBuf> {
        let below = installed.strip_prefix("/").ok()?;
        let found = self.0.iter().map(|root| root.join(below));
        found.into_iter().find(|path| path.is_dir() && is_own(path))
    }

    /// The same for any entry of a directory.
    pub fn entry(&self, installed: &Path) -> Option<PathBuf> {
        let (above, name) = (installed.parent()?, installed.file_name()?);
        let below = above.strip_prefix("/").ok()?;
        let found = self.0.iter().map(|root| root.join(below));
        found.into_iter().find(|path| path.join(name).exists() && is_own(path)).map(|path| path.join(name))
    }
}

fn neighbours(above: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(above) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .take(MOST_NEIGHBOURS)
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// Whether all that is in a directory is root's or the effective user's. In a sticky one other users can exchange nothing, and can add a
/// Makefile.
fn is_own(directory: &Path) -> bool {
    Place::open(directory).is_ok_and(|place| !place.is_shared())
}

/// A kernel's headers, with its configuration and its build rules.
pub(super) struct Headers {
    /// Where they would be installed.
    pub installed: PathBuf,
    /// Where they are.
    pub found: PathBuf,
}

impl Headers {
    /// Those of the kernel `release`.
    pub fn find(roots: &Roots, kernel_image: &Path, release: &str) -> Result<Self, EnvironmentError> {
        if let Some(own) = own_build(kernel_image, release) {
            return Ok(Self { installed: own.clone(), found: own });
        }
        let usual = [format!("/usr/src/linux-headers-{release}"), format!("/usr/src/kernels/{release}")];
        let linked = ["/lib/modules", "/usr/lib/modules"]
            .map(|modules| PathBuf::from(modules).join(release).join("build"))
            .into_iter()
            .flat_map(|build| targets(roots, &build));
        let candidates = linked.chain(usual.into_iter().map(PathBuf::from));
        let is_usable =
            |found: &Path| found.join("Makefile").is_file() && found.join("Module.symvers").is_file();
        candidates
            .filter_map(|installed| roots.directory(&installed).map(|found| Self { installed, found }))
            .find(|headers| is_usable(&headers.found))
            .ok_or_else(|| {
                unusable!(
                    "the headers of Linux {release} are not installed, nor unpacked beside its kernel (package linux-headers-{release})"
                )
            })
    }

    /// The compiler that the kernel was built with, by its configuration; `gcc` where that does not say.
    pub fn compiler(&self) -> String {
        let config = read_regular(&self.found.join(".config"), MOST_CONFIG).unwrap_or_default();
        let line = String::from_utf8_lossy(&config)
            .lines()
            .find_map(|line| line.strip_prefix("CONFIG_CC_VERSION_TEXT=\"").map(str::to_owned));
        let word = line.as_deref().and_then(|line| line.split([' ', '"']).next()).unwrap_or_default();
        // Some distributions' text has a triple or none: `x86_64-linux-gnu-gcc-13`, `Debian clang version 19`.
        let is_name =
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
        if is_name && (word.contains("gcc") || word.contains("clang")) {
            word.to_owned()
        } else {
            "gcc".to_owned()
        }
    }
}

/// The directory of a kernel's own build, where the image is in one of this release. Whose a directory is comes first: nothing is read in
/// one that others may write.
fn own_build(kernel_image: &Path, release: &str) -> Option<PathBuf> {
    let image = fs::canonicalize(kernel_image).ok()?;
    let is_build = |above: &&Path| {
        let named = read_regular(&above.join("include/config/kernel.release"), MOST_RELEASE);
        named.is_ok_and(|named| named.trim_ascii() == release.as_bytes())
            && above.join("Makefile").is_file()
            && above.join("Module.symvers").is_file()
    };
    let mut all = image.ancestors().skip(1).take(MOST_ABOVE).filter(|above| is_own(above));
    all.find(is_build).map(Path::to_owned)
}

/// Where the links that would be installed as `link` lead, and the directory itself where it is none.
fn targets(roots: &Roots, link: &Path) -> Vec<PathBuf> {
    let Ok(below) = link.strip_prefix("/") else { return Vec::new() };
    let of = |root: &PathBuf| match fs::read_link(root.join(below)) {
        Ok(target) => Some(followed(link, &target)),
        Err(_) => root.join(below).is_dir().then(|| link.to_owned()),
    };
    roots.0.iter().filter_map(of).collect()
}

/// Where a link leads, by names alone, without `.` and `..`.
pub(super) fn followed(link: &Path, target: &Path) -> PathBuf {
    let mut path = PathBuf::new();
    for component in link.parent().unwrap_or(Path::new("/")).join(target).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}
