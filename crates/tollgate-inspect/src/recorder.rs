//! A record of every file, link and directory that was read, and of each call's answer. Captures are made from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{collections::BTreeMap, io};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::redaction::redacted;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Manner {
    Read,
    List,
    Link,
    Look,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Value(Value),
    Errno(i32),
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub bytes: Option<Vec<u8>>,
    pub link: Option<String>,
    pub names: Option<Vec<String>>,
    pub there: bool,
    pub errors: BTreeMap<Manner, i32>,
}

impl Seen {
    /// Stores what a capture contains of a file. If a file is read several times, the longest version counts.
    pub fn keep_bytes(&mut self, path: &str, bytes: &[u8]) {
        let bytes = redacted(path, bytes);
        if self.bytes.as_ref().is_none_or(|known| known.len() < bytes.len()) {
            self.bytes = Some(bytes);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub seen: BTreeMap<String, Seen>,
    pub calls: BTreeMap<String, Outcome>,
}

/// Records reads; its clones share one record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Recording>>);

impl Recorder {
    pub fn recording(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a read of `path` with `keep`. A path that does not exist leaves no record: it will not be in the capture either.
    pub fn noted<T>(
        &self,
        path: &str,
        manner: Manner,
        looked: &io::Result<T>,
        keep: fn(&T, &str, &mut Seen),
    ) {
        let mut recording = self.recording();
        match looked {
            Ok(found) => keep(found, path, recording.seen.entry(path.to_owned()).or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                recording.seen.entry(path.to_owned()).or_default().errors.insert(manner, errno);
            }
        }
    }

    pub fn called<T: Serialize>(&self, name: &str, outcome: &Result<T, i32>) {
        let outcome = match outcome {
            Ok(value) => serde_json::to_value(value).map_or(Outcome::Errno(libc::EIO), Outcome::Value),
            Err(errno) => Outcome::Errno(*errno),
        };
        self.recording().calls.entry(name.to_owned()).or_insert(outcome);
    }
}
