//! The kernel that a guest boots.

use std::cmp::Ordering;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tollgate_engine::Architecture;
use tollgate_model::text::excerpt;
use tollgate_os::paths::{PathError, open_regular, read_regular};

use super::board::{self, board};
use super::programs;
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
    /// The bzImage, vmlinux or Image.
    pub file: PathBuf,
    /// As uname(2) gives it in the guest.
    pub release: String,
    /// The directory that contains `boot/` and `lib/modules/`.
    pub root: PathBuf,
}

impl Kernel {
    /// Finds the given kernel, or the machine's own, or the newest one in the directory for kernels. Fails if it cannot be
    /// read, is not a kernel for the architecture, or if there is none.
    pub fn find(given: Option<&Path>, arch: Architecture) -> Result<Self, EnvironmentError> {
        if let Some(file) = given {
            return Self::read(file, arch).map_err(|why| unusable!("vm: kernel={}: {why}", file.display()));
        }
        let own = own();
        let why_not_own = match Self::read(&own, arch) {
            Ok(kernel) => return Ok(kernel),
            Err(why) => format!("{}: {why}", own.display()),
        };
        let directory = directory();
        let found = directory.as_deref().and_then(|directory| newest(directory, arch));
        let debian = board(arch).debian;
        found.ok_or_else(|| {
            let place = directory.map_or_else(
                || format!("a directory that {KERNELS} names"),
                |directory| directory.display().to_string(),
            );
            unusable!(
                "vm: no kernel is found ({why_not_own}); name one with kernel=FILE, or unpack a package into {place}: \
                 dpkg -x linux-image-VERSION-cloud-{debian}_….deb {place} (Debian package linux-image-cloud-{debian})"
            )
        })
    }

