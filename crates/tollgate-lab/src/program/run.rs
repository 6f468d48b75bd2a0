use std::time::Duration;

use tollgate_x86::Vendor;

use super::{Archive, ArchiveError, Program, Ran, TEST_AND_SET, Timer};
use crate::engines::{Chosen, EngineChoice, choose, machine};
use crate::guest::{BASE, Image, Parameters};
use crate::{LabError, Machine};

/// Options of a run of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The timer that switches between threads of control.
    pub timer: Timer,
    /// Whether the kernel guards the test-and-set of its page. Programs then use R15 for nothing else.
    pub test_and_set: bool,
    /// The processor's vendor, if the engine can choose; `None` for the engine's default.
    pub vendor: Option<Vendor>,
    /// The limit of wall-clock time.
    pub patience: Duration,
    /// The limit of instructions, for an engine that can stop there: the interpreter.
    pub instructions: u64,
}

impl Default for Options {
    /// Ten seconds, and more instructions than an engine executes in them.
    fn default() -> Self {
        Self {
            timer: Timer::Usual,
            test_and_set: false,
            vendor: None,
            patience: Duration::from_secs(10),
            instructions: u64::MAX,
        }
    }
}

impl Options {
    pub(super) fn archive(self, programs: &[Program]) -> Result<Archive, ArchiveError> {
        let archive = Archive::new(programs, self.timer)?;
        let bits = if self.test_and_set { TEST_AND_SET.iter().fold(0, |all, bit| all | bit) } else { 0 };
        Ok(archive.with_options(bits))
    }
}

/// Runs programs on one machine, all at the same time. A fault of one, or a limit that stops all, is part of the result.
///
/// # Errors
/// [`LabError`] if the programs do not fit into one machine, or the engine cannot be used.
pub fn run(programs: &[Program], choice: EngineChoice, options: Options) -> Result<Ran, LabError> {
    let archive = options.archive(programs)?;
    let image = Image::with_programs(&Parameters::default(), archive.bytes());
    let Options { vendor, patience, instructions, .. } = options;
    let takes_turns = programs.len() > 1 && options.timer != Timer::Off;
    let Chosen { engine, notes, emulated, .. } = choose(with_timer(choice, takes_turns)?)?;
    let machine = Machine { patience, instructions, ..machine(vendor) };
    if let Some(why) = emulated {
        return Err(refused(&why));
    }
    let output = engine.run(image.bytes(), BASE, image.entry(), machine)?;
    Ok(Ran::new(programs, &output, notes))
}

/// Says why programs are not run on a KVM that emulates ring 0: it gives them faults that no processor has.
fn refused(why: &str) -> LabError {
    let why = format!("it emulates ring 0 here, which breaks programs ({why}); choose another engine");
    LabError::Unavailable { engine: "KVM", why }
}

/// Chooses the engine. Programs that take turns need a timer, which the lab's KVM machine does not have.
fn with_timer(choice: EngineChoice, takes_turns: bool) -> Result<EngineChoice, LabError> {
    match choice {
        EngineChoice::Auto if takes_turns => Ok(EngineChoice::Interpreter),
        EngineChoice::Kvm if takes_turns => {
            let why =
                "its machine has no timer to switch programs by: add --timer off, or choose another engine";
            Err(LabError::Unavailable { engine: "KVM", why: why.to_owned() })
        }
        choice => Ok(choice),
    }
}
