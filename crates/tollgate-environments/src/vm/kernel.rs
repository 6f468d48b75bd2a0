//! The kernel that a guest boots.

use std::cmp::Ordering;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tollgate_model::text::excerpt;
use tollgate_os::paths::{PathError, open_regular, read_regular};

use crate::error::{EnvironmentError, plainly, unusable};

/// Variable that names a directory of unpacked kernel packages.
pub(crate) const KERNELS: &str = "TOLLGATE_KERNELS";
/// That directory if the variable is not set, below the user's data directory.
const USUAL: &str = "tollgate/kernels";
/// Bytes of a kernel that are read to find its release.
const MOST_HEAD: u64 = 64 << 20;
/// The longest release (`__NEW_UTS_LEN`).
const MOST_RELEASE: usize = 64;
const MOST_DIRECTORIES: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// The bzImage or vmlinux.
    pub file: PathBuf,
    /// As uname(2) gives it in the guest.
    pub release: String,
    /// The directory that contains `boot/` and `lib/modules/`.
    pub root: PathBuf,
}

impl Kernel {
    /// Finds the given kernel, or the machine's own, or the newest one in the directory for kernels. Fails if it cannot be
    /// read, is not a kernel, or if there is none.
    pub fn find(given: Option<&Path>) -> Result<Self, EnvironmentError> {
        if let Some(file) = given {
            return Self::read(file).map_err(|why| unusable!("vm: kernel={}: {why}", file.display()));
        }
        let own = own();
        let why_not_own = match Self::read(&own) {
            Ok(kernel) => return Ok(kernel),
            Err(why) => format!("{}: {why}", own.display()),
        };
        let directory = directory();
        let found = directory.as_deref().map(newest).unwrap_or_default();
        found.ok_or_else(|| {
            let place = directory.map_or_else(
                || format!("a directory that {KERNELS} names"),
                |directory| directory.display().to_string(),
            );
            unusable!(
                "vm: no kernel is found ({why_not_own}); name one with kernel=FILE, or unpack a package into {place}: \
                 dpkg -x linux-image-VERSION-cloud-amd64_….deb {place} (Debian package linux-image-cloud-amd64)"
            )
        })
    }

    fn read(file: &Path) -> Result<Self, String> {
        let file = std::path::absolute(file).map_err(plainly)?;
        let release = release(&file)?;
        let parent = file.parent().unwrap_or(Path::new("/"));
        let has_modules = |root: &&Path| modules_below(root, &release).is_some();
        // A kernel whose modules are not found may need none.
        let root = parent.ancestors().take(3).find(has_modules).unwrap_or(parent).to_owned();
        Ok(Self { file, release, root })
    }

    /// Orders older releases first, and within a version the cloud kernel last.
    fn by_age(one: &Self, other: &Self) -> Ordering {
        let of = |kernel: &Self| (version(&kernel.release), kernel.file.clone());
        of(one).cmp(&of(other))
    }

    pub fn modules(&self) -> Option<PathBuf> {
        modules_below(&self.root, &self.release)
    }

    /// Files from which facts of the guest are read: its configuration, if that is in the kernel's directory.
    pub fn facts(&self) -> Vec<(String, Vec<u8>)> {
        const MOST: u64 = 4 << 20;
        let name = format!("config-{}", self.release);
        let read = read_regular(&self.file.with_file_name(&name), MOST);
        read.map_or_else(|_| Vec::new(), |bytes| vec![(format!("boot/{name}"), bytes)])
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {} ({})", self.release, self.file.display())
    }
}

fn modules_below(root: &Path, release: &str) -> Option<PathBuf> {
    let places = ["lib/modules", "usr/lib/modules"].map(|place| root.join(place).join(release));
    places.into_iter().find(|place| place.join("kernel").is_dir() || place.join("modules.order").is_file())
}

fn own() -> PathBuf {
    let name = rustix::system::uname();
    Path::new("/boot").join(format!("vmlinuz-{}", name.release().to_string_lossy()))
}

pub(super) fn directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(KERNELS)
        .or_else(|| set("XDG_DATA_HOME").map(|data| data.join(USUAL)))
        .or_else(|| set("HOME").map(|home| home.join(".local/share").join(USUAL)))
}

/// The kernels in a directory of unpacked packages.
#[derive(Debug, Default)]
pub struct Kernels {
    /// Releases and files, the oldest release first. A version's generic kernel comes before its cloud kernel.
    pub found: Vec<(String, PathBuf)>,
    /// Files named like kernels that a guest cannot boot, each as a sentence.
    pub left_out: Vec<String>,
}

