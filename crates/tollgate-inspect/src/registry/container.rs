use tollgate_model::Boundary::{Exec, PathLookup, SystemCall};

use crate::machine::Machine;
use crate::{calls, container};

facts! {
    pub(super) FACTS
    "container.layers" Of(container::layers) "The container managers with conclusive marks."
        [SystemCall] "container managers add seccomp filters and control groups, see those facts";
    "container.files" Of(container::files) "The container managers that left files in the root directory.";
    "container.groups" Of(container::groups)
        "The container managers in the names of this process's control groups.";
    "container.init" Of(container::variable_in, "/proc/1/environ") "The container manager in the environment of process 1.";
    "container.environment" Of(container::variable_in, "/proc/self/environ") "The container manager in the environment of this process.";
    "container.namespaces" Of(container::namespaces)
        "The kinds of namespace that differ from the machine's initial ones.";
    "container.root" Of(container::root_file_system) "The kind of file system that the root is on."
        [PathLookup, Exec] "an overlay looks a name up in each of its layers";
    "container.mounts" Of(container::mounts) "The container managers that mounted files over files here.";
    "container.unshared" Of(container::unshared)
        "The kinds of namespace that differ from those of process 1.";
    "container.users" Of(container::users) "The user ID map of this user namespace.";
    "container.root_of_init" Of(Machine::call, "stat(2) of / and /proc/1/root", calls::has_root_of_init)
        "Whether / is the root of process 1, which it is not after chroot(2).";
}
