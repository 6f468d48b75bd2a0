//! The machine's own programs in a container: whole commands and the suite `processes` start them there as on the host.

use std::path::Path;

/// Directories of programs and their libraries. Some may be symbolic links to others; a mount follows them.
const DIRECTORIES: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// Those that this machine has. A container gets them read-only, under the same names.
pub(crate) fn directories() -> impl Iterator<Item = &'static str> {
    DIRECTORIES.into_iter().filter(|directory| Path::new(directory).is_dir())
}