impl Kernels {
    /// Finds the kernels in a directory, in its `boot/`, or one level below.
    ///
    /// # Errors
    /// A sentence: the directory cannot be read.
    pub fn below(directory: &Path) -> Result<Self, String> {
        fs::read_dir(directory).map_err(plainly)?;
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        for file in files(directory) {
            match Kernel::read(&file) {
                Ok(kernel) if kernel.modules().is_some() => found.push(kernel),
                Ok(Kernel { release, .. }) => left_out.push(format!(
                    "{}: no lib/modules/{release} beside it; unpack the whole package",
                    file.display()
                )),
                Err(why) => left_out.push(format!("{}: {why}", file.display())),
            }
        }
        found.sort_by(Kernel::by_age);
        left_out.sort_unstable();
        Ok(Self { found: found.into_iter().map(|kernel| (kernel.release, kernel.file)).collect(), left_out })
    }
}

fn newest(directory: &Path) -> Option<Kernel> {
    files(directory).filter_map(|file| Kernel::read(&file).ok()).max_by(Kernel::by_age)
}

/// Files named like kernels. Packages may be unpacked into one directory or each into its own.
fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut places = vec![directory.to_owned(), directory.join("boot")];
    let inner = fs::read_dir(directory).into_iter().flatten().flatten().take(MOST_DIRECTORIES);
    places.extend(inner.map(|entry| entry.path().join("boot")));
    let files = places.into_iter().flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten());
    let is_kernel = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("vmlinuz") || name.starts_with("bzImage")
    };
    files.take(MOST_DIRECTORIES).map(|entry| entry.path()).filter(is_kernel)
}

/// The numbers of a release, and whether it is a cloud kernel, which is smaller than the generic one and boots faster.
fn version(release: &str) -> (Vec<u64>, bool) {
    let numbers = release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    (numbers.take(6).collect(), release.contains("cloud"))
}

fn release(file: &Path) -> Result<String, String> {
    let opened = open_regular(file).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => "it is not a file; a bzImage or a vmlinux would be right".to_owned(),
        io::ErrorKind::PermissionDenied if matches!(error, PathError::Io(_)) => {
            "only root may read it; a copy that you may read, or kernel=FILE, would be right".to_owned()
        }
        _ => plainly(error),
    })?;
    let mut bytes = Vec::new();
    opened.take(MOST_HEAD).read_to_end(&mut bytes).map_err(plainly)?;
    if is_for_others(&bytes) {
        return Err("it is a kernel for an architecture other than x86-64".to_owned());
    }
    let found = if bytes.starts_with(b"\x7fELF") { of_vmlinux(&bytes) } else { of_bzimage(&bytes) };
    found.ok_or_else(|| "it is not a kernel for x86; a bzImage or a vmlinux would be right".to_owned())
}

