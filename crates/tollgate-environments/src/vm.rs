//! A guest with a Linux of its own, in QEMU. This program is its `/init`, and the agent in it.
//!
//! - Parsing and choosing: `settings` is what its name asks for, `board` what differs between architectures. `kernel` is the file that is
//!   booted, and its release, `vmlinux` what it unpacks to; `program` its first process. `kvm` decides whether the processor executes the guest.
//! - Root file system: `initramfs` makes it in memory. `modules` selects the kernel modules, and `module` is one of our own.
//!   `programs` are the host's programs for it, `audit` the one that loads rules, `tree` the host's files that commands need.
//!   `planted` is how `/init` makes them and executes the commands, and `git_index` what it changes for git. `file_system` has modules and packages of file systems.
//!   `layout` is shared by both sides.
//! - Devices: `devices` has the `disk`, where the guest measures files, and `share`, the host's program directories. `on_ram`
//!   is a file system on a block device in its memory.
//! - Running: `qemu` has the monitor's arguments, `qmp` its protocol. `plugin` watches instructions: `ring` is what it shares
//!   with QEMU, `executed` reads that. `console` has the guest's messages. `pin` places the monitor's threads. `facts` is what the host
//!   knows of a guest.
//! - Inside: `init` leads from `/init` to the agent, and `inside` is what the agent reports.

mod audit;
mod board;
mod console;
mod devices;
mod disk;
mod executed;
mod facts;
mod file_system;
mod git_index;
mod init;
mod initramfs;
pub mod inside;
mod kernel;
mod kvm;
mod layout;
mod module;
mod modules;
mod on_ram;
mod pin;
mod planted;
mod plugin;
mod program;
mod programs;
mod qemu;
mod qmp;
mod ring;
mod settings;
mod share;
mod tree;
mod vmlinux;

use std::cell::{OnceCell, RefCell};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use tollgate_engine::Architecture;
use tollgate_engine::aspect::Phase;
use tollgate_engine::session::{InstructionLog, Mark, Outside};
use tollgate_engine::versus::Order;
use tollgate_engine::versus::counted::{self, Rounds};
use tollgate_model::Fact;

use crate::commands::quoted;
use crate::container::Paths;
use crate::error::{EnvironmentError, bytes, plainly, unusable};
use crate::making::Making;
use crate::ram::OnRam;
use crate::ready::{Begin, Ready};
use crate::started::{self, Start, Started};
use crate::wanted::Wanted;

use console::Console;
use devices::Devices;
pub use init::serve_if_init;
use initramfs::Initramfs;
use kernel::Kernel;
pub use kernel::Kernels;
use modules::Modules;
use plugin::Plugin;
use qemu::{Channel, Machine, Messages, Qemu};
pub use ring::number as page_number;
pub(crate) use settings::{Accel, KEYS, Vm, Vmm};
use share::Share;
use tree::Tree;
pub use tree::interpreter;

pub(crate) struct Guest {
    qemu: Qemu,
    kernel: Kernel,
    machine: Machine,
    /// The machine for starts that are timed by the host's clock, once one was asked for.
    timed: OnceCell<Machine>,
    /// Why KVM does not execute it, if its name does not choose.
    remark: Option<String>,
    /// It is booted instead of the kernel's file.
    vmlinux: Option<File>,
    initramfs: File,
    /// Contents of the root file system, by path.
    contents: Vec<String>,
    devices: Devices,
    running: Rc<RefCell<Option<Running>>>,
    console: RefCell<Console>,
    /// Watches the instructions of starts that are not timed.
    plugin: Plugin,
}

struct Running {
    /// Process ID of its monitor.
    monitor: i32,
    /// The host processor of each virtual processor that is pinned.
    places: Vec<Option<usize>>,
}

struct Launch {
    command: Vec<OsString>,
    files: Vec<File>,
}

