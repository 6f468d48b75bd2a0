//! A root file system in memory, as the kernel takes it: an uncompressed archive in the format `newc` of cpio(5)
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tollgate_os::memfd;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const PLAIN: u32 = 0o100_644;
/// Sizes have eight hexadecimal digits.
const MOST: u64 = u32::MAX as u64;

pub(super) struct Initramfs {
    out: BufWriter<File>,
    written: u64,
    entries: u32,
    contents: Vec<String>,
    directories: BTreeSet<String>,
}

impl Initramfs {
    pub fn new() -> io::Result<Self> {
        let file = memfd::create("tollgate-initramfs")?;
        Ok(Self {
            out: BufWriter::with_capacity(1 << 16, file),
            written: 0,
            entries: 0,
            contents: Vec::new(),
            directories: BTreeSet::new(),
        })
    }

    /// Appends a second archive to a finished one: the kernel unpacks both. Existing directories stay.
    pub fn behind(mut file: File) -> io::Result<Self> {
        let written = file.seek(SeekFrom::End(0))?;
        Ok(Self { written, out: BufWriter::with_capacity(1 << 16, file), ..Self::new()? })
    }

    /// Adds a directory and its ancestors, unless they exist.
    pub fn directory(&mut self, path: &str) -> io::Result<()> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            if self.directories.insert(path[..end].to_owned()) {
                self.entry(&path[..end], DIRECTORY, 0, &mut io::empty())?;
            }
        }
        Ok(())
    }

    fn parent(&mut self, path: &str) -> io::Result<()> {
        path.rsplit_once('/').map_or(Ok(()), |(parent, _)| self.directory(parent))
    }

    pub fn file(&mut self, path: &str, mut bytes: &[u8]) -> io::Result<()> {
        self.parent(path)?;
        self.entry(path, PLAIN, bytes.len() as u64, &mut bytes)
    }

    pub fn program(&mut self, path: &str, from: &mut File) -> io::Result<()> {
        self.parent(path)?;
        let size = from.metadata()?.len();
        self.entry(path, PROGRAM, size, from)
    }

    pub fn link(&mut self, path: &str, to: &Path) -> io::Result<()> {
        self.parent(path)?;
        let mut to = to.as_os_str().as_encoded_bytes();
        self.entry(path, LINK, to.len() as u64, &mut to)
    }

    pub fn contents(&self) -> &[String] {
        &self.contents
    }

    /// Ends the archive and rewinds the file.
    pub fn finish(mut self) -> io::Result<File> {
        self.entry("TRAILER!!!", 0, 0, &mut io::empty())?;
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    fn entry(&mut self, path: &str, mode: u32, size: u64, from: &mut dyn Read) -> io::Result<()> {
        if size > MOST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{path} is larger than 4 GiB")));
        }
        self.entries += 1;
        if matches!(mode, PROGRAM | PLAIN) {
            self.contents.push(path.to_owned());
        }
        let links = if mode == DIRECTORY { 2 } else { 1 };
        // Magic, inode, mode, uid, gid, links, mtime, size, four device numbers, length of the name, checksum (0 in newc).
        let fields = [self.entries, mode, 0, 0, links, 0, size as u32, 0, 0, 0, 0, path.len() as u32 + 1, 0];
        let mut header = String::from("070701");
        fields.iter().for_each(|field| header.push_str(&format!("{field:08x}")));
        self.put(header.as_bytes())?;
        self.put(path.as_bytes())?;
        self.put(&[0])?;
        self.pad()?;
        let copied = io::copy(&mut from.take(size), &mut self.out)?;
        self.written += copied;
        if copied != size {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{path} became shorter")));
        }
        self.pad()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Headers and contents begin at multiples of four bytes.
    fn pad(&mut self) -> io::Result<()> {
        let missing = self.written.next_multiple_of(4) - self.written;
        self.put(&[0; 3][..missing as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn archive() -> Vec<u8> {
        let mut made = Initramfs::new().unwrap();
        made.directory("a").unwrap();
        made.file("a/b", b"hello").unwrap();
        made.file("a/empty", b"").unwrap();
        made.link("a/link", Path::new("b")).unwrap();
        let mut bytes = Vec::new();
        made.finish().unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn each_part_begins_at_a_multiple_of_four() {
        let bytes = archive();
        assert_eq!(bytes.len() % 4, 0);
        let at: Vec<usize> = (0..bytes.len() - 6).filter(|&at| bytes[at..].starts_with(b"070701")).collect();
        assert_eq!(at.len(), 5);
        assert!(at.iter().all(|at| at % 4 == 0), "{at:?}");
    }

    #[test]
    fn directories_come_before_what_is_in_them_once() {
        let mut made = Initramfs::new().unwrap();
        made.file("a/b/c", b"1").unwrap();
        made.file("a/b/d", b"2").unwrap();
        made.directory("a/e").unwrap();
        let mut bytes = Vec::new();
        made.finish().unwrap().read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let places = ["a\0", "a/b\0", "a/b/c\0", "a/b/d\0", "a/e\0"].map(|name| text.find(name));
        assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
        assert_eq!(text.matches("070701").count(), 6);
    }

    #[test]
    fn cpio_reads_it() {
        let given = archive();
        let cpio = Command::new("cpio")
            .args(["-it", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut cpio) = cpio else { return println!("skipped: cpio is not installed") };
        cpio.stdin.take().unwrap().write_all(&given).unwrap();
        let output = cpio.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a\na/b\na/empty\na/link\n");
    }

    #[test]
    fn a_file_that_becomes_shorter_is_no_file() {
        let mut made = Initramfs::new().unwrap();
        assert!(made.entry("a", PLAIN, 10, &mut &b"short"[..]).is_err());
    }
}