/// Returns whether it is a vmlinux whose machine is not x86-64 (`e_machine`, elf(5)), or a bzImage without a 64-bit entry
/// (XLF_KERNEL_64 in `xloadflags` at 236h; protocol 2.12 or later, at 206h).
fn is_for_others(bytes: &[u8]) -> bool {
    const X86_64: u16 = 62;
    const KERNEL_64: u16 = 1;
    let word = |at: usize| bytes.get(at..at + 2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    if bytes.starts_with(b"\x7fELF") {
        return word(18).is_some_and(|machine| machine != X86_64);
    }
    bytes.get(0x202..0x206) == Some(b"HdrS")
        && word(0x206) >= Some(0x20c)
        && word(0x236).is_some_and(|flags| flags & KERNEL_64 == 0)
}

/// The release in the setup header (Documentation/arch/x86/boot.rst: magic at 202h, `kernel_version` at 20Eh, less 200h).
fn of_bzimage(bytes: &[u8]) -> Option<String> {
    if bytes.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let offset = u16::from_le_bytes(bytes.get(0x20e..0x210)?.try_into().ok()?);
    first_word(bytes.get(usize::from(offset) + 0x200..)?)
}

/// The release in the banner, `Linux version 6.1.0 (…`.
fn of_vmlinux(bytes: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"Linux version ";
    let mut places = bytes.windows(BANNER.len()).enumerate().filter(|(_, window)| *window == BANNER);
    // The kernel also contains the format string of its banner.
    places.find_map(|(at, _)| {
        first_word(bytes.get(at + BANNER.len()..)?)
            .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    })
}

fn first_word(bytes: &[u8]) -> Option<String> {
    let end =
        bytes.iter().take(MOST_RELEASE + 1).position(|byte| byte.is_ascii_whitespace() || *byte == 0)?;
    let word = std::str::from_utf8(&bytes[..end]).ok()?;
    // It becomes part of paths.
    let is_release = |c: char| c.is_ascii_alphanumeric() || "._+-~".contains(c);
    let fits = !word.is_empty() && !word.starts_with('.') && word.chars().all(is_release);
    fits.then(|| excerpt(word).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bzimage(release: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes.truncate(0x300);
        bytes.extend(format!("{release} (builder) #1 SMP\0").bytes());
        bytes
    }

    #[test]
    fn the_release_stands_in_the_header() {
        assert_eq!(of_bzimage(&bzimage("6.1.0-50-cloud-amd64")).as_deref(), Some("6.1.0-50-cloud-amd64"));
        assert_eq!(of_bzimage(&bzimage("../../etc")), None);
        assert_eq!(of_bzimage(&bzimage("a/b")), None);
        assert_eq!(of_bzimage(b"no kernel"), None);
        let vmlinux = b"\x7fELF....Linux version %s (%s)\0Linux version 6.12.1+ (x@y) #1\0";
        assert_eq!(of_vmlinux(vmlinux).as_deref(), Some("6.12.1+"));
    }

    #[test]
    fn the_newest_is_taken_and_of_a_version_the_smaller() {
        let directory = tempfile::tempdir().unwrap();
        for (package, release) in [
            ("a", "6.1.0-9-amd64"),
            ("b", "6.1.0-10-amd64"),
            ("c", "6.1.0-10-cloud-amd64"),
            ("d", "5.10.0-99-amd64"),
        ] {
            let boot = directory.path().join(package).join("boot");
            fs::create_dir_all(&boot).unwrap();
            fs::write(boot.join(format!("vmlinuz-{release}")), bzimage(release)).unwrap();
        }
        let found = newest(directory.path()).unwrap();
        assert_eq!(found.release, "6.1.0-10-cloud-amd64");
        assert!(newest(&directory.path().join("none")).is_none());
    }

    #[test]
    fn kernels_with_modules_are_found_by_release_and_others_are_said() {
        let directory = tempfile::tempdir().unwrap();
        let unpack = |package: &str, bytes: Vec<u8>, release: &str| {
            let root = directory.path().join(package);
            fs::create_dir_all(root.join("boot")).unwrap();
            fs::create_dir_all(root.join("lib/modules/6.1.0-9-cloud-amd64/kernel")).unwrap();
            fs::create_dir_all(root.join("lib/modules/6.1.0-10-cloud-amd64/kernel")).unwrap();
            fs::write(root.join("boot").join(format!("vmlinuz-{release}")), bytes).unwrap();
        };
        unpack("a", bzimage("6.1.0-10-cloud-amd64"), "6.1.0-10-cloud-amd64");
        unpack("b", bzimage("6.1.0-9-cloud-amd64"), "6.1.0-9-cloud-amd64");
        unpack("c", bzimage("6.12.1"), "6.12.1");
        unpack("d", b"MZ and no header".to_vec(), "arm64");
        let mut small = bzimage("6.1.0-9-686");
        small[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        unpack("e", small, "6.1.0-9-686");
        let Kernels { found, left_out } = Kernels::below(directory.path()).unwrap();
        let releases: Vec<&str> = found.iter().map(|(release, _)| release.as_str()).collect();
        assert_eq!(releases, ["6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64"]);
        assert_eq!(found[0].1, directory.path().join("b/boot/vmlinuz-6.1.0-9-cloud-amd64"));
        let said = left_out.join("\n");
        for part in [
            "no lib/modules/6.12.1 beside it",
            "is not a kernel for x86",
            "an architecture other than x86-64",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(Kernels::below(&directory.path().join("none")).is_err());
    }

    #[test]
    fn a_fifo_beside_a_kernel_or_in_its_place_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode};
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let fifo = |name: &str| {
            rustix::fs::mknodat(CWD, place(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        };
        fs::write(place("vmlinuz"), bzimage("9.9")).unwrap();
        fifo("config-9.9");
        assert_eq!(Kernel::read(&place("vmlinuz")).unwrap().facts(), []);
        fs::remove_file(place("config-9.9")).unwrap();
        fs::write(place("config-9.9"), "CONFIG_X86=y\n").unwrap();
        assert_eq!(Kernel::read(&place("vmlinuz")).unwrap().facts().len(), 1);
        fifo("vmlinuz-fifo");
        assert!(Kernel::read(&place("vmlinuz-fifo")).unwrap_err().contains("is a FIFO"));
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        let why = Kernel::find(Some(Path::new("/etc/passwd"))).unwrap_err().to_string();
        assert!(why.starts_with("vm: kernel=/etc/passwd: it is not a kernel"), "{why}");
        let why = Kernel::find(Some(Path::new("/nowhere"))).unwrap_err().to_string();
        assert_eq!(why, "vm: kernel=/nowhere: No such file or directory");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), offset: u16) {
            let mut bytes = bytes;
            of_vmlinux(&bytes);
            if bytes.len() > 0x210 {
                bytes[0x202..0x206].copy_from_slice(b"HdrS");
                bytes[0x20e..0x210].copy_from_slice(&offset.to_le_bytes());
            }
            of_bzimage(&bytes);
        }
    }
}
