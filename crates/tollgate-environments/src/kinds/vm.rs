//! `vm[:kernel=FILE][,append=TEXT]…`: a guest with a Linux of its own.

use std::path::{Path, PathBuf};

use tollgate_engine::Architecture;

use super::trial::{Candidate, until};
use super::{Description, EnvironmentKind, Spec, Stop};
use crate::error::{EnvironmentError, unusable};
use crate::making::Making;
use crate::pairs::pairs;
use crate::prepared::Prepared;
use crate::ram::OnRam;
use crate::ready::Ready;
use crate::vm::{self, Accel, Guest, KEYS, Kernels, Vm, Vmm};

static DESCRIPTION: Description =
    Description { has_kernel: true, is_guest: true, ..Description::new("vm", KEYS) };

impl EnvironmentKind for Vm {
    fn description() -> &'static Description {
        &DESCRIPTION
    }

    fn read(rest: Option<&str>) -> Result<Self, String> {
        let mut made = Self::default();
        for (key, value) in pairs(DESCRIPTION.name, KEYS, rest)? {
            made.set(key, value)?;
        }
        made.checked()
    }

    /// One guest for each type of machine that the architecture has; they work or fail together.
    fn candidates() -> Vec<Candidate> {
        let on = |vmm| Some(Spec::new(Self { vmm, ..Self::default() }.checked().ok()?).to_string());
        let tried = Candidate::named(DESCRIPTION.form(), |_| vm::survey(&until()));
        vec![tried.with_names(Vmm::ALL.into_iter().filter_map(on).collect())]
    }

    fn settings(&self) -> Vec<String> {
        self.pairs()
    }

    fn prepare(&self, making: &mut Making, stop: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError> {
        making.make_own_directory()?;
        // A guest with a disk has its disk image where the host measures files too.
        if vm::has_disk(self)? {
            making.make_directory_for_files();
        }
        Ok(Box::new(Guest::prepare(self, making.paths()?, stop)?))
    }

    fn shell(&self, _: Option<&str>, _: &Making) -> Result<Prepared, EnvironmentError> {
        Err(unusable!("the guest has no shell: its root file system has only this program"))
    }

    fn files(&self, _: Option<&str>) -> Vec<PathBuf> {
        vm::files(self)
    }

    fn counts(&self) -> bool {
        self.exact || self.accel == Some(Accel::Tcg)
    }

    fn architecture(&self) -> Architecture {
        self.arch
    }

    fn on_ram(&self, on: &OnRam) -> Option<Spec> {
        let mut vm = self.clone();
        vm.on.get_or_insert_with(|| on.clone());
        Some(Spec::new(vm))
    }

    fn with_kernels(&self, directory: &Path) -> Option<Result<Kernels<Spec>, String>> {
        let with = |kernel| Spec::new(Self { kernel: Some(kernel), ..self.clone() });
        self.kernel.is_none().then(|| Ok(Kernels::below(directory, self.arch)?.map(with)))
    }
}
