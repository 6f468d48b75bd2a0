use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::{io, path::Path};

use tollgate_engine::versus::{Cooled, Halt};
use tollgate_engine::{BenchError, interrupt};

use crate::files::data_dir::FileSystemKind;
use crate::files::residency::{ResidencyCall, Trial, emptied, write_pages};

#[derive(Debug, Default)]
pub(super) struct Cooling {
    /// The call that reports residency correctly on each file system, by device number.
    calls: BTreeMap<u64, ResidencyCall>,
}

enum Became {
    Skipped,
    /// All its pages are gone, according to this call.
    Cold(ResidencyCall),
    /// Some pages stayed, according to this call.
    Stayed(ResidencyCall),
    Unknown,
}

impl Cooling {
    /// Drops the pages of these files.
    ///
    /// # Errors
    /// Fails if the user interrupts it by a signal.
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
            // Nothing certifies that these are cold, so they count as cached.
            cooled.stayed.append(&mut unknown);
        }
        Ok(cooled)
    }

    fn cool_one(&mut self, path: &Path) -> io::Result<Became> {
        // Do not block on a FIFO.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.len() == 0 {
            return Ok(Became::Skipped);
        }
        let (length, device) = (about.len(), about.dev());
        let file: OwnedFd = file.into();
        if let Some(&call) = self.calls.get(&device) {
            // Linux reports residency only to the file's owner or to those who may write it.
            return Ok(became(call, &file, length).unwrap_or(Became::Unknown));
        }
        let kind = FileSystemKind::of_file(&file);
        let first = Trial::make(&file, kind);
        let trial = match first {
            Ok(Trial { drops: true, .. }) => first,
            _ => {
                // Dirty pages stay in the page cache until writeback.
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
