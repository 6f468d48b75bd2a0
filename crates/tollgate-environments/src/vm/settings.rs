use std::path::{Path, PathBuf};

use tollgate_engine::Architecture;
use tollgate_model::text::excerpt;

use crate::pairs::{Changes, Key, one_of, words};
use crate::ram::OnRam;

pub(crate) const KEYS: &[Key] = &[
    // A guest consists of only its kernel and its command line.
    Key::own("kernel", "FILE").changes(Changes::AnyFact),
    Key::own("append", "TEXT").plain().changes(Changes::AnyFact),
    Key::own("audit", "FILE").changes(Changes::Facts(&["audit."])),
    Key::one_of("arch", &Architecture::WORDS),
    Key::own("program", "FILE"),
    Key::own("cpus", "N").plain().changes(Changes::Facts(&["cpu."])),
    Key::own("memory", "SIZE").plain().changes(Changes::Facts(&["memory."])),
    Key::one_of("accel", Accel::WORDS),
    Key::one_of("vmm", Vmm::WORDS),
    Key::one_of("cache", Cache::WORDS),
    Key::one_of("on", &["ram", "brd", "loop"]).or("`ram:FS`"),
    Key::alone("exact"),
];
/// No machine of QEMU has more processors.
const MOST_CPUS: u32 = 255;
/// A guest unpacks the program and its modules, and works in the rest.
const LEAST_MEMORY: u64 = 128 << 20;
/// No processor addresses more.
const MOST_MEMORY: u64 = 1 << 46;

/// `vm[:kernel=FILE][,append=TEXT][,audit=FILE][,arch=x86-64|arm64][,program=FILE][,cpus=N][,memory=SIZE][,accel=kvm|tcg][,vmm=qemu|microvm][,cache=none|writeback][,on=ram|brd|loop[:FS]][,exact]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Vm {
    /// A bzImage, vmlinux or Image; `None` for the machine's own, or the newest that is found.
    pub kernel: Option<PathBuf>,
    pub append: Option<String>,
    /// Rules of auditctl(8), or those of this machine.
    pub audit: Option<PathBuf>,
    pub arch: Architecture,
    /// This program for the guest's architecture, if it is not found.
    pub program: Option<PathBuf>,
    pub cpus: Option<u32>,
    /// In bytes.
    pub memory: Option<u64>,
    /// `None` for KVM if it executes ring 0 on the processor, otherwise the translator.
    pub accel: Option<Accel>,
    pub vmm: Vmm,
    pub cache: Option<Cache>,
    /// The file system on a block device in its memory in which files are measured; `None` without such a device.
    pub on: Option<OnRam>,
    /// Whether the translator counts instructions even if KVM would work.
    pub exact: bool,
}

words! {
    Accel:
    /// KVM: the processor.
    Kvm = "kvm",
    /// QEMU's translator.
    Tcg = "tcg"
}

words! {
    /// The machine that QEMU emulates.
    Vmm:
    /// A PC with PCI and firmware.
    Qemu = "qemu",
    /// QEMU's machine type microvm: no PCI, virtio over MMIO, a short firmware.
    Microvm = "microvm"
}

words! {
    /// How the host caches a disk's file.
    Cache:
    /// Not at all: O_DIRECT.
    None = "none",
    /// In its page cache.
    Writeback = "writeback"
}

// Not derived: the macro's other types have no default.
#[allow(clippy::derivable_impls)]
impl Default for Vmm {
    fn default() -> Self {
        Self::Qemu
    }
}

impl Vm {
    /// Checks that its keys can be combined.
    pub fn checked(self) -> Result<Self, String> {
        if self.exact && self.accel == Some(Accel::Kvm) {
            Err("exact counts instructions, which accel=kvm cannot do; omit one of them".to_owned())
        } else if self.arch == Architecture::Arm64 && self.vmm == Vmm::Microvm {
            Err("QEMU's machine type microvm is x86-64's; omit vmm=microvm or arch=arm64".to_owned())
        } else {
            Ok(self)
        }
    }

    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "exact" => self.exact = true,
            "kernel" if value.is_empty() => return Err("kernel is a file with a Linux kernel".to_owned()),
            "program" if value.is_empty() => return Err("program is a file with tollgate".to_owned()),
            "program" => self.program = Some(Path::new(value).to_owned()),
            "arch" => {
                self.arch = {
                    let known = Architecture::ALL.into_iter().find(|known| known.name() == value);
                    known.ok_or_else(|| one_of(key, value, &Architecture::WORDS))?
                }
            }
            "kernel" => self.kernel = Some(Path::new(value).to_owned()),
            "audit" if value.is_empty() => return Err("audit is a file with rules of auditctl".to_owned()),
            "audit" => self.audit = Some(Path::new(value).to_owned()),
            "append" => self.append = Some(value.to_owned()),
            "cpus" => {
                let number = value.parse().ok().filter(|number| (1..=MOST_CPUS).contains(number));
                self.cpus = Some(number.ok_or_else(|| {
                    format!("cpus is a number from 1 to {MOST_CPUS}, not `{}`", excerpt(value))
                })?);
            }
            "memory" => self.memory = Some(memory(value)?),
            "accel" => self.accel = Some(Accel::parse(key, value)?),
            "cache" => self.cache = Some(Cache::parse(key, value)?),
            "on" => {
                self.on = Some(value.parse().map_err(|why| format!("on is `{}`: {why}", excerpt(value)))?)
            }
            _ => self.vmm = Vmm::parse(key, value)?,
        }
        Ok(())
    }

    pub fn pairs(&self) -> Vec<String> {
        let of = |key: &str, value: Option<String>| value.map(|value| format!("{key}={value}"));
        [
            of("kernel", self.kernel.as_ref().map(|file| file.display().to_string())),
            of("append", self.append.clone()),
            of("audit", self.audit.as_ref().map(|file| file.display().to_string())),
            of("arch", (!self.arch.is_here()).then(|| self.arch.name().to_owned())),
            of("program", self.program.as_ref().map(|file| file.display().to_string())),
            of("cpus", self.cpus.map(|cpus| cpus.to_string())),
            of("memory", self.memory.map(|bytes| format!("{}M", bytes >> 20))),
            of("accel", self.accel.map(|accel| accel.name().to_owned())),
            of("vmm", (self.vmm != Vmm::Qemu).then(|| self.vmm.name().to_owned())),
            of("cache", self.cache.map(|cache| cache.name().to_owned())),
            of("on", self.on.as_ref().map(OnRam::to_string)),
            self.exact.then(|| "exact".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Parses `512M` or `2G`, in whole MiB.
fn memory(value: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "memory is a size of at least {}M, such as 512M or 2G, not `{}`",
            LEAST_MEMORY >> 20,
            excerpt(value)
        )
    };
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match value[digits.len()..].to_ascii_uppercase().as_str() {
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(wrong()),
    };
    let number = digits.parse::<u64>().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| (LEAST_MEMORY..=MOST_MEMORY).contains(bytes));
    bytes.ok_or_else(wrong)
}
