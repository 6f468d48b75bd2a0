//! From sources to a program.

use std::path::PathBuf;

use tollgate_model::Boundary::{
    AddressSpaceCopy, BlockRead, ContextSwitch, Exec, FileSystem, IdleExit, KernelAllocation, KernelCode,
    KernelEntry, MemoryAccess, PageCache, PageFault, PathLookup, ProcessCreation, ProcessExit, ReadAhead,
    SystemCall, UserCopy, WakeUp,
};
use tollgate_model::{ParamValue, Params};

use tollgate_engine::benchmark::{Benchmark, PLAIN, number, params};
use tollgate_engine::{Refusal, RunContext, Timed};

use super::command::{Command, Step, Stop, failed, first_line, on_files};
use super::fixture::Tree;
use super::source::PROGRAM;
use super::work::{Program, Work};
use super::{cases, crossed_in};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "workloads/build",
    operation: "One build of a source tree by make and cc, a compiler at a time or one for each processor.",
    crosses: &[
        KernelEntry,
        SystemCall,
        KernelCode,
        UserCopy,
        ProcessCreation,
        AddressSpaceCopy,
        Exec,
        ProcessExit,
        KernelAllocation,
        ContextSwitch,
        WakeUp,
        PageFault,
        PathLookup,
        PageCache,
        FileSystem,
        MemoryAccess,
        BlockRead,
        ReadAhead,
        IdleExit,
    ],
    crossed_in,
    timed: |_| Timed::Whole("make -j"),
    cases: || cases(&[params(&[("jobs", 1.into())]), params(&[("jobs", "all".into())])]),
    ..PLAIN
};

const MAKE: Program = Program { name: "make", package: "GNU make", debian: "make" };
const CC: Program = Program { name: "cc", package: "GCC or Clang as cc", debian: "gcc" };

struct Build {
    jobs: u64,
}

pub(super) fn ready(ground: &mut Tree, case: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    ground.needs(&MAKE, context)?;
    ground.needs(&CC, context)?;
    let jobs = match case.get("jobs") {
        Some(ParamValue::Number(_)) => number(case, "jobs"),
        _ => ground.processors as u64,
    };
    Ok(Box::new(Build { jobs }))
}

impl Work for Build {
    fn reset(&self, ground: &Tree, _: &mut RunContext) -> Step<()> {
        match std::fs::remove_dir_all(ground.tree().join("build")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => on_files("unlinkat(2)", Err(error)),
            _ => Ok(()),
        }
    }

    fn reads(&self, ground: &Tree) -> Vec<PathBuf> {
        vec![ground.tree()]
    }

    fn command(&self, ground: &Tree) -> Command {
        Command::new(&ground.tree(), ["make".to_owned(), "-s".to_owned(), format!("-j{}", self.jobs)])
    }

    fn check(&self, ground: &Tree, context: &mut RunContext) -> Step<String> {
        let outcome = self.run_program(ground, context);
        // Others work on the tree as well.
        self.reset(ground, context)?;
        outcome
    }
}

impl Build {
    /// What the program prints that was built.
    fn run_program(&self, ground: &Tree, context: &mut RunContext) -> Step<String> {
        let printed = ground.contended("printed");
        let program = ground.tree().join(PROGRAM);
        let run = Command { output: Some(printed.clone()), ..Command::new(&ground.tree(), [&program]) };
        let who = self.command(ground).line();
        let expected = format!("{:08x}", ground.truth.printed);
        let found = match ground.home.run(&run, context) {
            Ok(()) => first_line(&printed),
            Err(Stop::Case(Refusal::Skip(_) | Refusal::Fail(_))) => {
                return failed(format!(
                    "{who} ended well, but {PROGRAM}, which it should have built, does not run"
                ));
            }
            Err(stop) => return Err(stop),
        };
        match found == expected {
            true => Ok(format!("the program that was built printed {expected}, as it should")),
            false if found.is_empty() => failed(format!(
                "{who} ended well, but the program that it built printed nothing, and should have printed {expected}"
            )),
            false => failed(format!(
                "{who} ended well, but the program that it built printed {found}, and should have printed {expected}"
            )),
        }
    }
}
