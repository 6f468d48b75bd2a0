//! Files of the host that commands need in a guest: opened files with their contents, others by name, size and times.
//!
//! The contents go into the archive, under paths without links. Everything else is in a list for `/init`: directories, links,
//! files that were looked at but not opened, and the owners, modes and times of all.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use tollgate_os::paths::open_regular;

use super::initramfs::Initramfs;
use super::{layout, programs};
use crate::error::{EnvironmentError, bytes, plainly, unusable};
use crate::wanted::{Wanted, What};

const MOST_BYTES: u64 = 300 << 20;
const MOST_ENTRIES: usize = 100_000;
/// Limit of links on the way to a file (`MAXSYMLINKS` in include/linux/namei.h).
const MOST_LINKS: usize = 40;
/// Bytes of a program that are read for the name of its loader or interpreter.
const MOST_HEAD: u64 = 1 << 20;
/// Paths that a guest has of its own.
const OWN: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tollgate", "/init"];
/// Number of the largest files that a message names if there is too much.
const NAMED: usize = 3;

/// Copied entries, by paths from the root without links.
#[derive(Debug, Default)]
pub(super) struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
    /// Files whose interpreters are not known yet.
    programs: Vec<PathBuf>,
    /// Files that are younger are the command's own output.
    since: Option<SystemTime>,
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    about: Metadata,
    to: Option<PathBuf>,
    /// Whether its contents are copied.
    has_content: bool,
    /// Whether its times are copied. Those of a directory on the way, such as /tmp, differ each time.
    has_times: bool,
}

impl Tree {
    /// Reads all that is wanted. A file that was made after `since` is left out, unless it replaced another or
    /// everything in its directory is wanted. Fails if it is too much or a directory cannot be read.
    pub fn read(wanted: &[Wanted], since: SystemTime) -> Result<Self, EnvironmentError> {
        let mut tree = Self { since: Some(since), ..Self::default() };
        // Programs have paths built in that begin with these, such as /lib and /bin.
        let roots = fs::read_dir("/").into_iter().flatten().flatten();
        for link in roots.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            tree.add(&link.path(), What::Presence)?;
        }
        for Wanted { path, what } in wanted {
            tree.add(path, *what)?;
        }
        while let Some(program) = tree.programs.pop() {
            if let Some(interpreter) = interpreter(&program) {
                tree.add(&interpreter, What::Content)?;
            }
        }
        tree.check()?;
        Ok(tree)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// `20.3 MB in 812 files`
    pub fn sentence(&self) -> String {
        let files = self.entries.values().filter(|entry| entry.has_content).count();
        format!("{} in {files} files", bytes(self.bytes))
    }

    /// Adds a path with all links and directories on the way. A missing path is skipped.
    fn add(&mut self, path: &Path, what: What) -> Result<(), EnvironmentError> {
        let mut place = PathBuf::from("/");
        let mut rest: Vec<PathBuf> = reversed(path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            match name.components().next() {
                Some(Component::Normal(name)) => place.push(name),
                Some(Component::ParentDir) => {
                    place.pop();
                    continue;
                }
                _ => continue,
            }
            if is_own(&place) {
                return Ok(());
            }
            let Ok(about) = fs::symlink_metadata(&place) else { return Ok(()) };
            let is_last = rest.is_empty();
            if about.is_symlink() {
                let Ok(to) = fs::read_link(&place) else { return Ok(()) };
                links += 1;
                if links > MOST_LINKS {
                    return Ok(());
                }
                rest.extend(reversed(&to));
                let from = if to.is_absolute() { PathBuf::from("/") } else { above(&place) };
                self.insert(&place, about, Some(to))?;
                place = from;
                continue;
            }
            let is_directory = about.is_dir();
            if !is_last && !is_directory {
                return Ok(());
            }
            match (is_last, is_directory) {
                (true, true) => {
                    self.insert(&place, about, None)?;
                    self.below(&place, what)?;
                }
                (true, false) => self.file(&place, about, what)?,
                (false, _) => self.on_the_way(&place, about)?,
            }
        }
        Ok(())
    }