    fn read(file: &Path, arch: Architecture) -> Result<Self, String> {
        let file = std::path::absolute(file).map_err(plainly)?;
        let release = release(&file, arch)?;
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
#[derive(Debug)]
pub struct Kernels<T> {
    /// Releases, each with its file or environment, the oldest first. A version's generic kernel comes before its cloud kernel.
    pub found: Vec<(String, T)>,
    /// Files named like kernels that a guest cannot boot, each as a sentence.
    pub left_out: Vec<String>,
}

impl<T> Kernels<T> {
    pub(crate) fn map<U>(self, with: impl Fn(T) -> U) -> Kernels<U> {
        let found = self.found.into_iter().map(|(release, one)| (release, with(one))).collect();
        Kernels { found, left_out: self.left_out }
    }
}

impl Kernels<PathBuf> {
    /// Finds the kernels for an architecture in a directory, in its `boot/`, or one level below. An error is a sentence: the directory
    /// cannot be read.
    pub(crate) fn below(directory: &Path, arch: Architecture) -> Result<Self, String> {
        fs::read_dir(directory).map_err(plainly)?;
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        for file in files(directory) {
            match Kernel::read(&file, arch) {
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

fn newest(directory: &Path, arch: Architecture) -> Option<Kernel> {
    files(directory).filter_map(|file| Kernel::read(&file, arch).ok()).max_by(Kernel::by_age)
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

fn release(file: &Path, arch: Architecture) -> Result<String, String> {
    let right = match arch {
        Architecture::X86_64 => "a bzImage or a vmlinux",
        Architecture::Arm64 => "an uncompressed Image",
    };
    let opened = open_regular(file).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => format!("it is not a file; {right} would be right"),
        io::ErrorKind::PermissionDenied if matches!(error, PathError::Io(_)) => {
            "only root may read it; a copy that you may read, or kernel=FILE, would be right".to_owned()
        }
        _ => plainly(error),
    })?;
    let mut bytes = Vec::new();
    opened.take(MOST_HEAD).read_to_end(&mut bytes).map_err(plainly)?;
    let form = Form::of(&bytes);
    let release = match (form, arch) {
        (Some(Form::BzImage), Architecture::X86_64) => of_bzimage(&bytes),
        (Some(Form::Elf(machine)), Architecture::X86_64) if machine == board(arch).elf => of_banner(&bytes),
        (Some(Form::Image), Architecture::Arm64) => of_banner(&bytes),
        (Some(Form::Elf(machine)), Architecture::Arm64) if machine == board(arch).elf => {
            return Err(format!("QEMU does not boot a vmlinux of arm64; {right} would be right"));
        }
        (Some(Form::Compressed(why)), _) => return Err(format!("{why}; {right} would be right")),
        (Some(form), _) => {
            let of = form.architecture();
            return Err(format!("it is a kernel for {of}, but the guest's processor is {arch}"));
        }
        (None, _) => None,
    };
    release.ok_or_else(|| format!("it is not a kernel for {arch}; {right} would be right"))
}

/// The kind of a file with a kernel, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// For x86-64: it has a 64-bit entry (XLF_KERNEL_64 in `xloadflags` at 236h; protocol 2.12 or later, at 206h).
    BzImage,
    /// The same without that entry.
    BzImage32,
    /// For arm64 (Documentation/arm64/booting.rst: magic at 38h in a header of 40h bytes).
    Image,
    /// A vmlinux, with its machine.
    Elf(u16),
    /// Compressed by gzip, or in an EFI program that unpacks it (drivers/firmware/efi/libstub/zboot-header.S); why it is not booted.
    Compressed(&'static str),
}

impl Form {
    fn of(bytes: &[u8]) -> Option<Self> {
        const KERNEL_64: u16 = 1;
        let word = |at: usize| bytes.get(at..at + 2).map(|word| u16::from_le_bytes([word[0], word[1]]));
        if bytes.get(0x202..0x206) == Some(b"HdrS") {
            let is_32 = word(0x206) >= Some(0x20c) && word(0x236).is_some_and(|flags| flags & KERNEL_64 == 0);
            return Some(if is_32 { Self::BzImage32 } else { Self::BzImage });
        }
        if bytes.len() >= 0x40 && bytes.get(0x38..0x3c) == Some(b"ARMd") {
            return Some(Self::Image);
        }
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Compressed("it is compressed; zcat(1) unpacks it")),
            [b'M', b'Z', _, _, b'z', b'i', b'm', b'g', ..] => {
                Some(Self::Compressed("it is an EFI zboot image, which only firmware unpacks"))
            }
            _ => programs::machine(bytes).map(Self::Elf),
        }
    }

    fn architecture(self) -> String {
        match self {
            Self::Elf(machine) => board::named(machine),
            Self::BzImage32 => "x86 with 32 bits".to_owned(),
            Self::Image => Architecture::Arm64.to_string(),
            Self::BzImage | Self::Compressed(_) => Architecture::X86_64.to_string(),
        }
    }
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
fn of_banner(bytes: &[u8]) -> Option<String> {
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
        assert_eq!(of_banner(vmlinux).as_deref(), Some("6.12.1+"));
    }

    fn image(release: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x40];
        bytes[..2].copy_from_slice(b"MZ");
        bytes[0x38..0x3c].copy_from_slice(b"ARMd");
        bytes.extend(format!("Linux version {release} (builder) #1 SMP\0").bytes());
        bytes
    }

    #[test]
    fn a_kernel_is_for_one_architecture() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("vmlinuz");
        let said = |bytes: &[u8], arch| {
            fs::write(&place, bytes).unwrap();
            release(&place, arch)
        };
        let arm64 = image("6.1.0-57-cloud-arm64");
        assert_eq!(said(&arm64, Architecture::Arm64).as_deref(), Ok("6.1.0-57-cloud-arm64"));
        let why = "it is a kernel for arm64, but the guest's processor is x86-64";
        assert_eq!(said(&arm64, Architecture::X86_64), Err(why.to_owned()));
        let why = "it is a kernel for x86-64, but the guest's processor is arm64";
        assert_eq!(said(&bzimage("6.1.0"), Architecture::Arm64), Err(why.to_owned()));
        let mut vmlinux = b"\x7fELF\x02\x01".to_vec();
        vmlinux.resize(18, 0);
        vmlinux.extend(183_u16.to_le_bytes());
        assert_eq!(
            said(&vmlinux, Architecture::X86_64).unwrap_err(),
            "it is a kernel for arm64, but the guest's processor is x86-64"
        );
        for (bytes, why) in [
            (&vmlinux[..], "QEMU does not boot a vmlinux of arm64"),
            (b"\x1f\x8b\x08", "it is compressed; zcat(1) unpacks it"),
            (b"MZ\0\0zimg\0", "it is an EFI zboot image"),
            // The header, or the banner, is not there as a whole.
            (&arm64[..0x3f], "it is not a kernel for arm64"),
            (&arm64[..0x50], "it is not a kernel for arm64"),
        ] {
            let said = said(bytes, Architecture::Arm64).unwrap_err();
            assert!(
                said.starts_with(why) && said.ends_with("an uncompressed Image would be right"),
                "{said}"
            );
        }
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
        let found = newest(directory.path(), Architecture::X86_64).unwrap();
        assert_eq!(found.release, "6.1.0-10-cloud-amd64");
        assert!(newest(&directory.path().join("none"), Architecture::X86_64).is_none());
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
        let Kernels { found, left_out } = Kernels::below(directory.path(), Architecture::X86_64).unwrap();
        let releases: Vec<&str> = found.iter().map(|(release, _)| release.as_str()).collect();
        assert_eq!(releases, ["6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64"]);
        assert_eq!(found[0].1, directory.path().join("b/boot/vmlinuz-6.1.0-9-cloud-amd64"));
        let said = left_out.join("\n");
        for part in [
            "no lib/modules/6.12.1 beside it",
            "it is not a kernel for x86-64",
            "it is a kernel for x86 with 32 bits, but the guest's processor is x86-64",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(Kernels::below(&directory.path().join("none"), Architecture::X86_64).is_err());
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
        assert_eq!(Kernel::read(&place("vmlinuz"), Architecture::X86_64).unwrap().facts(), []);
        fs::remove_file(place("config-9.9")).unwrap();
        fs::write(place("config-9.9"), "CONFIG_X86=y\n").unwrap();
        assert_eq!(Kernel::read(&place("vmlinuz"), Architecture::X86_64).unwrap().facts().len(), 1);
        fifo("vmlinuz-fifo");
        assert!(
            Kernel::read(&place("vmlinuz-fifo"), Architecture::X86_64).unwrap_err().contains("is a FIFO")
        );
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        let why = Kernel::find(Some(Path::new("/etc/passwd")), Architecture::X86_64).unwrap_err().to_string();
        assert!(why.starts_with("vm: kernel=/etc/passwd: it is not a kernel"), "{why}");
        let why = Kernel::find(Some(Path::new("/nowhere")), Architecture::X86_64).unwrap_err().to_string();
        assert_eq!(why, "vm: kernel=/nowhere: No such file or directory");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), offset: u16) {
            let mut bytes = bytes;
            of_banner(&bytes);
            Form::of(&bytes);
            Form::of(&[b"\x7fELF\x02\x01", bytes.as_slice()].concat());
            Form::of(&[b"MZ\0\0zimg", bytes.as_slice()].concat());
            if bytes.len() > 0x210 {
                bytes[0x202..0x206].copy_from_slice(b"HdrS");
                bytes[0x20e..0x210].copy_from_slice(&offset.to_le_bytes());
            }
            of_bzimage(&bytes);
        }
    }
}
