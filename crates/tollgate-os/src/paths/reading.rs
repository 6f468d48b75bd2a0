//! Reads files that another user may have made, without blocking and within bounds.
//!
//! A name in a shared directory may belong to a FIFO, whose open(2) waits for a writer, to a device, which may have no end,
//! or to a link to one. So the file is found as the parent module finds outputs, through no link that another user
//! controls. It is opened only if it is a regular file, and without waiting, even for a lease of its owner (fcntl(2),
//! `F_SETLEASE`). Its contents are still another user's.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tollgate_model::bounded;

use super::{Missing, PathError, Walk};

/// Opens a regular file for reading.
///
/// # Errors
/// As [`PathError`] says, also if it is not a regular file.
pub fn open_regular(path: &Path) -> Result<File, PathError> {
    let mut walk = Walk::begin(path)?;
    let found = walk.last(Missing::Refused)?.ok_or(Errno::ISDIR)?;
    let whole = walk.path.join(&found.name);
    // Checked before open(2), since opening a device can have an effect.
    expect_regular(&found.stat.ok_or(Errno::NOENT)?, &whole)?;
    let follow = if found.is_descriptor { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
    let file = rustix::fs::openat(&walk.at, &found.name, flags, Mode::empty())?;
    // The file may have been exchanged by now.
    expect_regular(&rustix::fs::fstat(&file)?, &whole)?;
    Ok(File::from(file))
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open_regular`]; the file is longer than `most`.
pub fn read_regular(path: &Path, most: u64) -> Result<Vec<u8>, PathError> {
    bounded::whole(open_regular(path)?, most)?.ok_or_else(|| PathError::TooLarge(path.to_owned(), most))
}

fn expect_regular(stat: &Stat, path: &Path) -> Result<(), PathError> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(Errno::ISDIR.into()),
        FileType::Symlink => return Err(PathError::AnyLink(path.to_owned())),
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Err(PathError::NotRegular(PathBuf::from(path), kind))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileExt, lchown, symlink};

    use rustix::fs::CWD;

    use super::*;

    fn why(path: &Path) -> String {
        read_regular(path, 100).unwrap_err().to_string()
    }

    #[test]
    fn a_regular_file_is_read_to_its_bound() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, [7; 100]).unwrap();
        assert_eq!(read_regular(&file, 100).unwrap(), [7; 100]);
        assert!(matches!(read_regular(&file, 99), Err(PathError::TooLarge(_, 99))));
        // A sparse file takes no memory.
        File::options().write(true).open(&file).unwrap().write_all_at(b"x", 1 << 40).unwrap();
        assert!(matches!(read_regular(&file, 100), Err(PathError::TooLarge(..))));
        symlink("file", place.path().join("link")).unwrap();
        let link = read_regular(&place.path().join("link"), 100);
        assert!(matches!(link, Err(PathError::TooLarge(..))), "a link of one's own is followed");
        assert!(open_regular(Path::new("/proc/self/exe")).is_ok());
        assert!(!read_regular(Path::new("/proc/self/status"), 1 << 16).unwrap().is_empty());
    }

    #[test]
    fn nothing_is_waited_for_and_no_device_is_read() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(why(&fifo).ends_with("fifo is a FIFO; a regular file would be right"), "{}", why(&fifo));
        let zero = place.path().join("zero");
        symlink("/dev/zero", &zero).unwrap();
        assert!(why(&zero).contains("/dev/zero is a device"), "{}", why(&zero));
        assert!(why(place.path()).starts_with("Is a directory"), "{}", why(place.path()));
        assert!(why(&place.path().join("none")).starts_with("No such file"));
        assert!(why(&place.path().join("..")).starts_with("Is a directory"));
    }

    #[test]
    fn no_link_of_another_user_is_followed() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root (to give a link to another user)");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("link");
        symlink("/etc/passwd", &link).unwrap();
        assert!(open_regular(&link).is_ok());
        lchown(&link, Some(54_321), None).unwrap();
        assert!(why(&link).contains("is a symbolic link that uid 54321 controls"), "{}", why(&link));
    }
}