    fn insert(&mut self, place: &Path, about: Metadata, to: Option<PathBuf>) -> Result<(), EnvironmentError> {
        if self.entries.len() >= MOST_ENTRIES {
            return Err(unusable!(
                "vm: the command looks at more than {MOST_ENTRIES} files, the limit for a guest; the last of them is {}",
                place.display()
            ));
        }
        let new = Entry { about, to, has_content: false, has_times: true };
        self.entries.entry(place.to_owned()).or_insert(new).has_times = true;
        Ok(())
    }

    fn on_the_way(&mut self, place: &Path, about: Metadata) -> Result<(), EnvironmentError> {
        let has_times = self.entries.get(place).is_some_and(|entry| entry.has_times);
        self.insert(place, about, None)?;
        if let Some(entry) = self.entries.get_mut(place) {
            entry.has_times = has_times;
        }
        Ok(())
    }

    /// Omits the times of a directory without links in its path and of those above it, even if the command asked for them. Shells and git look
    /// at the working directory and those above it, and files are made there between two calls.
    pub fn forget_times(&mut self, place: &Path) {
        for place in place.ancestors() {
            if let Some(entry) = self.entries.get_mut(place) {
                entry.has_times = false;
            }
        }
    }

    /// Adds the wanted contents of a directory, whose path has no links.
    fn below(&mut self, place: &Path, what: What) -> Result<(), EnvironmentError> {
        let inner = match what {
            What::Names | What::Content | What::Replaced => What::Presence,
            What::All => What::All,
            What::Presence => return Ok(()),
        };
        let mut open = vec![place.to_owned()];
        while let Some(directory) = open.pop() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for path in entries.flatten().map(|entry| entry.path()).filter(|path| !is_own(path)) {
                let Ok(about) = fs::symlink_metadata(&path) else { continue };
                if about.is_symlink() {
                    // The link itself is copied; its target only if that is wanted too.
                    let to = fs::read_link(&path).ok();
                    self.insert(&path, about, to)?;
                } else if about.is_dir() {
                    self.insert(&path, about, None)?;
                    open.extend((inner == What::All).then_some(path));
                } else {
                    self.file(&path, about, inner)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, place: &Path, about: Metadata, what: What) -> Result<(), EnvironmentError> {
        let is_new = |since: SystemTime| about.created().is_ok_and(|created| created >= since);
        if !about.is_file() || (what < What::Replaced && self.since.is_some_and(is_new)) {
            return Ok(());
        }
        let has_content = what >= What::Content;
        let (size, is_program) = (about.len(), about.mode() & 0o111 != 0);
        self.insert(place, about, None)?;
        let Some(entry) = self.entries.get_mut(place) else { return Ok(()) };
        if has_content && !entry.has_content {
            entry.has_content = true;
            self.bytes = self.bytes.saturating_add(size);
            if is_program {
                self.programs.push(place.to_owned());
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), EnvironmentError> {
        if self.bytes <= MOST_BYTES {
            return Ok(());
        }
        let mut files: Vec<(u64, &Path)> = self.contents().map(|(path, size)| (size, path)).collect();
        files.sort_by(|a, b| b.cmp(a));
        let largest = files.iter().take(NAMED);
        let largest: Vec<String> =
            largest.map(|(size, path)| format!("{} ({})", path.display(), bytes(*size))).collect();
        Err(unusable!(
            "vm: the command's files take {}, but a guest takes at most {}; omit those that it need not read: the largest are {}",
            self.sentence(),
            bytes(MOST_BYTES),
            largest.join(", ")
        ))
    }

    fn contents(&self) -> impl Iterator<Item = (&Path, u64)> {
        let with_content = self.entries.iter().filter(|(_, entry)| entry.has_content);
        with_content.map(|(path, entry)| (path.as_path(), entry.about.len()))
    }

    /// Adds the contents and the list to an archive. Fails if a file cannot be read or a name is not text.
    pub fn write(&self, made: &mut Initramfs) -> io::Result<()> {
        for (path, size) in self.contents() {
            let of_file =
                |error: io::Error| io::Error::other(format!("{}: {}", path.display(), plainly(error)));
            let mut file = open_regular(path).map_err(io::Error::other)?;
            // It may have grown since it was counted, and there is room only for what was counted.
            if file.metadata().map_err(of_file)?.len() > size {
                return Err(of_file(io::Error::other(
                    "it grew while it was read; no other process may write it",
                )));
            }
            made.program(super::path_there(path)?, &mut file).map_err(of_file)?;
        }
        made.file(layout::TREE, &self.list())
    }

    /// For each entry: its attributes and its path, NUL, the target if it is a link, and another NUL.
    fn list(&self) -> Vec<u8> {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mut list = Vec::new();
        for (path, Entry { about, to, has_content, has_times }) in &self.entries {
            let kind = match (to, about.is_dir(), has_content) {
                (Some(_), ..) => layout::A_LINK,
                (_, true, _) => layout::A_DIRECTORY,
                (_, _, true) => layout::A_FILE,
                (_, _, false) => layout::A_SHELL,
            };
            // The guest's only user is root, who must own what the user owns here: git and ssh require that.
            let user = if about.uid() == own.0 { 0 } else { about.uid() };
            let group = if about.gid() == own.1 { 0 } else { about.gid() };
            // Making entries may make a directory larger, and the guest's file system has sizes of its own.
            let (mode, size) = (about.mode() & 0o7777, if about.is_dir() { 0 } else { about.len() });
            // The command itself made an entry in a directory that is younger, as `git status` makes its lock.
            let is_changed = |since: SystemTime| about.modified().is_ok_and(|changed| changed >= since);
            let has_times = *has_times && !(about.is_dir() && self.since.is_some_and(is_changed));
            let times = has_times.then(|| (about.mtime(), about.mtime_nsec()));
            let (seconds, nanoseconds) = times.unwrap_or_default();
            let numbers = format!("{kind} {mode} {user} {group} {seconds} {nanoseconds} {size} ");
            let to = to.as_deref().unwrap_or(Path::new("")).as_os_str();
            list.extend(
                [numbers.as_bytes(), path.as_os_str().as_bytes(), b"\0", to.as_bytes(), b"\0"].concat(),
            );
        }
        list
    }
}

/// Its components, the last one first; the root is a slash.
fn reversed(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}

fn above(place: &Path) -> PathBuf {
    place.parent().unwrap_or(Path::new("/")).to_owned()
}

fn is_own(place: &Path) -> bool {
    OWN.iter().any(|own| place == Path::new(own))
}

/// Returns the file that the kernel loads with a program: its loader, or the interpreter of a script.
pub fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    open_regular(program).ok()?.take(MOST_HEAD).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next()?;
        let name = line.split(|byte| byte.is_ascii_whitespace()).find(|word| !word.is_empty())?;
        return Some(PathBuf::from(OsStr::from_bytes(name))).filter(|path| path.is_absolute());
    }
    programs::loader(&head)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn wanted(path: &Path, what: What) -> Wanted {
        Wanted { path: path.to_owned(), what }
    }

    fn has(tree: &Tree, path: &Path) -> Option<bool> {
        tree.entries.get(path).map(|entry| entry.has_content)
    }

    #[test]
    fn links_and_directories_on_the_way_come_along() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        fs::write(root.join("real/inner/file"), "text").unwrap();
        fs::write(root.join("real/other"), "not opened").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink(root.join("link/inner/file"), root.join("far")).unwrap();
        let since = SystemTime::now() + std::time::Duration::from_secs(60);
        let all = [
            wanted(&root.join("link/../far"), What::Content),
            wanted(&root.join("link"), What::Names),
            wanted(&root.join("nothing"), What::Content),
        ];
        let tree = Tree::read(&all, since).unwrap();
        assert_eq!(has(&tree, &root.join("real/inner/file")), Some(true));
        assert_eq!(has(&tree, &root.join("real/other")), Some(false));
        assert_eq!(has(&tree, &root.join("far")), Some(false));
        assert_eq!(tree.entries[&root.join("link")].to.as_deref(), Some(Path::new("real")));
        assert!(tree.entries[&root].about.is_dir());
        assert_eq!(has(&tree, &root.join("nothing")), None);
        // The times of entries that were not asked for do not change the image.
        assert!(!tree.entries[&root].has_times && tree.entries[&root.join("real")].has_times);
        assert_eq!(tree.bytes(), 4);
        let list = tree.list();
        assert_eq!(list.iter().filter(|byte| **byte == 0).count(), 2 * tree.entries.len());
    }

    #[test]
    fn a_file_made_beside_what_is_wanted_leaves_the_image_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (way, own) = (root.join("way"), root.join("own"));
        [&way, &own].iter().for_each(|path| fs::create_dir(path).unwrap());
        fs::write(way.join("read"), "text").unwrap();
        let named = [(&own, What::Presence), (&root, What::Presence), (&way.join("read"), What::Content)];
        let wanted = named.map(|(path, what)| wanted(path, what));
        let image = |wanted: &[Wanted], since: SystemTime| {
            let mut tree = Tree::read(wanted, since).unwrap();
            tree.forget_times(&own);
            let mut made = Initramfs::new().unwrap();
            tree.write(&mut made).unwrap();
            let mut bytes = Vec::new();
            made.finish().unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        };
        let later = SystemTime::now() + LATER;
        let before = image(&wanted, later);
        for number in 0..100 {
            [&root, &way, &own].iter().for_each(|path| fs::write(path.join(number.to_string()), "").unwrap());
        }
        let set = |path: &Path, tv_sec: i64| {
            let time = rustix::fs::Timespec { tv_sec, tv_nsec: 0 };
            let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::empty()).unwrap();
        };
        [&root, &way, &own].iter().for_each(|path| set(path, 1));
        assert!(image(&wanted, later) == before, "a time of a directory is in the image");
        set(&way.join("read"), 1);
        assert!(image(&wanted, later) != before, "the times of a file are not");
        // A directory that the command looks at has its times, unless the command itself changed it.
        let looked = [super::tests::wanted(&way, What::Presence)];
        let images = [(5, 9), (6, 9), (7, 6), (8, 6)].map(|(changed, since)| {
            set(&way, changed);
            image(&looked, SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(since))
        });
        assert!(images[0] != images[1] && images[2] == images[3], "{:?}", images.map(|image| image.len()));
    }

    #[test]
    fn a_file_that_the_command_made_stays_out_and_a_whole_tree_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let long_ago = SystemTime::UNIX_EPOCH;
        fs::write(root.join("made"), "text").unwrap();
        let tree = Tree::read(&[wanted(&root.join("made"), What::Content)], long_ago).unwrap();
        assert_eq!(has(&tree, &root.join("made")), None);
        let tree = Tree::read(&[wanted(&root, What::All)], long_ago).unwrap();
        assert_eq!(has(&tree, &root.join("made")), Some(true));
    }

    #[test]
    fn a_program_brings_what_loads_it() {
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        let tree = Tree::read(&[wanted(Path::new("/bin/sh"), What::Content)], later).unwrap();
        let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
        let loader = loaders.into_iter().find_map(|path| fs::canonicalize(path).ok()).unwrap();
        assert_eq!(has(&tree, &loader), Some(true), "{:?}", tree.entries.keys());
    }

    #[test]
    fn a_whole_tree_comes_along_however_deep_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let deep = (0..900).fold(root.clone(), |path, _| path.join("d"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "text").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            deep.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let tree = Tree::read(&[wanted(&root, What::All)], SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(has(&tree, &deep.join("file")), Some(true));
        assert_eq!(has(&tree, &deep.join("fifo")), None);
        assert_eq!(tree.entries.keys().filter(|path| path.starts_with(&root)).count(), 902);
        // Everything else on the machine is looked at and too much; what a guest has of its own is left out.
        let tree = Tree::read(&[wanted(Path::new("/proc/self"), What::All)], SystemTime::UNIX_EPOCH).unwrap();
        assert!(tree.entries.keys().all(|path| !path.starts_with("/proc")));
    }

    #[test]
    fn a_file_that_grew_since_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("file");
        fs::write(&path, "text").unwrap();
        let tree = Tree::read(&[wanted(&path, What::Content)], SystemTime::now() + LATER).unwrap();
        let write = || tree.write(&mut Initramfs::new().unwrap()).map_err(|error| error.to_string());
        assert_eq!(write(), Ok(()));
        fs::write(&path, "texts").unwrap();
        assert!(
            write().unwrap_err().ends_with("file: it grew while it was read; no other process may write it")
        );
    }

    /// A file that was made before is not the command's own.
    const LATER: std::time::Duration = std::time::Duration::from_secs(60);

    #[test]
    fn too_much_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::File::create(root.join("large")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = Tree::read(&[wanted(&root, What::All)], SystemTime::UNIX_EPOCH).unwrap_err().to_string();
        assert!(error.contains("large") && error.contains("300"), "{error}");
    }
}
