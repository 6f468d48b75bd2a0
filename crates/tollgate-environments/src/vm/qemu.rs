//! QEMU: how it is found, the machine that it emulates, and its arguments.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use tollgate_engine::Architecture;
use tollgate_engine::clock::Clock;

use super::board::board;
use super::layout::{LINE, MARKS, PORT};
use super::modules::{Has, Modules};
use super::settings::{Accel, Vm, Vmm};
use crate::commands;
use crate::error::{EnvironmentError, unusable};

/// A guest's default memory; the program and its modules take a twentieth of it.
const MEMORY: u64 = 512 << 20;
/// Kernel arguments if instructions are counted: kernel and processes have fixed addresses, and random numbers come only from
/// the seed of `/init` (Documentation/admin-guide/kernel-parameters.txt).
const SAME_AT_EACH_BOOT: &str = " nokaslr norandmaps random.trust_cpu=off random.trust_bootloader=off";

#[derive(Debug, Clone)]
pub(super) struct Qemu {
    pub program: PathBuf,
}

/// How the agent communicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// A port of virtio-console.
    Port,
    /// The second serial line.
    Line,
}

/// Destination of a guest's messages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Messages<'a> {
    /// Those of the kernel and `/init` go to a pipe: its write end, which QEMU inherits.
    Kept(&'a File),
    /// Those of the kernel and `/init` go to two pipes, and the firmware's to a third.
    Followed { kept: &'a File, console: &'a File, firmware: &'a File },
}

#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub arch: Architecture,
    accel: Accel,
    /// Whether its start is timed by the host's clock.
    is_timed: bool,
    /// Rate in kHz of the time stamp counter that a translated guest sees, if it is the host's and known.
    tsc_khz: Option<u64>,
    vmm: Vmm,
    pub cpus: u32,
    memory: u64,
    is_memory_given: bool,
    append: Option<String>,
    pub channel: Channel,
}

impl Qemu {
    pub fn find(arch: Architecture) -> Result<Self, EnvironmentError> {
        let [name, package] = board(arch).qemu;
        let program = commands::find(name)
            .ok_or_else(|| unusable!("vm: {name} is not installed (Debian package {package})"))?;
        Ok(Self { program })
    }

    pub fn version(&self, stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
        commands::run(&self.program, &["--version"], stop)
    }

    /// Returns whether its translator can have plugins.
    pub fn has_plugins(&self, stop: &dyn Fn() -> bool) -> Result<bool, EnvironmentError> {
        let help = commands::output(&self.program, &["--help"], stop)?;
        Ok(help.lines().any(|line| line.starts_with("-plugin ")))
    }

    /// The command of a guest. The initramfs and the monitor's files are inherited under their numbers.
    pub fn command(
        &self,
        machine: &Machine,
        devices: &[String],
        kernel: &OsStr,
        initramfs: &File,
        messages: Messages<'_>,
    ) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![self.program.clone().into()];
        command.extend(machine.arguments().into_iter().map(OsString::from));
        command.extend(devices.iter().map(OsString::from));
        command.extend(["-kernel".into(), kernel.to_owned()]);
        command.extend(["-initrd".into(), format!("/proc/self/fd/{}", initramfs.as_raw_fd()).into()]);
        command.extend(["-append".into(), machine.command_line().into()]);
        command.extend(messages.arguments(machine.arch).into_iter().map(OsString::from));
        command
    }
}

impl Messages<'_> {
    fn arguments(self, arch: Architecture) -> Vec<String> {
        let inherited = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
        let (console, firmware) = match self {
            Self::Kept(kept) => (format!("file,id=console,path={}", inherited(kept)), None),
            Self::Followed { kept, console, firmware } => (
                format!("file,id=console,path={},logfile={}", inherited(console), inherited(kept)),
                // Without firmware, QEMU itself starts a kernel of arm64.
                (arch == Architecture::X86_64)
                    .then(|| format!("file,id=firmware,path={}", inherited(firmware))),
            ),
        };
        let mut arguments = vec!["-chardev".to_owned(), console];
        // SeaBIOS: docs/Debugging.md.
        let device = "isa-debugcon,iobase=0x402,chardev=firmware".to_owned();
        let of_firmware = firmware.map(|to| ["-chardev".to_owned(), to, "-device".to_owned(), device]);
        arguments.extend(of_firmware.into_iter().flatten());
        arguments
    }
}

