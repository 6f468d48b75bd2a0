//! An environment of any kind, as a user names it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Description, EnvironmentKind};
use crate::error::EnvironmentError;
use crate::installed::Installed;
use crate::pairs::SpecError;
use crate::ram::OnRam;

/// An environment, as a user names it. Its kind is known to its own file alone.
#[derive(Debug, Clone)]
pub struct Spec {
    description: &'static Description,
    kind: Arc<dyn EnvironmentKind>,
}

impl Spec {
    pub(crate) fn new<K: EnvironmentKind>(kind: K) -> Self {
        Self { description: K::description(), kind: Arc::new(kind) }
    }

    pub(crate) fn description(&self) -> &'static Description {
        self.description
    }

    pub(crate) fn kind(&self) -> &dyn EnvironmentKind {
        &*self.kind
    }

    /// Gives this process the settings of the name, but variables, which it was started with; None where the kind has no such settings.
    ///
    /// # Errors
    /// A sentence: a setting needs root, or the kernel refuses it.
    pub fn apply(&self) -> Option<Result<(), EnvironmentError>> {
        self.kind.apply()
    }

    /// What was installed to make it, without what that depends on. It takes some tens of milliseconds.
    pub fn installed(&self, runtime: Option<&str>) -> Vec<Installed> {
        self.kind.files(runtime).iter().filter_map(|file| Installed::find(file)).collect()
    }

    /// The same with this directory for files; None where its kind takes none, or its name has one.
    ///
    /// # Errors
    /// The path cannot stand in a name.
    pub fn in_directory(&self, directory: &Path) -> Option<Result<Self, SpecError>> {
        self.kind.in_directory(directory).map(|name| name.parse())
    }

    /// Whether its name says that instructions are counted there.
    pub fn counts(&self) -> bool {
        self.kind.counts()
    }

    /// The part of its name that says what is executed, booted, reached, opened or set: `exec:PREFIX`, `kernel=`. None where a name has words
    /// and numbers only, so that another person may have chosen it.
    pub fn outside(&self) -> Option<String> {
        if self.description.operand.is_some() {
            return Some(self.description.form());
        }
        self.kind.settings().into_iter().find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((&pair, ""));
            let known = self.description.keys.iter().find(|known| known.is_of(key));
            (!known.is_some_and(|known| known.is_inside(value))).then(|| format!("{key}="))
        })
    }

    /// The same with files on this file system on a device in its memory, where its name has no other; None where its kind has no such
    /// device.
    pub fn on_ram(&self, on: &OnRam) -> Option<Self> {
        self.kind.on_ram(on)
    }

    /// The same with this kernel; None where its kind has no kernel of its own, or its name has one.
    pub fn with_kernel(&self, file: &Path) -> Option<Self> {
        self.kind.with_kernel(file)
    }
}

/// As it was given, but that the keys of a container and of a guest stand in their order. It is read back as the same.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.kind.settings();
        f.write_str(self.description.name)?;
        if settings.is_empty() { Ok(()) } else { write!(f, ":{}", settings.join(",")) }
    }
}
