//! Containers and namespaces.

use tollgate_model::Boundary::{Exec, PathLookup, SystemCall};

use super::{FactSpec, one};
use crate::container;

pub(super) const FACTS: &[FactSpec] = &[
    one("container.layers", container::layers, "The container managers with conclusive marks.")
        .affects(&[SystemCall], "container managers add seccomp filters and control groups, see those facts"),
    one("container.files", container::files, "The container managers that left files in the root directory."),
    one(
        "container.groups",
        container::groups,
        "The container managers in the names of this process's control groups.",
    ),
    one("container.init", container::init, "The container manager in the environment of process 1."),
    one(
        "container.environment",
        container::facts,
        "The container manager in the environment of this process.",
    ),
    one(
        "container.namespaces",
        container::namespaces,
        "The kinds of namespace that differ from the machine's initial ones.",
    ),
    one("container.root", container::root_file_system, "The kind of file system that the root is on.")
        .affects(&[PathLookup, Exec], "an overlay looks a name up in each of its layers"),
    one("container.mounts", container::mounts, "The container managers that mounted files over files here."),
    one(
        "container.unshared",
        container::unshared,
        "The kinds of namespace that differ from those of process 1.",
    ),
    one("container.users", container::users, "The user ID map of this user namespace."),
    one(
        "container.root_of_init",
        container::root_of_init,
        "Whether / is the root of process 1, which it is not after chroot(2).",
    ),
];
