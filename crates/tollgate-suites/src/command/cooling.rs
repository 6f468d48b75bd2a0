//! Files out of the page cache, one by one, without rights of root.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::{io, path::Path};

use tollgate_engine::versus::{Cooled, Halt};
use tollgate_engine::{BenchError, interrupt};

use crate::files::data_dir::FileSystemKind;
use crate::files::residency::{ResidencyCall, Trial, emptied, write_pages};

/// What is known of the calls that say which pages are cached.
#[derive(Debug, Default)]
pub(super) struct Cooling {
    /// The call that told the truth on each file system, by its device.
    calls: BTreeMap<u64, ResidencyCall>,
}

/// What became of a file.
enum Became {
    /// It has no pages, or cannot be read.
    Skipped,
    /// Its pages are gone, by this call.
    Cold(ResidencyCall),
    /// Some of them stayed, by this call.
    Stayed(ResidencyCall),
    /// No call says whether they stayed.
    Unknown,
}

impl Cooling {
    /// Drops the pages of these files.
    ///
    /// # Errors
    /// The user's signal.
    pub fn cool(&mut self, files: &[String]) -> Result<Cooled, Halt> {
        let mut cooled = Cooled::default();
        let mut unknown = Vec::new();
        for path in files {
            interrupt::check(|signal| Halt::Run(BenchError::Interrupted(signal)))?;
            let became = self.cool_one(Path::new(path)).unwrap_or(Became::Skipped);
            cooled.files += u32::from(!matches!(became, Became::Skipped));
            match became {
                Became::Skipped => {}
                Became::Unknown => unknown.push(path.clone()),
                Became::Stayed(call) | Became::Cold(call) => {
                    cooled.certified_by.get_or_insert_with(|| call.name().to_owned());
                    if matches!(became, Became::Stayed(_)) {
                        cooled.stayed.push(path.clone());
                    }
                }
            }
        }
        if cooled.certified_by.is_some() {
            // Of these nothing is certified.
            cooled.stayed.append(&mut unknown);
        }
        Ok(cooled)
    }

    fn cool_one(&mut self, path: &Path) -> io::Result<Became> {
        // A FIFO is not waited for.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.len() == 0 {
            return Ok(Became::Skipped);
        }
        let (length, device) = (about.len(), about.dev());
        let file: OwnedFd = file.into();
        if let Some(&call) = self.calls.get(&device) {
            // Linux asks it of a file's owner, or for the permission to write.
            return Ok(became(call, &file, length).unwrap_or(Became::Unknown));
        }
        let kind = FileSystemKind::of_file(&file);
        let first = Trial::make(&file, kind);
        let trial = match first {
            Ok(Trial { drops: true, .. }) => first,
            _ => {
                // Dirty pages stay until writeback.
                write_pages(&file);
                Trial::make(&file, kind)
            }
        };
        match trial {
            Ok(Trial { call, drops: true }) => {
                self.calls.insert(device, call);
                became(call, &file, length)
            }
            Ok(Trial { call, drops: false }) => Ok(Became::Stayed(call)),
            Err(_) => Ok(Became::Unknown),
        }
    }
}

fn became(call: ResidencyCall, file: &OwnedFd, length: u64) -> io::Result<Became> {
    Ok(if emptied(call, file, length)? { Became::Cold(call) } else { Became::Stayed(call) })
}
