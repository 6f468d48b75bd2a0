//! Digests of trees, over names and bytes, independent of the files' order.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The contents of a tree: a sum over its files. It detects damage, not deliberate forgery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest {
    pub files: u64,
    pub sum: u64,
}

const MOST_DEPTH: usize = 8;
/// Upper bound for the size of our files.
const MOST_BYTES: u64 = 8 << 20;

impl Digest {
    pub fn add(&mut self, path: &[u8], bytes: &[u8]) {
        self.files += 1;
        self.sum = self.sum.wrapping_add(of_bytes(of_bytes(BEGIN, path) ^ path.len() as u64, bytes));
    }

    /// Computes the digest of a tree on disk, without `.git`.
    pub fn of_tree(root: &Path) -> io::Result<Self> {
        let mut digest = Self::default();
        for path in files(root, false)? {
            let whole = root.join(&path);
            let status = whole.symlink_metadata()?;
            // Anything but regular files changes the digest.
            let bytes = if status.is_file() && status.len() <= MOST_BYTES {
                let mut bytes = Vec::new();
                File::open(&whole)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
                bytes
            } else {
                b"not a file of ours".to_vec()
            };
            digest.add(path.as_os_str().as_encoded_bytes(), &bytes);
        }
        Ok(digest)
    }
}

/// Returns the relative names of all files under `root`, with or without `.git`.
pub(super) fn files(root: &Path, with_git: bool) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![(PathBuf::new(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        for entry in std::fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true if !with_git && entry.file_name() == ".git" => {}
                true if depth == MOST_DEPTH => return Err(io::Error::other("directories are too deep")),
                true => directories.push((path, depth + 1)),
                false => files.push(path),
            }
        }
    }
    Ok(files)
}

const BEGIN: u64 = 0xcbf2_9ce4_8422_2325;

/// Hashes eight bytes at a time. Each step is one-to-one (after FNV-1a), so that no changed byte is lost within a file.
fn of_bytes(begin: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let (words, rest) = bytes.as_chunks::<8>();
    let step = |sum: u64, word: u64| {
        let mixed = (sum ^ word).wrapping_mul(PRIME);
        mixed ^ mixed >> 29
    };
    let sum = words.iter().fold(begin, |sum, word| step(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(step(sum, bytes.len() as u64), |sum, &byte| step(sum, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(files: &[(&str, &str)]) -> Digest {
        let mut digest = Digest::default();
        files.iter().for_each(|(path, text)| digest.add(path.as_bytes(), text.as_bytes()));
        digest
    }

    #[test]
    fn a_digest_depends_on_names_bytes_and_files_not_on_order() {
        let whole = digest(&[("a", "one and one more"), ("b", "two")]);
        assert_eq!(whole, digest(&[("b", "two"), ("a", "one and one more")]));
        for other in [
            digest(&[("a", "one and one morf"), ("b", "two")]),
            digest(&[("a", "one and one more"), ("c", "two")]),
            digest(&[("a", "two"), ("b", "one and one more")]),
            digest(&[("a", "one and one more"), ("b", "two"), ("c", "")]),
            digest(&[("ab", "two"), ("", "one and one more")]),
        ] {
            assert_ne!(whole, other);
        }
    }
}