impl Guest {
    /// Prepares a guest: finds QEMU, the kernel and its modules, and makes the root file system. `private` is a directory of
    /// this environment alone. An error says what is missing, with its package.
    pub fn prepare(spec: &Vm, paths: Paths<'_>, stop: &dyn Fn() -> bool) -> Result<Self, EnvironmentError> {
        let private = paths.private();
        let qemu = Qemu::find(spec.arch)?;
        let kernel = Kernel::find(spec.kernel.as_deref(), spec.arch)?;
        let mut program = program::open(spec)?;
        let kvm::Chosen { accel, remark } = kvm::choose(spec)?;
        let mut modules = Modules::read(&kernel);
        let channel = Channel::choose(&modules, spec)?;
        for name in channel.modules(spec.vmm) {
            modules.choose(name).map_err(|why| unusable!("vm: {kernel}: {why}"))?;
        }
        let on = spec.on.as_ref();
        if (on.is_some() || spec.audit.is_some()) && !spec.arch.is_here() {
            return Err(unusable!(
                "vm: on= and audit= need programs such as mkfs, and the host has none for {}; omit them",
                spec.arch
            ));
        }
        let ram = on.map(|on| on_ram::prepare(on, &kernel, &mut modules, private, stop)).transpose()?;
        let devices = Devices::prepare(spec, accel, &kernel, &mut modules, paths)?;
        let machine = Machine::new(spec, accel, channel);
        let (mut initramfs, mut contents) =
            root(&mut program, &kernel, &modules, &machine, &devices, on.zip(ram))?;
        if let Some(of) = &spec.audit {
            let audit = audit::prepare(of, stop)?;
            let fault = |error: std::io::Error| unusable!("vm: audit=: {}", plainly(error));
            let mut more = Initramfs::behind(initramfs).map_err(fault)?;
            audit.write(&mut more).map_err(fault)?;
            contents.extend_from_slice(more.contents());
            initramfs = more.finish().map_err(fault)?;
        }
        let vmlinux = machine.boots_unpacked().then(|| vmlinux::of(&kernel.file)).flatten();
        let console = RefCell::default();
        let timed = OnceCell::new();
        let running = Rc::default();
        let plugin = Plugin::new(&qemu, &machine, stop)?;
        Ok(Self {
            qemu,
            kernel,
            machine,
            timed,
            remark,
            vmlinux,
            initramfs,
            contents,
            devices,
            running,
            plugin,
            console,
        })
    }

    /// The command of a start. Fails if a file in memory, a socket or a pipe cannot be made.
    fn launch(&self) -> Result<Launch, EnvironmentError> {
        let fault = |error: std::io::Error| unusable!("vm: a file in memory: {}", plainly(error));
        let initramfs = self.initramfs.try_clone().map_err(fault)?;
        let (arguments, files) =
            self.plugin.start().map_err(|error| unusable!("vm: its monitor: {}", plainly(error)))?;
        let devices = self.devices.arguments(self.machine.vmm());
        let kept = self.new_console()?;
        let messages = Messages::Kept(&kept);
        let vmlinux = self.vmlinux.as_ref().map(File::try_clone).transpose().map_err(fault)?;
        let kernel = vmlinux.as_ref().map(|vmlinux| format!("/proc/self/fd/{}", vmlinux.as_raw_fd()).into());
        let kernel: OsString = kernel.unwrap_or_else(|| self.kernel.file.clone().into());
        let mut command = self.qemu.command(&self.machine, &devices, &kernel, &initramfs, messages);
        command.extend(arguments.into_iter().map(OsString::from));
        Ok(Launch { command, files: files.into_iter().chain([initramfs, kept]).chain(vmlinux).collect() })
    }

    /// Starts to keep the messages of another start. Returns the file that they are written to.
    fn new_console(&self) -> Result<File, EnvironmentError> {
        let (console, to) =
            Console::begin().map_err(|error| unusable!("vm: its console: {}", plainly(error)))?;
        self.console.replace(console);
        Ok(to)
    }