impl Channel {
    pub fn choose(modules: &Modules, spec: &Vm) -> Result<Self, EnvironmentError> {
        let (bus, machine) = match (spec.vmm, spec.arch) {
            (Vmm::Microvm, _) => ("virtio_mmio", "vmm=microvm"),
            (_, arch) => ("virtio_pci", arch.name()),
        };
        let has = |name| modules.has(name) != Has::No;
        if has("virtio_console") && has(bus) {
            return Ok(Self::Port);
        }
        // The others have one serial line, which has the kernel's messages.
        let is_pc = (spec.vmm, spec.arch) == (Vmm::Qemu, Architecture::X86_64);
        is_pc.then_some(Self::Line).ok_or_else(|| {
            unusable!(
                "vm: {machine} needs the kernel's modules virtio_console and {bus}, but it lacks at least one of them"
            )
        })
    }

    pub fn modules(self, vmm: Vmm) -> &'static [&'static str] {
        match (self, vmm) {
            (Self::Port, Vmm::Qemu) => &["virtio_pci", "virtio_console"],
            (Self::Port, Vmm::Microvm) => &["virtio_mmio", "virtio_console"],
            (Self::Line, _) => &[],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Port => PORT,
            Self::Line => LINE,
        }
    }
}

impl Machine {
    pub fn new(spec: &Vm, accel: Accel, channel: Channel) -> Self {
        // One processor for what is measured, and one for the agent. Only one can be counted.
        let usual = if accel == Accel::Kvm { 2 } else { 1 };
        Self {
            arch: spec.arch,
            accel,
            is_timed: false,
            tsc_khz: None,
            vmm: spec.vmm,
            cpus: spec.cpus.unwrap_or(usual),
            memory: spec.memory.unwrap_or(MEMORY),
            is_memory_given: spec.memory.is_some(),
            append: spec.append.clone(),
            channel,
        }
    }

    /// Returns whether instructions are counted. Under the translator, nothing else can be measured.
    pub fn is_counting(&self) -> bool {
        self.is_translated() && !self.is_timed
    }

    /// Returns whether its kernel may be booted without its decompressor, which chooses the kernel's address.
    pub fn boots_unpacked(&self) -> bool {
        self.is_counting() && self.vmm == Vmm::Qemu && self.arch == Architecture::X86_64 && !self.has_kaslr()
    }

    /// Linux obeys nokaslr anywhere on the command line, so it is left out then.
    fn has_kaslr(&self) -> bool {
        self.append.iter().any(|append| append.split_whitespace().any(|word| word == "kaslr"))
    }

    pub fn is_translated(&self) -> bool {
        self.accel == Accel::Tcg
    }

    pub fn vmm(&self) -> Vmm {
        self.vmm
    }

    pub fn accel(&self) -> Accel {
        self.accel
    }

    /// This machine with the host's clock instead of counted instructions. Its kernel and its `/init` report when they begin.
    pub fn timed(&self) -> Self {
        // Without counted instructions, the translator passes the host's counter through (QEMU's `cpu_get_ticks`). On a busy
        // host, the kernel fails to calibrate it against the PIT, and the machine type microvm has no other timer to calibrate
        // with.
        let has_tsc = self.is_translated() && self.arch == Architecture::X86_64 && self.arch.is_here();
        let hz = Clock::tsc().ok().map(|(clock, _)| clock.hz()).filter(|_| has_tsc);
        Self { is_timed: true, tsc_khz: hz.map(|hz| hz / 1000), ..self.clone() }
    }

