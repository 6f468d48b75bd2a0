//! What the host tells the guest: a command, and how much of it.

use super::experiments::Experiment;

/// The command for the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Command {
    /// The experiments that were chosen, with records.
    #[default]
    Experiments,
    /// Print its tables and MSRs as text, and nothing else.
    Dump,
    /// Run the programs of an archive in ring 3: [`with_programs`](super::Image::with_programs).
    System,
    /// The experiments, on a machine that firmware has set up before: no interrupt of the local APIC is delivered.
    AfterFirmware,
}

/// Experiments, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chosen(u128);

impl Chosen {
    /// Those that can be measured: all but the wrong set-ups.
    pub const MEASURED: Self = Self(u64::MAX as u128);

    /// Adds an experiment. Numbers from 80h on do not exist.
    pub fn insert(&mut self, number: u8) {
        self.0 |= 1_u128.checked_shl(number.into()).unwrap_or(0);
    }

    /// Whether this one is among them.
    pub fn contains(self, number: u8) -> bool {
        self.0.checked_shr(number.into()).is_some_and(|rest| rest & 1 == 1)
    }
}

impl<'a> FromIterator<&'a Experiment> for Chosen {
    fn from_iter<I: IntoIterator<Item = &'a Experiment>>(experiments: I) -> Self {
        let mut chosen = Self::default();
        experiments.into_iter().for_each(|experiment| chosen.insert(experiment.number));
        chosen
    }
}

/// The parameters that the host writes into the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// n: the iterations of a loop, clamped to 1 and [`Parameters::MOST`].
    pub operations: u32,
    /// Rounds of each experiment, of two batches each. The same limits.
    pub rounds: u32,
    /// The command.
    pub command: Command,
    /// Which experiments. Wrong set-ups are attempted once, whatever the numbers above.
    pub chosen: Chosen,
}

impl Parameters {
    /// The most operations and the most rounds: enough for any clock, and no endless loop.
    pub const MOST: u32 = 1 << 24;

    /// As the guest reads them, at `tollgate_guest_parameters`.
    pub(super) fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&self.operations.clamp(1, Self::MOST).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.rounds.clamp(1, Self::MOST).to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.command as u32).to_le_bytes());
        bytes[16..].copy_from_slice(&self.chosen.0.to_le_bytes());
        bytes
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self { operations: 1000, rounds: 1, command: Command::Experiments, chosen: Chosen::MEASURED }
    }
}