    /// The command of a start that is timed by the host's clock, and the streams that show the ends of its phases.
    fn launch_timed(&self) -> Result<(Launch, Vec<Mark>), EnvironmentError> {
        let fault = |error: std::io::Error| unusable!("vm: {}", plainly(error));
        let initramfs = self.initramfs.try_clone().map_err(fault)?;
        let pipe = || -> Result<(OwnedFd, File), EnvironmentError> {
            let (from, to) = std::io::pipe().map_err(fault)?;
            Ok((from.into(), File::from(OwnedFd::from(to))))
        };
        let ((of_firmware, firmware), (of_console, console)) = (pipe()?, pipe()?);
        let devices = self.devices.arguments(self.machine.vmm());
        let kept = self.new_console()?;
        let messages = Messages::Followed { kept: &kept, console: &console, firmware: &firmware };
        let machine = self.timed.get_or_init(|| self.machine.timed());
        let kernel = self.kernel.file.as_os_str();
        let command = self.qemu.command(machine, &devices, kernel, &initramfs, messages);
        let marks = vec![
            Mark { from: of_firmware, ends: vec![(Phase::Monitor, b"")] },
            Mark {
                from: of_console,
                ends: vec![(Phase::Firmware, b""), (Phase::Kernel, layout::BEGUN.as_bytes())],
            },
        ];
        Ok((Launch { command, files: vec![initramfs, kept, console, firmware] }, marks))
    }

    /// Pins the threads of its monitor, unless the guest counts instructions: then it is not timed. An error is a clause.
    fn pin(&self, monitor: i32, allowed: &[usize]) -> Result<(), String> {
        let is_timed = !self.is_counting();
        let places = is_timed.then(|| pin::pin(monitor, self.machine.cpus as usize, allowed)).transpose()?;
        *self.running.borrow_mut() = Some(Running { monitor, places: places.unwrap_or_default() });
        Ok(())
    }

    fn last_words(&self) -> Box<dyn Fn() -> Option<String>> {
        let console = self.console.borrow().clone();
        Box::new(move || console.last_words())
    }
}

impl Ready for Guest {
    fn start(&mut self, begin: Begin<'_>) -> Result<(Started, Vec<Mark>), EnvironmentError> {
        // Each start has its own disk.
        self.devices.renew(begin.stop)?;
        let (Launch { command, files }, marks) =
            if begin.is_measured { self.launch_timed()? } else { (self.launch()?, Vec::new()) };
        let start = Start { command: &command, variables: &[], is_bound: true, files: &files };
        let mut started = started::start(&start, begin.cleanup, begin.begin)?;
        started.said.also("QEMU", self.last_words());
        self.pin(started.pid, begin.cpus).map_err(|why| unusable!("vm: {why}"))?;
        Ok((started, marks))
    }

    /// Describes what is booted, and the command of a start.
    fn details(&self, _name: &str) -> Result<Vec<String>, EnvironmentError> {
        let size = self.initramfs.metadata().map_or(0, |metadata| metadata.len());
        let command = self.launch()?.command;
        let words: Vec<String> = command.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        Ok(vec![
            format!("kernel: {}", self.kernel),
            format!("initramfs: {}: {}", bytes(size), self.contents.join(" ")),
            format!("command: {}", words.join(" ")),
        ])
    }

    /// A guest whose instructions are counted has no turns to pair.
    fn is_paired(&self) -> bool {
        !self.is_counting()
    }

