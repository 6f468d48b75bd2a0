//! Operations of calls on files: one table for both backends.

#[cfg(test)]
use crate::calls;

/// How a call names its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// By the descriptor that it returns; if it fails, by a path, which follows a directory's descriptor with `at`.
    Opened { at: bool },
    /// The first argument is a descriptor.
    Descriptor,
    /// The first argument is a path.
    Path,
    /// The first argument is a directory's descriptor, the second a path.
    PathAt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    pub name: &'static str,
    pub names: Names,
    /// The result is a number of bytes.
    pub moves: bool,
}

/// The calls of each operation. If the operation is `None`, it has the call's name.
const OPERATIONS: &[(Option<&str>, Names, &str)] = &[
    (Some("open"), Names::Opened { at: true }, "openat openat2"),
    (Some("open"), Names::Opened { at: false }, "creat open"),
    (Some("read"), Names::Descriptor, "pread64 preadv preadv2 read readv"),
    (Some("write"), Names::Descriptor, "pwrite64 pwritev pwritev2 write writev"),
    (Some("sync"), Names::Descriptor, "fdatasync fsync sync_file_range syncfs"),
    (Some("stat"), Names::Descriptor, "fstat fstat64 oldfstat"),
    (Some("stat"), Names::Path, "lstat lstat64 oldlstat oldstat stat stat64"),
    (Some("stat"), Names::PathAt, "fstatat64 newfstatat statx"),
    (Some("close"), Names::Descriptor, "close"),
    (Some("unlink"), Names::Path, "unlink"),
    (Some("unlink"), Names::PathAt, "unlinkat"),
    (
        None,
        Names::Descriptor,
        "copy_file_range fallocate fchdir fchmod fchown fgetxattr flock fsetxattr fstatfs ftruncate getdents getdents64 ioctl \
         sendfile splice",
    ),
    (
        None,
        Names::Path,
        "access chdir chmod chown execve getxattr lchown lgetxattr link mkdir mknod readlink rename rmdir setxattr statfs truncate \
         utime utimes",
    ),
    (
        None,
        Names::PathAt,
        "execveat faccessat faccessat2 fchmodat fchmodat2 fchownat linkat mkdirat mknodat readlinkat renameat renameat2 utimensat",
    ),
];

impl Operation {
    pub fn by_call(call: &'static str) -> Option<Self> {
        Self::all().find(|(name, _)| *name == call).map(|(_, operation)| operation)
    }

    pub fn all() -> impl Iterator<Item = (&'static str, Self)> {
        OPERATIONS.iter().flat_map(|(operation, names, calls)| {
            calls.split(' ').map(|call| (call, Self::made(*operation, *names, call)))
        })
    }

    fn made(operation: Option<&'static str>, names: Names, call: &'static str) -> Self {
        let name = operation.unwrap_or(call);
        Self { name, names, moves: matches!(name, "read" | "write") }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_arch::architecture::{Architecture, HERE};

    use super::*;

    #[test]
    fn every_call_that_is_named_is_in_a_table_and_in_one_line() {
        let all: Vec<_> = Operation::all().map(|(call, _)| call).collect();
        for call in &all {
            let is_of_x86_alone = call.starts_with("old") || *call == "utime";
            let is_here = HERE == Architecture::X86_64 || !is_of_x86_alone;
            assert_eq!(calls::number(call).is_some(), is_here, "{call}");
            assert_eq!(all.iter().filter(|other| other == &call).count(), 1, "{call}");
        }
    }

    #[test]
    fn operations_have_the_names_of_the_model() {
        let of =
            |call: &'static str| Operation::by_call(call).map(|operation| (operation.name, operation.moves));
        assert_eq!(of("pread64"), Some(("read", true)));
        assert_eq!(of("renameat"), Some(("renameat", false)));
        assert_eq!(of("getpid"), None);
    }
}
