//! Finds a kernel's headers: installed, or in packages that were unpacked next to the kernel's, together or separately.
//!
//! Packages name each other by their installed paths (`/usr/src/…`). Such a path is looked up below several roots.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tollgate_os::paths::read_regular;
use tollgate_os::private::TrustedDirectory;

use crate::error::{EnvironmentError, plainly, unusable};

const MOST_NEIGHBOURS: usize = 256;
/// Levels above a kernel image that may be its build directory: arch/x86/boot/bzImage.
const MOST_ABOVE: usize = 5;
/// Limit for reading a build's release, which has up to 64 bytes.
const MOST_RELEASE: u64 = 1 << 10;
/// Limit for reading a configuration: Debian's has 270 KiB.
const MOST_CONFIG: u64 = 4 << 20;

/// Directories in which packages were unpacked; the last is the root of the file system.
pub(super) struct Roots(Vec<PathBuf>);

impl Roots {
    /// Roots for a kernel image: the directory above its `boot`, `lib/modules/…` or `usr/lib/modules/…`, then its neighbours.
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

    /// The directory with this installed path. One that another user could replace is skipped, since its contents are executed.
    pub fn directory(&self, installed: &Path) -> Option<PathBuf> {
        let below = installed.strip_prefix("/").ok()?;
        let found = self.0.iter().map(|root| root.join(below));
        found.into_iter().find(|path| path.is_dir() && is_own(path))
    }

    /// Like [`Self::directory`], for any kind of entry.
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

/// Returns whether only root and the effective user can write to a directory. A sticky one does not count: other users cannot
/// replace its files, but can add a Makefile.
fn is_own(directory: &Path) -> bool {
    TrustedDirectory::open(directory).is_ok_and(|place| !place.is_shared())
}

pub(super) struct Headers {
    /// Their installed path.
    pub installed: PathBuf,
    /// Their actual path.
    pub found: PathBuf,
}

impl Headers {
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

    /// The compiler that built the kernel, from its configuration; `gcc` if that does not say.
    pub fn compiler(&self) -> String {
        let config = read_regular(&self.found.join(".config"), MOST_CONFIG).unwrap_or_default();
        let line = String::from_utf8_lossy(&config)
            .lines()
            .find_map(|line| line.strip_prefix("CONFIG_CC_VERSION_TEXT=\"").map(str::to_owned));
        let word = line.as_deref().and_then(|line| line.split([' ', '"']).next()).unwrap_or_default();
        // Some distributions include a triple or omit the name: `x86_64-linux-gnu-gcc-13`, `Debian clang version 19`.
        let is_name =
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
        if is_name && (word.contains("gcc") || word.contains("clang")) {
            word.to_owned()
        } else {
            "gcc".to_owned()
        }
    }
}

/// The kernel's own build directory, if the image is in one of this release. The owner is checked first: nothing is read from
/// a directory that others can write.
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

/// Targets of the links with the installed path `link`, or the path itself if it is a directory.
fn targets(roots: &Roots, link: &Path) -> Vec<PathBuf> {
    let Ok(below) = link.strip_prefix("/") else { return Vec::new() };
    let of = |root: &PathBuf| match fs::read_link(root.join(below)) {
        Ok(target) => Some(followed(link, &target)),
        Err(_) => root.join(below).is_dir().then(|| link.to_owned()),
    };
    roots.0.iter().filter_map(of).collect()
}

/// Resolves a link lexically, without `.` and `..`.
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
