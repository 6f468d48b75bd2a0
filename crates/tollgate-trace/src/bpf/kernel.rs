//! The properties of the running kernel that programs need: offsets of fields, and ids of tracepoints.

use std::io;

use tollgate_arch::registers::COMPAT;

use super::btf::{Btf, TypeKind};
use super::sys;

const PATH: &str = "/sys/kernel/btf/vmlinux";
/// The largest description that is read. Those of kernels have about 6 MB.
const MOST_BYTES: usize = 64 << 20;

/// The ids of the `btf_trace_*` types of the tracepoints that programs are attached to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tracepoints {
    pub sys_enter: u32,
    pub sys_exit: u32,
    pub sched_switch: u32,
    pub sched_wakeup: u32,
    pub task_newtask: u32,
    pub sched_process_exec: u32,
    pub sched_process_exit: u32,
    /// Since 6.14.
    pub mm_filemap_fault: Option<u32>,
    /// The function that programs of the iterator over all tasks implement. Since 5.8.
    pub iter_task: Option<u32>,
}

/// Byte offsets of fields in `struct task_struct` and in structures that it points to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    /// The field of `thread_info` that tells whether a call is of the 32-bit table.
    pub status: i16,
    /// `pending.signal.sig`, the signals pending for this thread alone.
    pub pending: i16,
    pub pid: i16,
    pub tgid: i16,
    /// `signal`, and in it the number of live threads.
    pub signal: i16,
    pub live: i16,
    /// `__state`, if sched_switch does not pass it (before 5.18).
    pub state: Option<i16>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    pub tracepoints: Tracepoints,
    pub task: Offsets,
    /// Offsets that lead to files and their names; `None` if any of them was not found.
    pub files: Option<FileOffsets>,
}

/// How a program loads from any address. Since 6.2; without it a helper copies. The loaded words count as numbers: in a loop the
/// verifier goes through every combination of types that pointers have, but through numbers only once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cast {
    pub function: u32,
    /// A structure that begins with an 8-byte number.
    pub structure: u32,
}

impl Cast {
    const FUNCTION: &str = "bpf_rdonly_cast";
    const NUMBERS: &str = "timespec64";
}

/// The functions of a loop over numbers (`bpf_iter_num`), which the verifier does not unroll. Since 6.4; else a register counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub new: u32,
    pub next: u32,
    pub destroy: u32,
}

