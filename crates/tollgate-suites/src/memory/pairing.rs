//! Which two processors a case is about.

use tollgate_model::ParamValue;

use tollgate_engine::{Refusal, cpu};

use super::topology::{Pair, Relation, usual_pairs};

/// The words for the relations that exist here; where there is one processor alone, that nobody knows any.
pub(super) fn words() -> Vec<ParamValue> {
    let words: Vec<ParamValue> = usual_pairs().iter().map(|pair| pair.relation.word().into()).collect();
    if words.is_empty() { vec![Relation::Unknown.word().into()] } else { words }
}

/// The usual pair with this relation, the bench's own processor first where it is one of them.
///
/// # Errors
/// [`Refusal::Skip`] where there is none.
pub(super) fn related(word: &str) -> Result<Pair, Refusal> {
    let pairs = usual_pairs();
    if pairs.is_empty() {
        return Err(alone());
    }
    let pair = pairs.into_iter().find(|pair| pair.relation.word() == word);
    let none = || Refusal::Skip(format!("no two of the processors allowed here have the relation {word}"));
    pair.map(Pair::starting_at_home).ok_or_else(none)
}

/// The pair that is closest without being one core.
///
/// # Errors
/// [`Refusal::Skip`] where there is one processor alone.
pub(super) fn two_cores() -> Result<Pair, Refusal> {
    let pairs = usual_pairs();
    let cores = pairs.iter().find(|pair| pair.relation != Relation::Siblings);
    cores.or(pairs.first()).copied().map(Pair::starting_at_home).ok_or_else(alone)
}

/// Why nothing is to be had between two.
pub(super) fn alone() -> Refusal {
    Refusal::Skip("it takes two processors, and this process may use one only".to_owned())
}

impl Pair {
    /// With the processor that this thread is on first, where it is one of them.
    fn starting_at_home(self) -> Self {
        if is_home(self.to) { Self { from: self.to, to: self.from, ..self } } else { self }
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        format!("processors {} and {}, {}", self.from, self.to, self.relation.in_words())
    }
}

/// Whether it is the only processor that this thread may run on.
pub(super) fn is_home(processor: usize) -> bool {
    cpu::allowed() == [processor]
}
