//! A guest's devices in addition to its machine: a disk, and the host's programs.

use tollgate_model::Fact;

use super::disk::{self, Disk};
use super::kernel::Kernel;
use super::modules::Modules;
use super::settings::{Accel, Vm, Vmm};
use super::share::Share;
use crate::container::Paths;
use crate::error::EnvironmentError;

pub(super) struct Devices {
    pub disk: Option<Disk>,
    /// The host's programs, or why the guest does not have them.
    pub share: Result<Share, String>,
}

impl Devices {
    /// The devices of a guest of this name; chooses their modules. Fails if `cache=` needs something that is missing.
    pub fn prepare(
        spec: &Vm,
        accel: Accel,
        kernel: &Kernel,
        modules: &mut Modules,
        paths: Paths<'_>,
    ) -> Result<Self, EnvironmentError> {
        if !disk::is_wanted(spec, accel) {
            let why = "it needs a guest with a disk: under KVM, or with cache=".to_owned();
            return Ok(Self { disk: None, share: Err(why) });
        }
        let disk = Disk::prepare(spec, kernel, modules, paths.work())?;
        let share = match spec.arch.is_here() {
            true => Share::prepare(modules),
            false => Err(format!("the host's programs are not for {}", spec.arch)),
        };
        Ok(Self { disk, share })
    }

    /// Makes what each start needs anew.
    pub fn renew(&self, stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.renew(stop))
    }

    pub fn arguments(&self, vmm: Vmm) -> Vec<String> {
        let disk = self.disk.iter().flat_map(|disk| disk.arguments(vmm));
        disk.chain(self.share.iter().flat_map(|share| share.arguments(vmm))).collect()
    }

    pub fn facts(&self) -> [(String, Fact); 2] {
        let disk = self.disk.as_ref().map(Disk::fact);
        let disk = disk.map_or_else(
            || Fact::absent("files are in the guest's memory"),
            |disk| Fact::known(disk, "QEMU's arguments"),
        );
        let share = match &self.share {
            Ok(share) => Fact::known(share.fact(), "QEMU's arguments"),
            Err(why) => Fact::absent(why.as_str()),
        };
        [("run.vm.disk".to_owned(), disk), ("run.vm.programs".to_owned(), share)]
    }
}