    /// Why QEMU's translator executes it, if its name chose neither that nor KVM.
    fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    fn observer(&self) -> Option<Outside<'static>> {
        let running = Rc::clone(&self.running);
        let (accel, arch, machine) = (self.machine.accel(), self.machine.arch, self.machine.to_string());
        let devices = self.devices.facts();
        let why = self.remark.clone().unwrap_or_else(|| "as requested, or as KVM allows".to_owned());
        Some(Box::new(move || {
            let mut all = vec![
                ("run.vm.accel".to_owned(), Fact::known(accel.name(), why.as_str())),
                ("run.vm.machine".to_owned(), Fact::known(machine.as_str(), "QEMU's arguments")),
            ];
            all.extend(devices.clone());
            all.extend(board::facts(arch).into_iter().filter(|_| accel == Accel::Tcg));
            if let (Accel::Kvm, Some(running)) = (accel, &*running.borrow()) {
                all.extend(facts::of_kvm(running.monitor, &running.places));
            }
            all
        }))
    }

    fn remark_of_starts(&self) -> Option<&'static str> {
        let of_translator =
            "QEMU's translator executes the guest in the host's real time, without counting instructions";
        self.machine.is_translated().then_some(of_translator)
    }

    fn is_counting(&self) -> bool {
        self.machine.is_counting()
    }

    fn has_disk(&self) -> bool {
        self.devices.disk.is_some()
    }

    fn instructions(&self) -> Option<Box<dyn InstructionLog>> {
        self.is_counting().then(|| Box::new(self.plugin.log()) as Box<dyn InstructionLog>)
    }

    fn bring_commands(
        &mut self,
        wanted: &[Wanted],
        since: SystemTime,
        rounds: &Rounds,
    ) -> Result<String, EnvironmentError> {
        if !self.is_counting() {
            return Err(unusable!("vm: its instructions are not counted; vm:exact counts them"));
        }
        if !self.machine.arch.is_here() {
            return Err(unusable!(
                "vm: a command is a file of this machine, and a guest for {arch} cannot execute it; omit arch=, or \
                 count benchmarks: tollgate run entry --in vm:exact,arch={arch}",
                arch = self.machine.arch
            ));
        }
        if self.machine.cpus != 1 {
            return Err(unusable!(
                "vm: a command is counted on one processor, but cpus={} asks for more; omit it",
                self.machine.cpus
            ));
        }
        let mut tree = Tree::read(wanted, since)?;
        rounds
            .orders
            .iter()
            .flatten()
            .filter_map(Order::directory)
            .for_each(|directory| tree.forget_times(directory));
        self.machine.hold(tree.bytes())?;
        let fault = |error: std::io::Error| unusable!("vm: the initramfs: {}", plainly(error));
        let orders = serde_json::to_vec(rounds).map_err(|error| fault(error.into()))?;
        let mut more = Initramfs::behind(self.initramfs.try_clone().map_err(fault)?).map_err(fault)?;
        tree.write(&mut more).map_err(fault)?;
        more.file(counted::ORDERS.trim_start_matches('/'), &orders).map_err(fault)?;
        self.initramfs = more.finish().map_err(fault)?;
        Ok(tree.sentence())
    }

    /// The guest gets the module, or the reason why there is none.
    fn bring_module(&mut self, making: &Making, stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        let Kernel { file, release, .. } = &self.kernel;
        let built = match self.machine.arch {
            Architecture::X86_64 => module::build(file, release, making.own()?, &making.cleanup, stop),
            arch => Err(unusable!("the module is code of x86-64, but the guest's processor is {arch}")),
        };
        let (path, bytes) = match built {
            Ok(bytes) => (layout::EMULATE, bytes),
            Err(EnvironmentError::Interrupted) => return Err(EnvironmentError::Interrupted),
            Err(why) => (layout::WHY_NOT_EMULATE, why.to_string().into_bytes()),
        };
        let fault = |error: std::io::Error| unusable!("vm: the initramfs: {}", plainly(error));
        let mut more = Initramfs::behind(self.initramfs.try_clone().map_err(fault)?).map_err(fault)?;
        more.file(path, &bytes).map_err(fault)?;
        self.contents.extend_from_slice(more.contents());
        self.initramfs = more.finish().map_err(fault)?;
        Ok(())
    }
}

