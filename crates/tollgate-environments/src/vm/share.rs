//! The host's programs in a guest: its /usr, and those of /bin, /sbin and /lib that are directories, read-only, by 9p over
//! virtio. A guest with a disk has them, so that workloads find their programs.
//!
//! virtiofs needs a host process next to QEMU (virtiofsd), which is not started: a guest kernel without 9p gets no programs.

use std::fs;
use std::path::{Path, PathBuf};

use super::modules::{Has, Modules};
use super::settings::Vmm;

/// Directories of programs and libraries on the host. On most systems, all but the first are symbolic links.
const PLACES: [&str; 6] = ["usr", "bin", "sbin", "lib", "lib32", "lib64"];
/// The transport's module depends on 9pnet, the other on netfs.
const MODULES: [&str; 2] = ["9pnet_virtio", "9p"];
/// Links such as `cc`, which lead out of /usr (update-alternatives(1)).
const ALTERNATIVES: &str = "etc/alternatives";
/// Names of libraries outside the usual directories (ld.so(8)).
const CACHE: &str = "etc/ld.so.cache";
const MOST_LINKS: usize = 4096;

/// Directories of the host that a guest gets, and links.
#[derive(Debug, Clone, Default)]
pub(super) struct Share {
    /// Paths from the root; the index of each is in its tag.
    directories: Vec<String>,
    /// Paths from the root, and their targets.
    pub links: Vec<(String, PathBuf)>,
    pub files: Vec<String>,
}

impl Share {
    /// Finds what this host has, and chooses the modules. An error is a clause: the kernel has no 9p.
    pub fn prepare(modules: &mut Modules) -> Result<Self, String> {
        if let Some(missing) = MODULES.iter().find(|name| modules.has(name) == Has::No) {
            return Err(format!(
                "the kernel has no 9p (module {missing}), and its virtiofs would need a daemon on the host"
            ));
        }
        for name in MODULES {
            modules.choose(name)?;
        }
        Ok(Self::of(Path::new("/")))
    }

    fn of(root: &Path) -> Self {
        let mut made = Self::default();
        for place in PLACES {
            let path = root.join(place);
            match fs::read_link(&path) {
                Ok(target) => made.links.push((place.to_owned(), target)),
                Err(_) if path.is_dir() => made.directories.push(place.to_owned()),
                Err(_) => {}
            }
        }
        for entry in fs::read_dir(root.join(ALTERNATIVES)).into_iter().flatten().flatten().take(MOST_LINKS) {
            let (Some(name), Ok(target)) =
                (entry.file_name().to_str().map(str::to_owned), fs::read_link(entry.path()))
            else {
                continue;
            };
            made.links.push((format!("{ALTERNATIVES}/{name}"), target));
        }
        made.files.extend(root.join(CACHE).is_file().then(|| CACHE.to_owned()));
        made
    }

    /// Returns whether the guest's own root file system must leave out this directory.
    pub fn has(&self, directory: &str) -> bool {
        let first = directory.split('/').next().unwrap_or(directory);
        PLACES.contains(&first)
    }

    /// Tags and directories for the guest's side, one per line.
    pub fn lines(&self) -> String {
        self.directories
            .iter()
            .enumerate()
            .map(|(n, directory)| format!("{} {directory}\n", tag(n)))
            .collect()
    }

    pub fn directories(&self) -> &[String] {
        &self.directories
    }

    pub fn arguments(&self, vmm: Vmm) -> Vec<String> {
        let device = if vmm == Vmm::Microvm { "virtio-9p-device" } else { "virtio-9p-pci" };
        let one = |(n, directory): (usize, &String)| {
            let tag = tag(n);
            let of_file =
                format!("local,id={tag},path=/{directory},readonly=on,security_model=none,multidevs=remap");
            [
                "-fsdev".to_owned(),
                of_file,
                "-device".to_owned(),
                format!("{device},fsdev={tag},mount_tag={tag}"),
            ]
        };
        self.directories.iter().enumerate().flat_map(one).collect()
    }

    pub fn fact(&self) -> String {
        format!("/{} by 9p, read-only, cache=loose", self.directories.join(", /"))
    }
}

fn tag(n: usize) -> String {
    format!("share{n}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn directories_are_shared_and_links_are_made_again() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["usr/bin", "lib64", "etc/alternatives", "home"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        symlink("usr/bin", at("bin")).unwrap();
        symlink("/usr/bin/gcc", at("etc/alternatives/cc")).unwrap();
        fs::write(at("etc/ld.so.cache"), "").unwrap();
        let share = Share::of(root.path());
        assert_eq!(share.directories(), ["usr", "lib64"]);
        let links = [("bin", "usr/bin"), ("etc/alternatives/cc", "/usr/bin/gcc")];
        assert_eq!(share.links, links.map(|(path, to)| (path.to_owned(), PathBuf::from(to))));
        assert_eq!(
            (share.files.as_slice(), share.lines().as_str()),
            (&["etc/ld.so.cache".to_owned()][..], "share0 usr\nshare1 lib64\n")
        );
        let arguments = share.arguments(Vmm::Qemu).join(" ");
        assert!(
            arguments.contains("path=/usr,readonly=on")
                && arguments.ends_with("fsdev=share1,mount_tag=share1"),
            "{arguments}"
        );
        assert!(share.has("lib/modules") && share.has("bin") && !share.has("var/tmp"));
    }

    #[test]
    fn a_kernel_without_9p_says_so() {
        let why = Share::prepare(&mut Modules::default()).unwrap_err();
        assert!(why.contains("no 9p") && why.contains("virtiofs"), "{why}");
    }
}
