//! Safe interfaces to operating system features that the standard library lacks, one module each.
//!
//! Every writer of a file and every working directory starts with [`paths`]; [`private`] is the only way to a directory for
//! temporary files.

pub mod affinity;
pub mod bpf;
pub mod calls;
pub mod children;
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
