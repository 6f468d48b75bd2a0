//! What the host's side and the guest's side know of the guest's files and of its kernel's command line.

/// Its directories, from the root.
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

/// The file that says that this is a guest of tollgate's. It holds the channel's name.
pub(super) const MARK: &str = "tollgate/guest";
/// The modules to be loaded, in the order of their names.
pub(super) const MODULES: &str = "tollgate/modules";
/// The driver and the file system of the block device in memory that the agent makes, where files are measured on one.
pub(super) const ON_RAM: &str = "tollgate/on-ram";
/// The file system of the disk that is the directory for files, where there is one.
pub(super) const DISK: &str = "tollgate/disk";
/// Directories of the host that are mounted by 9p: a tag and a path from the root in each line.
pub(super) const SHARES: &str = "tollgate/shares";
/// What the kernel's random numbers are made of, where instructions are counted: the same bytes at each boot.
pub(super) const SEED: &str = "tollgate/seed";
/// The files that commands need: what is not in the archive, and the owners, modes and times of all.
pub(super) const TREE: &str = "tollgate/tree";
/// Its kinds of entries: a directory, a link, a file of the archive, and one of which nothing but its size is known.
pub(super) const A_DIRECTORY: char = 'd';
pub(super) const A_LINK: char = 'l';
pub(super) const A_FILE: char = 'f';
pub(super) const A_SHELL: char = 's';
/// The kernel module of `traps/invalid-opcode{by=module-…}`, which that benchmark loads.
pub(super) const EMULATE: &str = "tollgate/emulate.ko";
/// A sentence in its place: why there is none.
pub(super) const WHY_NOT_EMULATE: &str = "tollgate/emulate.why";
/// The directory for files.
pub(super) const WORK: &str = "/work";
/// The name of the virtio port that the agent speaks on.
pub(super) const PORT: &str = "tollgate.agent";
/// The serial line that it speaks on where the kernel has no such port. The first one has the kernel's messages.
pub(super) const LINE: &str = "ttyS1";
/// What a line of `/init` begins with on the console.
pub(super) const SAYS: &str = "tollgate: ";
/// A word of the kernel's command line that the kernel does not know and hands to `/init` as a variable: `/init` says when it begins.
pub(super) const MARKS: &str = "tollgate_marks";
/// What `/init` says then on the console.
pub(super) const BEGUN: &str = "init has begun";
