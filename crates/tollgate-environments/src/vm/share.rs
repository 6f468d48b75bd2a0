//! The host's programs in a guest: its /usr and what else of /bin, /sbin and /lib is a directory, read-only, by 9p over virtio. A guest
//! that has a disk has them, so that workloads have their programs.
//!
//! virtiofs needs a process of the host's beside QEMU (virtiofsd), which is not started: a kernel without 9p has no such programs.

use std::fs;
use std::path::{Path, PathBuf};

use super::modules::{Has, Modules};
use super::settings::Vmm;

/// Where the host has programs and libraries. In most systems all but the first are symbolic links.
const PLACES: [&str; 6] = ["usr", "bin", "sbin", "lib", "lib32", "lib64"];
/// The transport's module needs 9pnet, the other netfs.
const MODULES: [&str; 2] = ["9pnet_virtio", "9p"];
/// Links such as `cc`, which lead out of /usr (update-alternatives(1)).
const ALTERNATIVES: &str = "etc/alternatives";
/// Names of libraries, for those that are in no usual place (ld.so(8)).
const CACHE: &str = "etc/ld.so.cache";
/// Links of the alternatives, at most.
const MOST_LINKS: usize = 4096;

/// Directories of the host that a guest has, and links.
#[derive(Debug, Clone, Default)]
pub(super) struct Share {
    /// By their paths from the root; the number of each is in its tag.
    directories: Vec<String>,
    /// Paths from the root, and where they lead.
    pub links: Vec<(String, PathBuf)>,
    /// Files that are copied.
    pub files: Vec<String>,
}

impl Share {
    /// What this host has; chooses the modules.
    ///
    /// # Errors
    /// A clause: the kernel has no 9p.
    pub fn prepare(modules: &mut Modules) -> Result<Self, String> {
        if let Some(missing) = MODULES.iter().find(|name| modules.has(name) == Has::No) {
            return Err(format!(
                "the kernel has no 9p (module {missing}), and its virtiofs would need a daemon of the host's"
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

    /// Whether the guest's own root file system has to leave this directory out.
    pub fn has(&self, directory: &str) -> bool {
        let first = directory.split('/').next().unwrap_or(directory);
        PLACES.contains(&first)
    }

    /// For the guest's side: tags and directories, a line each.
    pub fn lines(&self) -> String {
        self.directories
            .iter()
            .enumerate()
            .map(|(n, directory)| format!("{} {directory}\n", tag(n)))
            .collect()
    }

    /// The directories, from the root.
    pub fn directories(&self) -> &[String] {
        &self.directories
    }

    /// QEMU's arguments.
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

    /// A description.
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
