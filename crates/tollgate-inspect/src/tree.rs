//! A captured tree, read so that no path leaves it: a tree is untrusted, and a link or `..` in it could lead to files of this
//! machine. Every directory on a path is opened on its own. The kernel follows no links; they are followed here, with the tree's
//! root as `/`. This works without openat2(2), and only regular files are opened.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::{collections::VecDeque, fs::File, io, os::fd::OwnedFd};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

pub(crate) const MAX_ENTRIES: usize = 4096;
/// The kernel's own limit (`MAXSYMLINKS`).
pub(crate) const MAX_LINKS: usize = 40;
/// More nested directories than any fact needs; all of them are open during the walk.
const MAX_PARTS: usize = 200;

#[derive(Debug, Clone)]
pub(crate) struct Tree(PathBuf);

struct End {
    parent: OwnedFd,
    name: OsString,
    kind: FileType,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Follow,
    Keep,
}

impl Tree {
    pub fn new(root: PathBuf) -> Self {
        Self(root)
    }

    /// Opens a regular file for reading. Opening anything else may block or have side effects.
    pub fn file(&self, path: &str) -> io::Result<File> {
        let end = self.walk(path, Last::Follow)?;
        match end.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Err(io::Error::from_raw_os_error(libc::EISDIR)),
            _ => return Err(io::Error::other("not a regular file")),
        }
        let reading = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&end.parent, &end.name, reading, Mode::empty())?))
    }

    pub fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let end = self.walk(path, Last::Follow)?;
        let reading = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&end.parent, &end.name, reading, Mode::empty())?;
        let names = Dir::read_from(directory)?.take(MAX_ENTRIES).map(|entry| {
            let entry = entry?;
            Ok(entry.file_name().to_string_lossy().into_owned())
        });
        let names: io::Result<Vec<String>> = names.collect();
        Ok(names?.into_iter().filter(|name| name != "." && name != "..").collect())
    }

    pub fn link(&self, path: &str) -> io::Result<String> {
        let end = self.walk(path, Last::Keep)?;
        let target = rustix::fs::readlinkat(&end.parent, &end.name, Vec::new())?;
        Ok(target.to_string_lossy().into_owned())
    }

    pub fn there(&self, path: &str) -> io::Result<()> {
        self.walk(path, Last::Keep).map(drop)
    }

    fn walk(&self, path: &str, last: Last) -> io::Result<End> {
        let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut above = vec![rustix::fs::openat(CWD, &self.0, way, Mode::empty())?];
        // A requested path never has `..`; a link may.
        let mut rest: VecDeque<OsString> = parts(Path::new(path)).filter(|part| part != "..").collect();
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            if above.len() + rest.len() > MAX_PARTS {
                return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
            }
            if part == ".." {
                // The parent of the root is the root.
                above.truncate(above.len().saturating_sub(1).max(1));
                continue;
            }
            let Some(here) = above.last() else { break };
            let stat = rustix::fs::statat(here, &part, AtFlags::SYMLINK_NOFOLLOW)?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if kind == FileType::Symlink && (!rest.is_empty() || last == Last::Follow) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                let target = rustix::fs::readlinkat(here, &part, Vec::new())?.into_bytes();
                let target = PathBuf::from(OsString::from_vec(target));
                if target.is_absolute() {
                    above.truncate(1);
                }
                let inner: Vec<OsString> = parts(&target).collect();
                inner.into_iter().rev().for_each(|part| rest.push_front(part));
                continue;
            }
            if rest.is_empty() {
                let parent = above.pop().ok_or(io::ErrorKind::NotFound)?;
                return Ok(End { parent, name: part, kind });
            }
            above.push(rustix::fs::openat(here, &part, way | OFlags::NOFOLLOW, Mode::empty())?);
        }
        let parent = above.pop().ok_or(io::ErrorKind::NotFound)?;
        Ok(End { parent, name: OsStr::from_bytes(b".").to_owned(), kind: FileType::Directory })
    }
}

pub(crate) fn parts(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Read, os::unix::fs::symlink};

    use super::*;

    fn tree() -> (tempfile::TempDir, Tree) {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("tree");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(outside.path().join("secret"), "outside").unwrap();
        fs::write(root.join("a/b/file"), "inside").unwrap();
        (outside, Tree::new(root))
    }

    fn content(tree: &Tree, path: &str) -> io::Result<String> {
        let mut text = String::new();
        tree.file(path)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn links_stay_inside() {
        let (outside, tree) = tree();
        let root = outside.path().join("tree");
        let secret = outside.path().join("secret");
        symlink(&secret, root.join("absolute")).unwrap();
        symlink("../secret", root.join("relative")).unwrap();
        symlink("../../../../../../../../../../../../etc", root.join("a/etc")).unwrap();
        symlink("/", root.join("a/top")).unwrap();
        symlink("../../a/../../../a/b", root.join("a/climbs")).unwrap();
        for path in ["/absolute", "/relative", "/../secret", "/a/etc/passwd", "/a/../../secret"] {
            let error = content(&tree, path).expect_err(path);
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{path}");
        }
        for path in ["/a/b/file", "a/b/file", "/a/top/a/b/file", "/a/climbs/file"] {
            assert_eq!(content(&tree, path).expect(path), "inside", "{path}");
        }
        assert_eq!(tree.link("/relative").unwrap(), "../secret");
        assert!(tree.there("/relative").is_ok() && tree.there("/none").is_err());
        assert_eq!(tree.names("/a/top/a").unwrap().len(), 4);
        assert_eq!(tree.names("/").unwrap().len(), 3);
    }

    #[test]
    fn a_link_through_proc_leads_nowhere() {
        let (outside, tree) = tree();
        let root = outside.path().join("tree");
        symlink("/proc/self/cwd/etc", root.join("magic")).unwrap();
        assert_eq!(content(&tree, "/magic/passwd").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn rings_pipes_and_depths_end() {
        let (outside, tree) = tree();
        let root = outside.path().join("tree");
        symlink("ring", root.join("ring")).unwrap();
        symlink("grow/grow", root.join("grow")).unwrap();
        for path in ["/ring", "/grow", "/ring/x"] {
            assert!(content(&tree, path).is_err(), "{path}");
        }
        let pipe = root.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(content(&tree, "/pipe").unwrap_err().to_string().contains("not a regular file"));
        assert_eq!(content(&tree, "/a").unwrap_err().raw_os_error(), Some(libc::EISDIR));
        let deep = "/x".repeat(100_000);
        assert_eq!(content(&tree, &deep).unwrap_err().raw_os_error(), Some(libc::ENAMETOOLONG));
        assert_eq!(content(&tree, "/a/b/file/x").unwrap_err().raw_os_error(), Some(libc::ENOTDIR));
    }
}
