//! An archive of the tree, written by tollgate, so that tar(1) only unpacks it.

use std::io::{self, BufWriter, Write};
use std::{fs::File, path::PathBuf};

use super::command::on_files;
use super::fixture::{Tree, at_work};
use super::history::BEGAN;
use super::source::{self, Version};
use crate::prelude::*;

/// A record of an archive, in bytes (pax(1), ustar interchange format).
const RECORD: usize = 512;

pub(super) fn path(fixture: &Tree) -> PathBuf {
    fixture.path_of("ferry.tar")
}

pub(super) fn make(fixture: &Tree, context: &mut RunContext) -> Step<()> {
    let path = path(fixture);
    if path.exists() {
        return Ok(());
    }
    let mut archive = BufWriter::new(on_files("open(2)", File::create(&path))?);
    source::make(fixture.size, Version::First, |file| {
        at_work(context, "the archive of the tree")?;
        on_files("write(2)", add(&mut archive, &file.path, file.text.as_bytes()))
    })?;
    // Two empty records end an archive.
    on_files("write(2)", archive.write_all(&[0; 2 * RECORD]).and_then(|()| archive.flush()))
}

fn add(archive: &mut impl Write, path: &str, bytes: &[u8]) -> io::Result<()> {
    archive.write_all(&header(path, bytes.len())?)?;
    archive.write_all(bytes)?;
    let rest = bytes.len().next_multiple_of(RECORD) - bytes.len();
    archive.write_all(&[0; RECORD][..rest])
}

fn header(path: &str, length: usize) -> io::Result<[u8; RECORD]> {
    // SAFETY: neither call has preconditions.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mut header = [0; RECORD];
    let mut put = |at: usize, limits: usize, text: &str| {
        if text.len() <= limits {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
            Ok(())
        } else {
            Err(io::Error::other("a name or number is too long for an archive"))
        }
    };
    put(0, 100, path)?;
    put(100, 8, "0000644")?;
    // Seven digits are enough for most users; for others tar uses its own user.
    put(108, 8, &format!("{:07o}", user & 0o777_7777))?;
    put(116, 8, &format!("{:07o}", group & 0o777_7777))?;
    put(124, 12, &format!("{length:011o}"))?;
    put(136, 12, &format!("{BEGAN:011o}"))?;
    // The checksum counts its own field as blanks.
    put(148, 8, "        ")?;
    put(156, 1, "0")?;
    put(257, 8, "ustar\u{0}00")?;
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\u{0} ").as_bytes());
    Ok(header)
}
