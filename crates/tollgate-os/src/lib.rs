//! Safe interfaces to operating system features that the standard library lacks.
//!
//! - [`paths`]: walks a path directory by directory, and follows no link that another user may have made. Every writer of a
//!   file and every working directory starts here.
//! - [`trust`]: whether another user can exchange the entries of a directory.
//! - [`privileges`]: the privileges that this process has through its program's file, and gives up.
//! - [`workdir`]: a working directory that several processes use, and that none of them confuses with another one.
//! - [`temporary`]: a directory with a temporary name, removed when its maker ends. [`private`]: one whose path can be
//!   given to other programs, since no other user can exchange a directory on it; the only way to a directory for temporary
//!   files.
//! - [`users`]: names of users, and the groups that a user shares with others.
//! - [`programs`]: finds the file of a program by name. [`words`]: splits a command line as a shell does.
//! - [`process`]: fork(2), wait4(2), and what prctl(2) changes for a child. [`group`]: process groups. [`children`]: the
//!   children of this process, and which of them it had before it began. [`tool`]: programs that this one executes for
//!   itself. [`rusage`]: the resources that they used. [`shared`]: memory that they share.
//! - [`signals`]: dispositions and masks. [`timer`]: timers that send a signal. [`affinity`]: the processors that a thread
//!   may run on. [`memfd`]: files in memory. [`namespaces`]: namespaces of this process's own.
//! - [`cpuid`]: the instruction. [`perf`]: groups of hardware events, and records of what processes map.
//! - [`descriptors`]: a thread's own descriptor table. [`direct`]: the alignment that direct I/O needs. [`space`]: free
//!   space in a file system.
//! - [`calls`]: the kernel's tables of system calls. [`seccomp`]: filters of system calls.

pub mod affinity;
pub mod calls;
pub mod children;
pub mod cpuid;
pub mod descriptors;
pub mod direct;
pub mod group;
pub mod memfd;
pub mod namespaces;
pub mod paths;
pub mod perf;
pub mod private;
pub mod privileges;
pub mod process;
pub mod programs;
pub mod rusage;
pub mod seccomp;
pub mod shared;
pub mod signals;
pub mod space;
pub mod temporary;
pub mod timer;
pub mod tool;
pub mod trust;
pub mod users;
pub mod words;
pub mod workdir;
