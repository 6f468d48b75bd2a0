//! Lamport's algorithm with a choice of fences.

use std::sync::LazyLock;

use super::study::Study;
use super::text::Parsed;
use crate::search::Harm;
use crate::subject::{Group, Setting, Subject, Verdict};

/// The stores that are followed by a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fences {
    /// After `b[i] = 1`.
    pub b_set: bool,
    /// After `x = i`.
    pub x: bool,
    /// After `y = i`.
    pub y: bool,
    /// After each `b[i] = 0`.
    pub b_clear: bool,
}

impl Fences {
    const NONE: Self = Self { b_set: false, x: false, y: false, b_clear: false };
    const NEEDED: Self = Self { x: true, y: true, ..Self::NONE };
}

/// Returns Lamport's algorithm with these fences, on two processors by default.
#[must_use]
pub fn with_fences(fences: Fences) -> impl Subject {
    let about = "Lamport's fast mutual exclusion on two processors with store buffers.";
    let expected = if fences.x && fences.y { Verdict::Holds } else { BROKEN };
    Source { about, fences, expected, ..LAMPORT }
        .study()
        .unwrap_or_else(|| unreachable!("a program of this file"))
}

/// Returns the text of the algorithm. Without a rival it makes seven accesses: five to lock, two to unlock.
pub(super) fn text(fences: Fences) -> String {
    let fence = |is: bool| if is { "\nmfence" } else { "" };
    let (b_set, x, y, b_clear) =
        (fence(fences.b_set), fence(fences.x), fence(fences.y), fence(fences.b_clear));
    format!(
        "lock: b[i] = 1{b_set}
         x = i{x}
         if y != 0 goto late
         y = i{y}
         if x != i goto rival
         inside: critical section
         unlock: y = 0
         b[i] = 0{b_clear}
         goto end
         late: b[i] = 0{b_clear}
         wait until y == 0
         goto lock
         rival: b[i] = 0{b_clear}
         wait until b[j] == 0 for each j
         if y == i goto inside
         wait until y == 0
         goto lock"
    )
}

struct Source {
    name: &'static str,
    about: &'static str,
    fences: Fences,
    processors: u8,
    expected: Verdict,
}

const BROKEN: Verdict = Verdict::Violated(Harm::Exclusion);

const LAMPORT: Source = Source {
    name: "lamport",
    about: "Lamport's fast mutual exclusion on two processors with store buffers, with the two fences that it needs there.",
    fences: Fences::NEEDED,
    processors: 2,
    expected: Verdict::Holds,
};

macro_rules! variants {
    ($($name:literal: $algorithm:expr; $about:literal;)*) => {
        const SOURCES: &[Source] = &[LAMPORT, $(Source { name: $name, about: $about, ..$algorithm },)*];
    };
}

variants! {
    "lamport-no-x-fence": Source { fences: Fences { x: false, ..Fences::NEEDED }, expected: BROKEN, ..LAMPORT };
        "Without the fence after x = i: y may be read before the others see x.";
    "lamport-no-y-fence": Source { fences: Fences { y: false, ..Fences::NEEDED }, expected: BROKEN, ..LAMPORT };
        "Without the fence after y = i: x may be read before the others see y.";
    "lamport-no-fence": Source { fences: Fences::NONE, expected: BROKEN, ..LAMPORT };
        "As published, for machines whose stores are visible at once.";
    "lamport-wrong-fences": Source { fences: Fences { b_set: true, b_clear: true, ..Fences::NONE }, expected: BROKEN, ..LAMPORT };
        "Two fences in the wrong places, after b[i] = 1 and b[i] = 0: their number does not matter.";
    "lamport-b-fence": Source { fences: Fences { b_clear: true, ..Fences::NEEDED }, ..LAMPORT };
        "A third fence, after b[i] = 0: it is not needed.";
    "lamport-up": Source { fences: Fences::NONE, processors: 1, ..LAMPORT };
        "Without fences on one processor: a process sees its own stores, and a switch drains them.";
}

/// Returns Lamport's algorithm with the fences that it needs, with others, and on one processor.
#[must_use]
pub fn subjects() -> &'static [&'static dyn Subject] {
    static STUDIES: LazyLock<Vec<Study>> =
        LazyLock::new(|| SOURCES.iter().filter_map(Source::study).collect());
    static SUBJECTS: LazyLock<Vec<&'static dyn Subject>> =
        LazyLock::new(|| STUDIES.iter().map(|study| study as &dyn Subject).collect());
    &SUBJECTS
}

