use super::command::{Command, failed, first_line, left, removed};
use super::fixture::{Program, Tree};
use super::source::PROGRAM;
use super::work::{Work, Workload};
use super::{COMMAND, cases};
use crate::prelude::*;

pub(super) static WORKLOAD: Workload = Workload {
    benchmark: Benchmark {
        name: "workloads/build",
        operation: "One build of a source tree by make and cc, with one job or one job per processor.",
        avoid: "Run a job for each processor, and cache compiled objects.",
        source: "make(1)",
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
        timed: |_| Timed::Whole("make -j"),
        cases: |_| cases(&[params(&[("jobs", 1.into())]), params(&[("jobs", "all".into())])]),
        ..COMMAND
    },
    ready,
};

const MAKE: Program = Program { name: "make", package: "GNU make", debian: "make" };
const CC: Program = Program { name: "cc", package: "GCC or Clang as cc", debian: "gcc" };

struct Build {
    jobs: u64,
}

fn ready(fixture: &mut Tree, case: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    fixture.needs(&MAKE, context)?;
    fixture.needs(&CC, context)?;
    let jobs = match case.get("jobs") {
        Some(ParamValue::Number(_)) => number(case, "jobs"),
        _ => fixture.processors as u64,
    };
    Ok(Box::new(Build { jobs }))
}

impl Work for Build {
    fn reset(&self, fixture: &Tree, _: &mut RunContext) -> Step<()> {
        removed("unlinkat(2)", std::fs::remove_dir_all(fixture.tree().join("build")))
    }

    fn command(&self, fixture: &Tree) -> Command {
        Command::new(&fixture.tree(), ["make".to_owned(), "-s".to_owned(), format!("-j{}", self.jobs)])
    }

    fn check(&self, fixture: &Tree, context: &mut RunContext) -> Step<String> {
        let outcome = self.run_program(fixture, context);
        // Other workloads also use the tree.
        self.reset(fixture, context)?;
        outcome
    }
}

impl Build {
    fn run_program(&self, fixture: &Tree, context: &mut RunContext) -> Step<String> {
        let printed = fixture.path_of("printed");
        let program = fixture.tree().join(PROGRAM);
        let run = Command { output: Some(printed.clone()), ..Command::new(&fixture.tree(), [&program]) };
        let who = self.command(fixture).line();
        let expected = format!("{:08x}", fixture.truth.printed);
        let found = match fixture.home.run(&run, context) {
            Ok(()) => first_line(&printed),
            Err(Stop::Case(Refusal::Skip(_) | Refusal::Fail(_))) => {
                return failed(format!(
                    "{who} exited with status 0, but the built program {PROGRAM} does not run"
                ));
            }
            Err(stop) => return Err(stop),
        };
        let printed = if found.is_empty() { "nothing" } else { found.as_str() };
        let wrong = format!("the built program printed {printed} instead of {expected}");
        let check = format!("the built program printed {expected}, as expected");
        left(&who, found == expected, check, &wrong)
    }
}