/// Returns QEMU's version and the kernel of a guest that names none. An error says what is missing, with its package.
pub(crate) fn survey(stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
    let arch = Architecture::default();
    let version = Qemu::find(arch)?.version(stop)?;
    let kernel = Kernel::find(None, arch)?;
    Ok(format!("{version}; {kernel}"))
}

/// The monitor's executable and the kernel, if they exist.
pub(crate) fn files(spec: &Vm) -> Vec<PathBuf> {
    let program = Qemu::find(spec.arch).ok().map(|qemu| qemu.program);
    let kernel = Kernel::find(spec.kernel.as_deref(), spec.arch).ok().map(|kernel| kernel.file);
    program.into_iter().chain(kernel).collect()
}

/// Returns whether a guest of this name has a disk, provided that its kernel has the driver.
pub(crate) fn has_disk(spec: &Vm) -> Result<bool, EnvironmentError> {
    Ok(disk::is_wanted(spec, kvm::choose(spec)?.accel))
}

fn root(
    program: &mut File,
    kernel: &Kernel,
    modules: &Modules,
    machine: &Machine,
    devices: &Devices,
    ram: Option<(&OnRam, on_ram::Files)>,
) -> Result<(File, Vec<String>), EnvironmentError> {
    let mut made = Initramfs::new().map_err(|error| unusable!("vm: the initramfs: {}", plainly(error)))?;
    let mut fill = || -> std::io::Result<()> {
        let share = devices.share.as_ref().ok();
        for directory in layout::DIRECTORIES {
            if !share.is_some_and(|share| share.has(directory)) {
                made.directory(directory)?;
            }
        }
        if let Some(share) = share {
            fill_share(&mut made, share)?;
        }
        if devices.disk.is_some() {
            made.file(layout::DISK, disk::FILE_SYSTEM.as_bytes())?;
        }
        made.program("init", program)?;
        made.file(layout::MARK, machine.channel.name().as_bytes())?;
        if machine.is_counting() {
            // The kernel's generator has this many bytes for a key and a nonce. Their value does not matter.
            made.file(layout::SEED, &[0x5a; 64])?;
        }
        for (name, bytes) in modules.files()? {
            made.file(&format!("{}/{name}", layout::MODULES), &bytes)?;
        }
        for file in ram.iter().flat_map(|(_, files)| &files.programs) {
            made.program(path_there(file)?, &mut File::open(file)?)?;
        }
        for (path, file) in ram.iter().flat_map(|(_, files)| &files.plain) {
            made.program(path, &mut File::open(file)?)?;
        }
        if let Some((on, _)) = &ram {
            made.file(layout::ON_RAM, on.to_string().as_bytes())?;
        }
        for (path, bytes) in kernel.facts() {
            made.file(&path, &bytes)?;
        }
        Ok(())
    };
    fill().map_err(|error| unusable!("vm: the initramfs: {}", plainly(error)))?;
    let contents = made.contents().to_vec();
    let file = made.finish().map_err(|error| unusable!("vm: the initramfs: {}", plainly(error)))?;
    Ok((file, contents))
}

/// Adds the directories and links that the host's programs need.
fn fill_share(made: &mut Initramfs, share: &Share) -> std::io::Result<()> {
    for directory in share.directories() {
        made.directory(directory)?;
    }
    for (path, to) in &share.links {
        made.link(path, to)?;
    }
    for file in &share.files {
        made.program(file, &mut File::open(Path::new("/").join(file))?)?;
    }
    made.file(layout::SHARES, share.lines().as_bytes())
}

/// Path in the guest of a file on the host: the same.
fn path_there(file: &Path) -> std::io::Result<&str> {
    let relative = file.strip_prefix("/").unwrap_or(file);
    relative.to_str().ok_or_else(|| std::io::Error::other(format!("{} is not UTF-8", file.display())))
}