impl Source {
    /// Parses the algorithm. A test checks that none of these is wrong.
    fn study(&self) -> Option<Study> {
        let parsed = Parsed::of(&text(self.fences)).ok()?;
        Some(Study {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            group: Group::Lamport,
            expected: Some(self.expected),
            program: parsed.program,
            registers: parsed.registers,
            symbols: parsed.symbols,
            initial: parsed.initial,
            setting: Setting::new(2, 2, self.processors),
            corrections: vec![],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::{Move, Tso};
    use super::super::state::State;
    use super::*;
    use crate::search::{End, Limits, Machine, search};
    use crate::subject::{Rival, Wish};

    fn all_fences() -> impl Iterator<Item = Fences> {
        let bit = |n: u8, at: u8| n >> at & 1 == 1;
        (0..16).map(move |n| Fences { b_set: bit(n, 0), x: bit(n, 1), y: bit(n, 2), b_clear: bit(n, 3) })
    }

    fn harms(fences: Fences, setting: Setting) -> Vec<Harm> {
        let study = Source { fences, ..LAMPORT }.study().unwrap();
        let programs = [study.program.clone()];
        let found = search(&study.machine(&programs, setting), Limits::default());
        assert_eq!(found.end, End::Complete);
        found.harms.into_iter().map(|(harm, _)| harm).collect()
    }

    #[test]
    fn every_program_is_one() {
        assert_eq!(subjects().len(), SOURCES.len());
        for fences in all_fences() {
            let expected = 17 + [fences.b_set, fences.x, fences.y].iter().filter(|is| **is).count();
            let expected = expected + if fences.b_clear { 3 } else { 0 };
            assert_eq!(with_fences(fences).listing().lines().count(), expected);
        }
    }

    #[test]
    fn every_subject_is_what_it_is_said_to_be() {
        for subject in subjects() {
            let setting = subject.setting(Wish::default()).unwrap();
            let checked = subject.check(setting, Limits::default());
            assert_eq!(Some(checked.verdict), subject.expected(), "{}", subject.name());
            assert!(checked.complete && checked.setting == setting && checked.name == subject.name());
            // If exclusion is violated, no process is stuck.
            assert_eq!(checked.counterexamples.len(), usize::from(checked.verdict != Verdict::Holds));
        }
    }

    #[test]
    fn two_fences_are_needed_and_enough_across_processors() {
        let setting = Setting::new(2, 2, 2);
        for fences in all_fences() {
            let broken = if fences.x && fences.y { vec![] } else { vec![Harm::Exclusion] };
            assert_eq!(harms(fences, setting), broken, "{fences:?}");
        }
    }

    #[test]
    fn no_fence_is_needed_on_one_processor() {
        for processes in [2, 3] {
            let setting = Setting::new(processes, 1, 1);
            for fences in all_fences() {
                assert_eq!(harms(fences, setting), [], "{fences:?} {processes}");
            }
        }
    }

    #[test]
    fn three_processes_need_no_more_fences_than_two() {
        for processors in [2, 3] {
            let setting = Setting::new(3, 1, processors);
            assert_eq!(harms(Fences::NEEDED, setting), [], "{processors}");
            assert_eq!(harms(Fences { x: false, ..Fences::NEEDED }, setting), [Harm::Exclusion]);
            assert_eq!(harms(Fences { y: false, ..Fences::NEEDED }, setting), [Harm::Exclusion]);
        }
    }

    /// The machine, with a store buffer longer than `longest` as the harm.
    struct Queues<'a> {
        machine: Tso<'a>,
        longest: u32,
    }

    impl Machine for Queues<'_> {
        type State = State;
        type Move = Move;

        fn start(&self) -> State {
            self.machine.start()
        }

        fn moves(&self, state: &State, each: impl FnMut(Move, State)) {
            self.machine.moves(state, each);
        }

        fn harm(&self, state: &State) -> Option<Harm> {
            state.buffers.iter().any(|buffer| buffer.len() > self.longest).then_some(Harm::Crash)
        }

        fn finished(&self, state: &State) -> bool {
            self.machine.finished(state)
        }
    }

    #[test]
    fn five_slots_are_all_that_the_fenced_algorithm_uses() {
        let study = LAMPORT.study().unwrap();
        let programs = [study.program.clone()];
        for (processes, rounds, processors) in [(2, 4, 2), (2, 2, 1), (3, 1, 3), (3, 1, 2)] {
            let machine = study.machine(&programs, Setting::new(processes, rounds, processors));
            let is_met = |longest| !search(&Queues { machine, longest }, Limits::default()).harms.is_empty();
            assert!(!is_met(5), "{processes} processes");
            assert!(rounds == 1 || is_met(4), "{processes} processes");
        }
    }

    #[test]
    fn a_setting_that_the_machine_has_not_is_refused() {
        let subject = subjects()[0];
        let wish = |processes, processors| Wish { processes, processors, ..Wish::default() };
        let refused = subject.setting(wish(Some(5), None)).unwrap_err().to_string();
        assert_eq!(refused, "lamport runs with 1 to 4 processes, not with 5");
        assert!(subject.setting(wish(None, Some(0))).is_err());
        assert_eq!(subject.setting(wish(Some(4), Some(3))).unwrap().processors, 3);
        // A setting made without checks is brought within the machine's limits.
        let checked = subject.check(Setting::new(2, 0, 0), Limits::default());
        assert_eq!(checked.setting, Setting::new(2, 1, 1));
        assert!(
            subject
                .play(0, Rival::GivesBack)
                .unwrap_err()
                .to_string()
                .starts_with("lamport has no single process")
        );
    }

    #[test]
    fn more_processes_than_states_are_not_decided() {
        let setting = Setting::new(4, 4, 4);
        let checked = subjects()[0].check(setting, Limits { states: 10_000, ..Limits::default() });
        assert_eq!(checked.verdict, Verdict::NotDecided(crate::subject::Want::States));
        assert!(!checked.never(Harm::Exclusion));
    }
}
