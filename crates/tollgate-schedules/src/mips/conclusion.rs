use crate::counterexample::Step;
use crate::search::Harm;

use super::effect::{Act, Deed, value};
use super::instruction::Place;
use super::kernel::Reason;
use super::memory::{ACCESS_MAGIC, Access, Refusal, Word};
use super::program::Program;
use super::state::State;

pub(super) struct Ending<'a, const N: usize> {
    pub(super) program: &'a Program,
    pub(super) locks: u8,
    pub(super) deeds: &'a [Deed],
    pub(super) repeated: Option<&'a [Deed]>,
    pub(super) state: &'a State<N>,
}

impl<const N: usize> Ending<'_, N> {
    pub(super) fn so(&self, harm: Harm) -> String {
        match harm {
            Harm::Exclusion => self.exclusion(),
            Harm::Crash => self.crash(),
            Harm::LostLock => self.lost(),
            Harm::Stuck | Harm::Condition => self.stuck(),
        }
    }

    fn exclusion(&self) -> String {
        let shared = (0..self.state.locks.len()).find(|&word| self.state.holders(word).count() > 1);
        let word = shared.unwrap_or(0);
        let mut holders: Vec<u8> = self.state.holders(word).map(|who| who as u8).collect();
        // In the order of their stores.
        holders.sort_by_key(|&who| self.stored(who, word));
        let (Some(&first), Some(&second)) = (holders.first(), holders.get(1)) else {
            return "Two hold the lock.".to_owned();
        };
        let (one, other) = (Step::name(first), Step::name(second));
        let both = format!("{} and {} both hold {}", one.min(other), one.max(other), self.lock(word));
        match (self.loaded(second, word), self.stored(first, word), self.stored(second, word)) {
            (Some(load), Some(store), Some(too)) if load < store && store < too => format!(
                "{other} loaded 0 at {} before {one} stored 1 at {}, and then stored 1 itself at {}: {both}.",
                self.at(load),
                self.at(store),
                self.at(too),
            ),
            _ => format!("{both}."),
        }
    }

    fn crash(&self) -> String {
        let killed = self.deeds.iter().rposition(|deed| matches!(deed.act, Act::Killed(..)));
        let Some((index, Act::Killed(fault, reason))) = killed.map(|index| (index, self.deeds[index].act))
        else {
            return "A process is killed.".to_owned();
        };
        let address = value(fault.address);
        let wanted = match fault.access {
            Access::Read => format!("it reads from {address}"),
            Access::Write => format!("it stores to {address}"),
            Access::Execute => format!("it jumps to {address}"),
        };
        let but = match (fault.refusal, reason) {
            (Refusal::ExecuteOnly, _) => "in the page of tst, which can only be executed".to_owned(),
            (Refusal::Unaligned, _) => "which is not a multiple of 4".to_owned(),
            (Refusal::NoPage, Reason::NoHandler) if fault.address == ACCESS_MAGIC => {
                "and no handler starts tst again".to_owned()
            }
            (Refusal::NoPage, Reason::NoWrite) if fault.address == ACCESS_MAGIC => {
                "and the handler restarts tst only for a store".to_owned()
            }
            (Refusal::NoPage, _) => "where no memory is".to_owned(),
        };
        format!("{} is killed at {}: {wanted}, {but}.", self.name(index), self.at(index))
    }

    fn lost(&self) -> String {
        let word = self.lost_word().unwrap_or(0);
        let lost = format!("{} is taken but has no holder", self.lock(word));
        let Some(store) = self.deeds.iter().rposition(|deed| stores(deed.act, word)) else {
            return format!("{lost}.");
        };
        let name = self.name(store);
        let process = self.deeds[store].process;
        let after = || (store..self.deeds.len()).filter(|&index| self.deeds[index].process == process);
        let own = after().find(|&index| loads_one(self.deeds[index].act, word));
        let returned = after().find_map(|index| match self.deeds[index].act {
            Act::Returned(result @ 1..) => Some(value(result)),
            _ => None,
        });
        match (own, returned) {
            (Some(own), Some(result)) => format!(
                "{name} stored 1 at {} and then loaded its own 1 at {}: tst returned {result}, {lost}.",
                self.at(store),
                self.at(own),
            ),
            _ => format!("{name} stored 1 at {}: {lost}.", self.at(store)),
        }
    }

    fn stuck(&self) -> String {
        let Some(repeated) = self.repeated else {
            return "No process can take a step any more, and not all have finished.".to_owned();
        };
        let last = |wanted: Act| self.deeds.iter().rposition(|deed| deed.act == wanted);
        let again = |wanted: Act| repeated.iter().any(|deed| deed.act == wanted);
        let endless = [(Act::Resumed, "continues at the same store"), (Act::Restarted, "tst starts again")];
        for (act, what) in endless {
            if let Some(index) = last(act).filter(|_| again(act)) {
                let (name, magic, at) = (self.name(index), value(ACCESS_MAGIC), self.at(index));
                return format!("{name} stores to {magic} at {at}, and {what}, for ever.");
            }
        }
        if let Some(index) = last(Act::DisabledInterrupts) {
            let who = usize::from(self.deeds[index].process);
            if !self.state.processes[who].interrupts {
                let (name, at) = (self.name(index), self.at(index));
                return format!(
                    "{name} disabled interrupts at {at} and loops for ever: no other process runs any more."
                );
            }
        }
        self.waiting(repeated)
    }

    fn waiting(&self, repeated: &[Deed]) -> String {
        match (self.lost_word(), repeated.first()) {
            (Some(word), _) => {
                let lock = self.lock(word);
                format!("{lock} is taken but has no holder: a process that asks for it asks for ever.")
            }
            (None, Some(deed)) => format!("{} loops for ever.", Step::name(deed.process)),
            (None, None) => "From here on it loops for ever.".to_owned(),
        }
    }

    fn lost_word(&self) -> Option<usize> {
        (0..self.state.locks.len()).find(|&word| self.state.is_lost(word))
    }

    fn lock(&self, word: usize) -> String {
        if self.locks == 1 { "the lock".to_owned() } else { format!("the word {}", Word::Lock(word as u8)) }
    }

    fn stored(&self, process: u8, word: usize) -> Option<usize> {
        self.deeds.iter().rposition(|deed| deed.process == process && stores(deed.act, word))
    }

    fn loaded(&self, process: u8, word: usize) -> Option<usize> {
        let word = Word::Lock(word as u8);
        let wanted = Act::Loaded { word, value: 0 };
        self.deeds.iter().rposition(|deed| deed.process == process && deed.act == wanted)
    }

    fn name(&self, index: usize) -> char {
        Step::name(self.deeds[index].process)
    }

    fn at(&self, index: usize) -> String {
        let pc = usize::from(self.deeds[index].pc);
        format!("{} ({})", Place(pc as i64), self.program.words_at(pc))
    }
}

fn stores(act: Act, word: usize) -> bool {
    matches!(act, Act::Stored { word: Word::Lock(number), value: 1.. } if usize::from(number) == word)
}

fn loads_one(act: Act, word: usize) -> bool {
    matches!(act, Act::Loaded { word: Word::Lock(number), value: 1.. } if usize::from(number) == word)
}
