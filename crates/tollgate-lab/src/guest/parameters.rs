use super::experiments::Experiment;

/// A command for the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Command {
    /// Run the chosen experiments, and write records.
    #[default]
    Experiments,
    /// Print tables and MSRs as text, and nothing else.
    Dump,
    /// Run the programs of an archive in ring 3: [`with_programs`](super::Image::with_programs).
    System,
    /// Run the experiments on a machine that firmware has set up: the local APIC delivers no interrupt.
    AfterFirmware,
}

/// A set of experiments, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chosen(u128);

impl Chosen {
    /// All experiments that can be measured: all but the wrong setups.
    pub const MEASURED: Self = Self(u64::MAX as u128);

    /// Adds an experiment. Numbers from 80h on do not exist.
    pub fn insert(&mut self, number: u8) {
        self.0 |= 1_u128.checked_shl(number.into()).unwrap_or(0);
    }

    /// Returns whether the experiment is in the set.
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
    /// Iterations of a loop (n), clamped to 1 and [`Parameters::MOST`].
    pub operations: u32,
    /// Rounds of each experiment, of two batches each; clamped in the same way.
    pub rounds: u32,
    /// Command for the guest.
    pub command: Command,
    /// The experiments to run. Wrong setups are attempted once, regardless of `operations` and `rounds`.
    pub chosen: Chosen,
}

impl Parameters {
    /// The limit of operations and of rounds: enough for any clock, and finite.
    pub const MOST: u32 = 1 << 24;

    /// Encodes the parameters as the guest reads them, at `tollgate_guest_parameters`.
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
