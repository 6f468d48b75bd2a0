//! What is around the process.

use tollgate_model::Boundary::{Exec, PathLookup, SystemCall};

use super::{FactSpec, one};
use crate::container;

pub(super) const FACTS: &[FactSpec] = &[
    one("container.layers", container::layers, "The containers whose marks are to be believed.")
        .affects(&[SystemCall], "container managers add seccomp filters and control groups, see those facts"),
    one("container.files", container::files, "The files of container managers that are in the root."),
    one(
        "container.groups",
        container::groups,
        "The container managers that this process's control groups are named after.",
    ),
    one("container.init", container::init, "What the first process was told of its container manager."),
    one("container.environment", container::facts, "What this process was told of its container manager."),
    one(
        "container.namespaces",
        container::namespaces,
        "The kinds of namespace in which this process is apart from the machine's first.",
    ),
    one("container.root", container::root_file_system, "The kind of file system that the root is on.")
        .affects(&[PathLookup, Exec], "an overlay looks a name up in each of its layers"),
    one(
        "container.mounts",
        container::mounts,
        "The container managers whose files are mounted over files here.",
    ),
    one(
        "container.unshared",
        container::unshared,
        "The kinds of namespace in which this process is apart from process 1.",
    ),
    one("container.users", container::users, "How the users of this namespace are numbered outside of it."),
    one(
        "container.root_of_init",
        container::root_of_init,
        "Whether / is the root of process 1, which it is not after chroot(2).",
    ),
];
