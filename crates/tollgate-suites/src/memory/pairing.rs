//! The two processors of a case.

use super::topology::{Pair, Relation, usual_pairs};
use crate::prelude::*;

/// The names of the relations that exist on a machine; "unknown" if there is only one processor.
pub(crate) fn words(machine: &Topology) -> Vec<ParamValue> {
    let words: Vec<ParamValue> =
        usual_pairs(machine).iter().map(|pair| pair.relation.word().into()).collect();
    if words.is_empty() { vec![Relation::Unknown.word().into()] } else { words }
}

/// The default pairs, for the instances of a bench process, of which many ask.
pub(super) fn shared_pairs(context: &mut Context) -> Vec<Pair> {
    context.shared("pairs", |context| usual_pairs(&context.topology()))
}

/// The default pair with this relation, this thread's processor first if it is one of them.
pub(super) fn related(word: &str, context: &mut Context) -> Result<Pair> {
    let pairs = shared_pairs(context);
    if pairs.is_empty() {
        return Err(Refusal::one_processor());
    }
    let pair = pairs.into_iter().find(|pair| pair.relation.word() == word);
    let none = || skip!("no two allowed processors have the relation {word}");
    pair.map(Pair::starting_at_home).ok_or_else(none)
}

/// The processor that has this relation to `home`, this thread's, and both in words.
pub(crate) fn related_to_home(word: &str, home: usize, context: &mut Context) -> Result<(usize, String)> {
    let pair = related(word, context)?;
    let pair = if pair.to == home { Pair { from: pair.to, to: pair.from, ..pair } } else { pair };
    if pair.from == home {
        return Ok((pair.to, pair.in_words()));
    }
    Err(skip!("no allowed processor has the relation {word} to processor {home}"))
}

/// The closest pair of different cores.
pub(super) fn two_cores(context: &mut Context) -> Result<Pair> {
    let pairs = shared_pairs(context);
    let cores = pairs.iter().find(|pair| pair.relation != Relation::Siblings);
    cores.or(pairs.first()).copied().map(Pair::starting_at_home).ok_or_else(Refusal::one_processor)
}

impl Pair {
    /// The same pair with this thread's processor first, if it is one of them.
    fn starting_at_home(self) -> Self {
        if cpu::allowed() == [self.to] { Self { from: self.to, to: self.from, ..self } } else { self }
    }

    pub(super) fn in_words(&self) -> String {
        format!("processors {} and {}, {}", self.from, self.to, self.relation.in_words())
    }
}
