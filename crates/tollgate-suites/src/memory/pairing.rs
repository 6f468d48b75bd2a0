use super::topology::{Pair, Relation, usual_pairs};
use crate::prelude::*;

/// Returns the names of the relations that exist on a machine; "unknown" if there is only one processor.
pub(crate) fn words(machine: &Topology) -> Vec<ParamValue> {
    let words: Vec<ParamValue> =
        usual_pairs(machine).iter().map(|pair| pair.relation.word().into()).collect();
    if words.is_empty() { vec![Relation::Unknown.word().into()] } else { words }
}

/// Returns the default pairs. Shared, because many instances of a bench process need them.
pub(super) fn shared_pairs(context: &mut Context) -> Vec<Pair> {
    context.shared("pairs", |context| usual_pairs(&context.topology()))
}

/// Returns the default pair with this relation. This thread's processor comes first if it is one of them.
pub(super) fn related(word: &str, context: &mut Context) -> Result<Pair> {
    let pairs = shared_pairs(context);
    if pairs.is_empty() {
        return Err(Refusal::one_processor());
    }
    let pair = pairs.into_iter().find(|pair| pair.relation.word() == word);
    let none = || skip!("no two allowed processors have the relation {word}");
    pair.map(Pair::starting_at_home).ok_or_else(none)
}

/// Returns the processor with this relation to `home`, this thread's, and a note that names both.
pub(crate) fn related_to_home(word: &str, home: usize, context: &mut Context) -> Result<(usize, String)> {
    let pair = related(word, context)?;
    let pair = if pair.to == home { Pair { from: pair.to, to: pair.from, ..pair } } else { pair };
    if pair.from == home {
        return Ok((pair.to, pair.in_words()));
    }
    Err(skip!("no allowed processor has the relation {word} to processor {home}"))
}

pub(super) fn two_cores(context: &mut Context) -> Result<Pair> {
    let pairs = shared_pairs(context);
    let cores = pairs.iter().find(|pair| pair.relation != Relation::Siblings);
    cores.or(pairs.first()).copied().map(Pair::starting_at_home).ok_or_else(Refusal::one_processor)
}

impl Pair {
    /// Puts this thread's processor first, if it is one of them.
    fn starting_at_home(self) -> Self {
        if cpu::allowed() == [self.to] { Self { from: self.to, to: self.from, ..self } } else { self }
    }

    pub(super) fn in_words(&self) -> String {
        format!("processors {} and {}, {}", self.from, self.to, self.relation.in_words())
    }
}
