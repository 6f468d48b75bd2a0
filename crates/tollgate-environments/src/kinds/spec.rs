use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tollgate_engine::Architecture;

use super::{Description, EnvironmentKind};
use crate::error::EnvironmentError;
use crate::installed::Installed;
use crate::pairs::SpecError;
use crate::ram::OnRam;
use crate::vm::Kernels;

/// An environment of any kind, as a user named it. Only the kind's own file knows its details.
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

    /// Applies the settings in its name to this process, except for variables, with which it was started. `None` if the kind has
    /// no such settings.
    ///
    /// # Errors
    /// A sentence: a setting needs root, or the kernel refuses it.
    pub fn apply(&self) -> Option<Result<(), EnvironmentError>> {
        self.kind.apply()
    }

    /// Returns what was installed to make it possible, without dependencies. It takes some tens of milliseconds.
    pub fn installed(&self, runtime: Option<&str>) -> Vec<Installed> {
        self.kind.files(runtime).iter().filter_map(|file| Installed::find(file)).collect()
    }

    /// Returns this environment with this directory for files; `None` if its kind takes none or its name has one.
    ///
    /// # Errors
    /// The path cannot be part of a name.
    pub fn in_directory(&self, directory: &Path) -> Option<Result<Self, SpecError>> {
        self.kind.in_directory(directory).map(|name| name.parse())
    }

    /// Returns whether its name asks for instructions to be counted.
    pub fn counts(&self) -> bool {
        self.kind.counts()
    }

    /// Returns the architecture that its name asks for, or that of this program.
    pub fn architecture(&self) -> Architecture {
        self.kind.architecture()
    }

    /// Returns the part of its name that says what is executed, booted, connected to, opened or set: `exec:PREFIX`,
    /// `kernel=`. `None` if the name has only words and numbers, so that it is safe even if another person chose it.
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

    /// Returns this environment with files on this file system on a device in its memory, unless its name has another one.
    /// `None` if its kind has no such device.
    pub fn on_ram(&self, on: &OnRam) -> Option<Self> {
        self.kind.on_ram(on)
    }

    /// Returns this environment with each kernel in a directory, its `boot/`, or one level below; `None` if its kind has no kernel of
    /// its own, or its name has one.
    ///
    /// # Errors
    /// A sentence: the directory cannot be read.
    pub fn with_kernels(&self, directory: &Path) -> Option<Result<Kernels<Self>, String>> {
        self.kind.with_kernels(directory)
    }
}

/// Prints the name as it was given, except that the keys of a container or guest are sorted. Parsing it gives an equal name.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.kind.settings();
        f.write_str(self.description.name)?;
        if settings.is_empty() { Ok(()) } else { write!(f, ":{}", settings.join(",")) }
    }
}
