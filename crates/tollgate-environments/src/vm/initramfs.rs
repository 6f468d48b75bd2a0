//! A root file system in memory, as the kernel takes it: an archive in the format `newc` of cpio(5), not compressed
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use tollgate_os::memfd;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const PLAIN: u32 = 0o100_644;
/// Sizes have eight hexadecimal digits.
const MOST: u64 = u32::MAX as u64;

/// An archive that grows.
pub(super) struct Initramfs {
    out: BufWriter<File>,
    written: u64,
    entries: u32,
}

impl Initramfs {
    pub fn new() -> io::Result<Self> {
        let file = memfd::create("tollgate-initramfs")?;
        Ok(Self { out: BufWriter::with_capacity(1 << 16, file), written: 0, entries: 0 })
    }

    /// A directory; its parents must be there.
    pub fn directory(&mut self, path: &str) -> io::Result<()> {
        self.entry(path, DIRECTORY, 0, &mut io::empty())
    }

    /// A file with these bytes.
    pub fn file(&mut self, path: &str, mut bytes: &[u8]) -> io::Result<()> {
        self.entry(path, PLAIN, bytes.len() as u64, &mut bytes)
    }

    /// A file that can be executed.
    pub fn program(&mut self, path: &str, from: &mut File) -> io::Result<()> {
        let size = from.metadata()?.len();
        self.entry(path, PROGRAM, size, from)
    }

    /// The archive, to be read from its beginning.
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
        let links = if mode == DIRECTORY { 2 } else { 1 };
        // Magic, inode, mode, uid, gid, links, mtime, size, four device numbers, the name's length, a checksum that newc leaves at 0.
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

    /// Headers and contents begin at multiples of four.
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
        let mut bytes = Vec::new();
        made.finish().unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn each_part_begins_at_a_multiple_of_four() {
        let bytes = archive();
        assert_eq!(bytes.len() % 4, 0);
        let at: Vec<usize> = (0..bytes.len() - 6).filter(|&at| bytes[at..].starts_with(b"070701")).collect();
        assert_eq!(at.len(), 4);
        assert!(at.iter().all(|at| at % 4 == 0), "{at:?}");
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
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a\na/b\na/empty\n");
    }

    #[test]
    fn a_file_that_becomes_shorter_is_no_file() {
        let mut made = Initramfs::new().unwrap();
        assert!(made.entry("a", PLAIN, 10, &mut &b"short"[..]).is_err());
    }
}
