//! Adds threads that already run: the part in user space.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use tollgate_model::text::plainly;

use super::kernel::{self, TaskOffsets};
use super::layout::{Mark, Plain};
use super::maps::Maps;
use super::programs::running::{Cgroup, Running as ForPrograms};
use super::programs::{self, Target};
use super::sys::{self, Map, MapKind};
use crate::request::Group;

/// The most passes over all tasks: threads that were not added yet may create others in the meantime.
const MOST_PASSES: usize = 20;

pub(super) struct Marks {
    map: Map,
    task: TaskOffsets,
    cgroup: Option<Cgroup>,
    program: Option<OwnedFd>,
    /// The program that adds up the time of existing threads, see `Totals::glance`.
    glance: Option<OwnedFd>,
}

impl Marks {
    /// Creates the map of marks, for processes by number and those that enter a control group.
    pub fn new(group: Option<Group>) -> Result<Self, String> {
        let map = Map::new(MapKind::TaskStorage, "tollgate_marks", 4, size_of::<Mark>(), 0)
            .map_err(|error| format!("the kernel refused a BPF map: {}", plainly(&error)))?;
        let (task, cgroup) = kernel::running_offsets()?;
        let cgroup = group.zip(cgroup).map(|(group, offsets)| Cgroup { group, offsets });
        Ok(Self { map, task, cgroup, program: None, glance: None })
    }

    pub fn for_programs(&self) -> ForPrograms {
        ForPrograms { marks: self.map.raw(), task: self.task, cgroup: self.cgroup }
    }

    /// Loads the programs, which refer to the maps of the others.
    pub fn with_program(self, target: &Target) -> Result<Self, String> {
        let program = programs::taking(target)
            .ok_or("this kernel cannot iterate over tasks (Linux 5.8 and later can)")?;
        let program = super::load_as(&program, sys::TRACE_ITERATOR)?;
        let glance = programs::glance(target).map(|program| super::load_as(&program, sys::TRACE_ITERATOR));
        Ok(Self { program: Some(program), glance: glance.transpose()?, ..self })
    }

    /// Adds all threads of these processes, except those that have ended or are in the tree already.
    pub fn take<'a>(
        &self,
        maps: &Maps,
        processes: impl Iterator<Item = (u32, &'a str, BorrowedFd<'a>)>,
    ) -> Result<(), String> {
        let refused = |error| format!("a process could not be attached: {}", plainly(&error));
        for (pid, name, descriptor) in processes {
            // A child of a process that was added before.
            if maps.has_taken(descriptor) {
                continue;
            }
            let serial = maps.enter(pid, name).map_err(refused)?;
            match self.mark(descriptor, serial) {
                Ok(true) => {}
                Ok(false) => maps.take_back(serial).map_err(refused)?,
                Err(error) => return Err(refused(error)),
            }
        }
        maps.taking(true);
        let taken = self.pass_until_none_is_new(maps);
        maps.taking(false);
        taken.map_err(refused)
    }

    /// Marks a process. Returns whether it exists and had no mark: a process that entered the control group has its own.
    fn mark(&self, process: BorrowedFd, serial: u32) -> std::io::Result<bool> {
        let mark = Mark { serial, known: 1 };
        match self.map.insert(&process.as_raw_fd().to_ne_bytes(), mark.bytes()) {
            Ok(()) => Ok(true),
            // bpf(2) fails with ENOENT for a pidfd whose process is gone, and with ESRCH if the process is exiting.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EEXIST | libc::ESRCH | libc::ENOENT)) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds up the time outside of calls of all existing threads.
    pub fn glance(&self, maps: &Maps) -> std::io::Result<()> {
        maps.forget_glance();
        self.glance.as_ref().map_or(Ok(()), sys::iterate)
    }

    fn pass_until_none_is_new(&self, maps: &Maps) -> std::io::Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        for _ in 0..MOST_PASSES {
            let before = maps.seen();
            sys::iterate(program)?;
            if maps.seen() == before {
                break;
            }
        }
        Ok(())
    }
}
