//! Files of the guest and words of its kernel's command line that the host's and the guest's side must agree on.

/// Directories, relative to the root.
pub(super) const DIRECTORIES: [&str; 14] = [
    "dev",
    "proc",
    "sys",
    "run",
    "tmp",
    "var",
    "var/tmp",
    "root",
    "boot",
    "lib",
    "lib/modules",
    "work",
    "tollgate",
    "tollgate/modules",
];

/// The file that marks a guest of tollgate. It contains the channel's name.
pub(super) const MARK: &str = "tollgate/guest";
/// Modules to load, in the order of their names.
pub(super) const MODULES: &str = "tollgate/modules";
/// Driver and file system of the block device in memory that the agent makes, if files are measured on one.
pub(super) const ON_RAM: &str = "tollgate/on-ram";
/// File system of the disk on which files are measured, if there is one.
pub(super) const DISK: &str = "tollgate/disk";
/// Directories of the host that are mounted by 9p: a tag and a path from the root per line.
pub(super) const SHARES: &str = "tollgate/shares";
/// Seed of the kernel's random numbers if instructions are counted: the same bytes at each boot.
pub(super) const SEED: &str = "tollgate/seed";
/// Rules of auditctl(8) that the kernel gets before anything is measured, and a link to auditctl.
pub(super) const RULES: &str = "tollgate/audit.rules";
pub(super) const AUDITCTL: &str = "tollgate/auditctl";
/// The files that commands need: those that are not in the archive, and the owners, modes and times of all.
pub(super) const TREE: &str = "tollgate/tree";
/// Kinds of its entries: directory, link, file in the archive, and file of which only the size is known.
pub(super) const A_DIRECTORY: char = 'd';
pub(super) const A_LINK: char = 'l';
pub(super) const A_FILE: char = 'f';
pub(super) const A_SHELL: char = 's';
/// The kernel module that `traps/invalid-opcode{by=module-…}` loads.
pub(super) const EMULATE: &str = "tollgate/emulate.ko";
/// Instead of it, a sentence that says why there is none.
pub(super) const WHY_NOT_EMULATE: &str = "tollgate/emulate.why";
pub(super) const WORK: &str = "/work";
/// Name of the virtio port of the agent.
pub(super) const PORT: &str = "tollgate.agent";
/// Serial line of the agent if the kernel has no such port. The first line has the kernel's messages.
pub(super) const LINE: &str = "ttyS1";
/// The port by which `/init` starts QEMU's plugin.
pub(super) const GATE: u16 = 0xe9;
/// Prefix of lines that `/init` prints on the console.
pub(super) const SAYS: &str = "tollgate: ";
/// A word of the kernel's command line that the kernel does not know and passes to `/init` as a variable. It makes `/init`
/// report when it begins.
pub(super) const MARKS: &str = "tollgate_marks";
/// This report, on the console.
pub(super) const BEGUN: &str = "init has begun";