    /// Gives it enough memory for an archive of this size and its contents, each in at most half. Fails if the name asks for
    /// less.
    pub fn hold(&mut self, bytes: u64) -> Result<(), EnvironmentError> {
        /// For the kernel, this program, and what commands use.
        const BESIDE: u64 = 256 << 20;
        const STEP: u64 = 256 << 20;
        let needed = (2 * bytes + BESIDE).next_multiple_of(STEP);
        if needed > self.memory && self.is_memory_given {
            return Err(unusable!(
                "vm: memory={}M is too little for the command's files; it needs {}M",
                self.memory >> 20,
                needed >> 20
            ));
        }
        self.memory = self.memory.max(needed);
        Ok(())
    }

    /// All arguments except for the kernel, its command line, the initramfs and the console's file.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["-accel".to_owned(), self.accel.to_string()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        let board = board(self.arch);
        add(&["-cpu", if self.accel == Accel::Kvm { "host" } else { board.cpu }]);
        if self.is_counting() {
            // The clock advances one nanosecond per instruction, and does not wait for the host's while the guest is idle.
            // The guest's date is the same in each run.
            add(&["-icount", "shift=0,sleep=off", "-rtc", "base=2020-01-01T00:00:00,clock=vm"]);
        }
        let bus = match self.vmm {
            Vmm::Qemu => {
                add(&["-machine", if self.is_counting() { board.counting } else { board.machine }]);
                "virtio-serial-pci"
            }
            Vmm::Microvm => {
                add(&["-machine", "microvm,rtc=on,acpi=on"]);
                "virtio-serial-device"
            }
        };
        add(&["-m", &format!("{}M", self.memory >> 20), "-smp", &self.cpus.to_string()]);
        // Names its threads, which pinning needs.
        add(&["-name", "tollgate,debug-threads=on"]);
        add(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        add(&["-serial", "chardev:console", "-chardev", "stdio,id=agent,signal=off"]);
        match self.channel {
            Channel::Port => {
                add(&["-device", bus, "-device", &format!("virtserialport,chardev=agent,name={PORT}")]);
            }
            Channel::Line => add(&["-serial", "chardev:agent"]),
        }
        arguments
    }