macro_rules! file_offsets {
    ($($(#[$doc:meta])* $field:ident: $structure:literal $path:tt,)+) => {
        #[derive(Debug, Clone, Copy)]
        pub(super) struct FileOffsets {
            $($(#[$doc])* pub $field: i16,)+
            pub cast: Option<Cast>,
            pub numbers: Option<Numbers>,
        }

        impl FileOffsets {
            fn from_btf(btf: &Btf) -> Option<Self> {
                const STRUCTURES: [&str; 12] = [
                    "address_space", "dentry", "fdtable", "file", "files_struct", "fs_struct", "inode", "mount", "path",
                    "super_block", "task_struct", Cast::NUMBERS,
                ];
                const FUNCTIONS: [&str; 4] =
                    [Cast::FUNCTION, "bpf_iter_num_new", "bpf_iter_num_next", "bpf_iter_num_destroy"];
                let mut wanted = [(TypeKind::Function, ""); STRUCTURES.len() + FUNCTIONS.len()];
                let names = STRUCTURES.map(|name| (TypeKind::Struct, name)).into_iter();
                let names = names.chain(FUNCTIONS.map(|name| (TypeKind::Function, name)));
                wanted.iter_mut().zip(names).for_each(|(wanted, name)| *wanted = name);
                let found = btf.find(wanted);
                let [.., structure, function, new, next, destroy] = found;
                let field = |structure: &str, path: &[&str]| {
                    let at = STRUCTURES.iter().position(|name| *name == structure)?;
                    offset(btf, found[at]?, path)
                };
                let cast = function.zip(structure).map(|(function, structure)| Cast { function, structure });
                let numbers = (|| Some(Numbers { new: new?, next: next?, destroy: destroy? }))();
                Some(Self { $($field: field($structure, &$path)?,)+ cast, numbers })
            }
        }
    };
}
file_offsets! {
    task_files: "task_struct" ["files"],
    task_fs: "task_struct" ["fs"],
    fs_pwd: "fs_struct" ["pwd"],
    files_fdt: "files_struct" ["fdt"],
    fdt_max: "fdtable" ["max_fds"],
    fdt_fd: "fdtable" ["fd"],
    file_path: "file" ["f_path"],
    file_flags: "file" ["f_flags"],
    file_pos: "file" ["f_pos"],
    path_mnt: "path" ["mnt"],
    path_dentry: "path" ["dentry"],
    inode_number: "inode" ["i_ino"],
    inode_generation: "inode" ["i_generation"],
    inode_sb: "inode" ["i_sb"],
    sb_device: "super_block" ["s_dev"],
    sb_magic: "super_block" ["s_magic"],
    dentry_parent: "dentry" ["d_parent"],
    dentry_inode: "dentry" ["d_inode"],
    dentry_name: "dentry" ["d_name", "name"],
    dentry_hash: "dentry" ["d_name", "hash"],
    mount_parent: "mount" ["mnt_parent"],
    mount_mountpoint: "mount" ["mnt_mountpoint"],
    mount_mnt: "mount" ["mnt"],
    mount_root: "mount" ["mnt", "mnt_root"],
    /// `address_space.host`, `inode.i_dentry.first`, and the member of a dentry that the latter points to.
    mapping_host: "address_space" ["host"],
    inode_dentry: "inode" ["i_dentry", "first"],
    dentry_alias: "dentry" ["d_u", "d_alias"],
}

impl Kernel {
    pub fn here(files: bool) -> Result<Self, String> {
        let description = description()?;
        let btf =
            Btf::parse(description.bytes()).map_err(|error| format!("{PATH} cannot be read: {error}"))?;
        Self::from_btf(&btf, files)
    }

    /// Makes programs use helpers and registers instead of optional functions. Returns whether that changes anything.
    pub fn forget_functions(&mut self) -> bool {
        let Some(files) = &mut self.files else { return false };
        let (cast, numbers) = (files.cast.take(), files.numbers.take());
        cast.is_some() || numbers.is_some()
    }

    fn from_btf(btf: &Btf, files: bool) -> Result<Self, String> {
        let points = btf.find([
            (TypeKind::Typedef, "btf_trace_sys_enter"),
            (TypeKind::Typedef, "btf_trace_sys_exit"),
            (TypeKind::Typedef, "btf_trace_sched_switch"),
            (TypeKind::Typedef, "btf_trace_sched_wakeup"),
            (TypeKind::Typedef, "btf_trace_task_newtask"),
            (TypeKind::Typedef, "btf_trace_sched_process_exec"),
            (TypeKind::Typedef, "btf_trace_sched_process_exit"),
            (TypeKind::Typedef, "btf_trace_mm_filemap_fault"),
            (TypeKind::Function, "bpf_iter_task"),
            (TypeKind::Struct, "task_struct"),
            (TypeKind::Struct, "signal_struct"),
        ]);
        let [enter, exit, switch, wakeup, new, exec, end, fault, iter_task, task, signal] = points;
        let point = |id: Option<u32>, name: &str| {
            id.ok_or_else(|| {
                format!("this kernel does not describe the tracepoint {name} to BPF programs (Linux 5.5 and later do)")
            })
        };
        let tracepoints = Tracepoints {
            sys_enter: point(enter, "sys_enter")?,
            sys_exit: point(exit, "sys_exit")?,
            sched_switch: point(switch, "sched_switch")?,
            sched_wakeup: point(wakeup, "sched_wakeup")?,
            task_newtask: point(new, "task_newtask")?,
            sched_process_exec: point(exec, "sched_process_exec")?,
            sched_process_exit: point(end, "sched_process_exit")?,
            mm_filemap_fault: fault,
            iter_task,
        };
        let field = |structure: Option<u32>, path: &[&str]| {
            structure.and_then(|id| offset(btf, id, path)).ok_or_else(|| missing(path))
        };
        let brings_state = btf.parameters(tracepoints.sched_switch).is_some_and(|number| number >= 5);
        let state = if brings_state {
            None
        } else {
            Some(field(task, &["__state"]).or_else(|_| field(task, &["state"]))?)
        };
        let offsets = Offsets {
            status: field(task, &["thread_info", COMPAT.0])?,
            pending: field(task, &["pending", "signal", "sig"])?,
            pid: field(task, &["pid"])?,
            tgid: field(task, &["tgid"])?,
            signal: field(task, &["signal"])?,
            live: field(signal, &["live", "counter"])?,
            state,
        };
        Ok(Self { tracepoints, task: offsets, files: files.then(|| FileOffsets::from_btf(btf)).flatten() })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TaskOffsets {
    pub flags: i16,
    pub state: i16,
    pub on_cpu: i16,
    pub group_leader: i16,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WakingOffsets {
    /// The tracepoint of a wake-up, in the context of the waker.
    pub sched_waking: u32,
    pub comm: i16,
}

pub(super) fn waking_offsets() -> Result<WakingOffsets, String> {
    let description = description()?;
    let btf = Btf::parse(description.bytes()).map_err(|error| format!("{PATH} cannot be read: {error}"))?;
    let [task, waking] =
        btf.find([(TypeKind::Struct, "task_struct"), (TypeKind::Typedef, "btf_trace_sched_waking")]);
    Ok(WakingOffsets {
        sched_waking: waking
            .ok_or("this kernel does not describe the tracepoint sched_waking to BPF programs")?,
        comm: task.and_then(|id| offset(&btf, id, &["comm"])).ok_or_else(|| missing(&["comm"]))?,
    })
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CgroupOffsets {
    pub attach_task: u32,
    pub root: i16,
    pub hierarchy: i16,
    pub node: i16,
    pub id: i16,
    /// `cgroup.self.parent`, which is also the address of the parent: `self` is its first member.
    pub parent: i16,
    /// `css_set.dfl_cgrp`, and a task's `css_set`.
    pub default: i16,
    pub task: i16,
    pub comm: i16,
}

/// Reads the offsets from the kernel's description; those of control groups are `None` if any is missing.
pub(super) fn running_offsets() -> Result<(TaskOffsets, Option<CgroupOffsets>), String> {
    let description = description()?;
    let btf = Btf::parse(description.bytes()).map_err(|error| format!("{PATH} cannot be read: {error}"))?;
    let [task, attach_task, cgroup, root, node, set] = btf.find([
        (TypeKind::Struct, "task_struct"),
        (TypeKind::Typedef, "btf_trace_cgroup_attach_task"),
        (TypeKind::Struct, "cgroup"),
        (TypeKind::Struct, "cgroup_root"),
        (TypeKind::Struct, "kernfs_node"),
        (TypeKind::Struct, "css_set"),
    ]);
    let at = |structure: Option<u32>, path: &[&str]| offset(&btf, structure?, path);
    let groups = || {
        Some(CgroupOffsets {
            attach_task: attach_task?,
            root: at(cgroup, &["root"])?,
            hierarchy: at(root, &["hierarchy_id"])?,
            node: at(cgroup, &["kn"])?,
            id: at(node, &["id"])?,
            parent: at(cgroup, &["self", "parent"])?,
            default: at(set, &["dfl_cgrp"])?,
            task: at(task, &["cgroups"])?,
            comm: at(task, &["comm"])?,
        })
    };
    Ok((TaskOffsets::from_btf(&btf, task)?, groups()))
}

impl TaskOffsets {
    fn from_btf(btf: &Btf, task: Option<u32>) -> Result<Self, String> {
        let field = |name: &str| task.and_then(|id| offset(btf, id, &[name])).ok_or_else(|| missing(&[name]));
        Ok(Self {
            flags: field("flags")?,
            state: field("__state").or_else(|_| field("state"))?,
            on_cpu: field("on_cpu")?,
            group_leader: field("group_leader")?,
        })
    }
}

fn missing(path: &[&str]) -> String {
    format!("this kernel's types have no field {}", path.join("."))
}

fn offset(btf: &Btf, structure: u32, path: &[&str]) -> Option<i16> {
    i16::try_from(btf.offset(structure, path)?).ok()
}

/// Returns the description's bytes: mapped from sysfs if the kernel allows it (6.16 and later), else by bpf(2) in one piece
/// if permitted, else read from sysfs, a page at a time.
fn description() -> Result<Description, String> {
    if let Ok(mapped) = std::fs::File::open(PATH).and_then(|file| sys::Mapped::new(&file, MOST_BYTES)) {
        return Ok(Description::Mapped(mapped));
    }
    sys::vmlinux_types().or_else(|_| from_sysfs()).map(Description::Copied).map_err(|error| {
        format!("the kernel's types cannot be read; a kernel with CONFIG_DEBUG_INFO_BTF has them in {PATH}: {error}")
    })
}

enum Description {
    Mapped(sys::Mapped),
    Copied(Vec<u8>),
}

impl Description {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(mapped) => mapped.bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

fn from_sysfs() -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::with_capacity(8 << 20);
    std::fs::File::open(PATH)?.take(MOST_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
