//! The programs that are started: files in memory (memfd_create(2)), so that no file system keeps them.

use std::ffi::{CString, c_char};
use std::io::{self, Write};
use std::{fs::File, os::fd::AsRawFd};

use flate2::read::DeflateDecoder;

use tollgate_os::memfd;

use crate::prelude::*;

/// Statically linked; the build script builds and compresses it.
static STATIC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/image-static.deflate"));
/// Linked dynamically.
static DYNAMIC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/image-dynamic.deflate"));

words! {
    /// A bare one has no C library: only the kernel's part is measured.
    pub(super) enum Image("image") { Dynamic = "dynamic", Static = "static", Bare = "bare" }
}

impl Image {
    /// Unpacks the program into a file in pieces: memory that this process dirties would slow its forks.
    fn write(self, file: &mut File) -> io::Result<()> {
        let packed = match self {
            Self::Bare => return file.write_all(bare()),
            Self::Static => STATIC,
            Self::Dynamic => DYNAMIC,
        };
        io::copy(&mut DeflateDecoder::new(packed), file).map(drop)
    }

    pub fn refusal(self, call: &str, error: &io::Error, quota: &Quota) -> Refusal {
        match (error.raw_os_error(), self) {
            (Some(libc::ENOENT), Self::Dynamic) => {
                skip!("the program's dynamic loader is missing here")
            }
            _ => quota.refused(call, error),
        }
    }
}

pub use tollgate_arch::bare::program as bare;

/// A program in memory, and its path for this process and its children.
pub(super) struct Program {
    pub path: CString,
    _file: File,
}

impl Program {
    pub fn new(image: Image) -> Result<Self> {
        // A chain of executions uses the path repeatedly, so the descriptor must stay open in the programs.
        let mut file = memfd::create_executable("tollgate-image")
            .or_refused("this environment does not start programs from memory: memfd_create")?;
        image.write(&mut file).or_refused("the program cannot be written to memory")?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        if !std::path::Path::new(&path).exists() {
            return Err(skip!("a program in memory needs /proc/self/fd, which is missing here"));
        }
        let path = CString::new(path).map_err(|error| Refusal::Fail(error.to_string()))?;
        Ok(Self { path, _file: file })
    }

    /// Returns the arguments of a chain of at least one execution. They borrow from this.
    pub fn chain(&self, executions: usize) -> Vec<*const c_char> {
        let mut arguments = vec![self.path.as_ptr(); executions.max(1)];
        arguments.push(std::ptr::null());
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    #[test]
    fn each_image_ends_with_0_after_a_chain_of_any_length() {
        for &image in Image::ALL {
            let name = image.word();
            let Some(program) = ready(name, Program::new(image)) else { continue };
            for executions in [1, 2, 9] {
                let path = program.path.to_str().expect("text");
                // The standard library sets the first argument itself.
                let arguments = vec![path; executions - 1];
                let status = std::process::Command::new(path).args(arguments).status();
                match status {
                    Ok(status) => assert!(status.success(), "{name} after {executions}: {status}"),
                    Err(error) if image == Image::Dynamic && error.raw_os_error() == Some(libc::ENOENT) => {
                        println!("skipped: no dynamic loader here");
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            // A failed execution in the chain is reported.
            let status =
                std::process::Command::new(program.path.to_str().expect("text")).arg("/nonexistent").status();
            if let Ok(status) = status {
                assert_eq!(status.code(), Some(126), "{name}");
            }
        }
    }

    #[test]
    fn the_bare_image_is_an_elf_file_of_a_few_hundred_bytes() {
        assert_eq!(&bare()[..5], b"\x7fELF\x02");
        assert!(bare().len() < 400, "{} bytes", bare().len());
    }
}