    fn command_line(&self) -> String {
        let board = board(self.arch);
        let own = format!("console={} panic=-1 reboot=t rdinit=/init quiet loglevel=4", board.console);
        let translated = if self.is_translated() { board.translated } else { "" };
        let counting = match (self.is_counting(), self.has_kaslr()) {
            (false, _) => "",
            (_, true) => SAME_AT_EACH_BOOT.strip_prefix(" nokaslr").unwrap_or_default(),
            _ => SAME_AT_EACH_BOOT,
        };
        let sooner = match self.vmm {
            Vmm::Qemu if self.is_counting() => board.counted,
            _ => "",
        };
        let timed = if self.is_timed { format!("{}{MARKS}=1 ", board.early) } else { String::new() };
        let rate = self.tsc_khz.map(|khz| format!(" tsc_early_khz={khz}")).unwrap_or_default();
        let append = self.append.as_ref().map(|append| format!(" {append}")).unwrap_or_default();
        format!("{timed}{own}{translated}{counting}{sooner}{rate}{append}")
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.accel == Accel::Kvm { "KVM" } else { "QEMU's translator" };
        let cpus = if self.cpus == 1 { "processor" } else { "processors" };
        let arch = if self.arch == Architecture::X86_64 { "" } else { " for arm64" };
        write!(f, "{}{arch}, {} {cpus}, {} MiB, {by}", self.vmm.name(), self.cpus, self.memory >> 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::EnvironmentKind;

    fn machine(name: &str, accel: Accel) -> Machine {
        let spec = Vm::read(name.strip_prefix("vm:")).unwrap();
        Machine::new(&spec, accel, Channel::Port)
    }

    #[test]
    fn a_translated_guest_counts_and_one_under_kvm_does_not() {
        let counting = machine("vm:exact,memory=1G,append=mitigations=off", Accel::Tcg);
        let arguments = counting.arguments().join(" ");
        assert!(
            arguments.contains("-icount shift=0,sleep=off") && arguments.contains("-m 1024M"),
            "{arguments}"
        );
        let line = counting.command_line();
        if counting.arch == Architecture::X86_64 {
            assert!(
                arguments.contains("-rdrand,-rdseed") && arguments.contains("pc,hpet=off"),
                "{arguments}"
            );
            assert!(line.contains("tsc=reliable no_timer_check nokaslr norandmaps"), "{line}");
            assert!(line.contains(" noapictimer cryptomgr.notests"), "{line}");
        }
        assert!(line.ends_with(" mitigations=off"), "{line}");
        let moved = machine("vm:exact,append=kaslr", Accel::Tcg).command_line();
        assert!(
            !moved.contains("nokaslr") && moved.contains("norandmaps") && moved.ends_with(" kaslr"),
            "{moved}"
        );
        let timed = counting.timed();
        assert!(
            timed.is_translated() && !timed.is_counting() && !timed.arguments().join(" ").contains("icount")
        );
        let line = timed.command_line();
        assert!(!line.contains(SAME_AT_EACH_BOOT) && !line.contains(" noapictimer"), "{line}");
        assert!(line.find(" debug ") < line.find(" quiet ") && line.contains(MARKS), "{line}");
        let kvm = machine("vm:cpus=3", Accel::Kvm);
        let arguments = kvm.arguments().join(" ");
        assert!(
            !arguments.contains("icount") && arguments.contains("-cpu host") && arguments.contains("-smp 3")
        );
        assert!(!kvm.command_line().contains("tsc="));
    }

    #[test]
    fn a_guest_of_arm64_has_its_own_machine_and_no_words_of_a_pc() {
        let counting = machine("vm:exact,arch=arm64,append=quiet", Accel::Tcg);
        let arguments = counting.arguments().join(" ");
        for part in [
            "-cpu neoverse-n1,cntfrq=1000000000 -icount shift=0,sleep=off",
            "-machine virt,gic-version=3,dtb-randomness=off",
            "-device virtio-serial-pci",
        ] {
            assert!(arguments.contains(part), "{part}: {arguments}");
        }
        let line = counting.command_line();
        assert!(line.starts_with("console=ttyAMA0 ") && line.contains(" nokaslr norandmaps"), "{line}");
        assert!(line.ends_with(" randomize_kstack_offset=off cryptomgr.notests quiet"), "{line}");
        let timed = counting.timed();
        assert!(timed.arguments().join(" ").contains("-machine virt,gic-version=3 "), "{timed}");
        let begins = format!("earlycon=pl011,0x9000000 debug {MARKS}=1 console=ttyAMA0");
        assert!(timed.command_line().starts_with(&begins) && timed.tsc_khz.is_none(), "{timed}");
        let file = File::open("/dev/null").unwrap();
        let messages = Messages::Followed { kept: &file, console: &file, firmware: &file };
        let has_firmware = |arch| messages.arguments(arch).concat().contains("isa-debugcon");
        assert_eq!([Architecture::X86_64, Architecture::Arm64].map(has_firmware), [true, false]);
        assert_eq!(counting.to_string(), "qemu for arm64, 1 processor, 512 MiB, QEMU's translator");
    }

    #[test]
    fn without_a_port_only_a_pc_has_a_second_line() {
        let chosen = |name: &str| Channel::choose(&Modules::default(), &Vm::read(Some(name)).unwrap());
        assert_eq!(chosen("arch=x86-64").unwrap(), Channel::Line);
        for (name, machine) in [("arch=arm64", "arm64"), ("arch=x86-64,vmm=microvm", "vmm=microvm")] {
            let why = chosen(name).unwrap_err().to_string();
            assert!(why.starts_with(&format!("vm: {machine} needs the kernel's modules")), "{why}");
        }
    }
}
