//! The figures of Machida and Shinohara, "The Implementation of user level test-and-set on PS2 Linux" (Sony Research Forum
//! 2000), that are not programs of `tst()`: its schedules (3 and 10), the kernel call (6), and Lamport's algorithm (7).

use std::sync::LazyLock;

use crate::counterexample::Counterexample;
use crate::search::Limits;
use crate::subject::{Checked, Correction, Cost, Group, Rival, Setting, Subject, Unfit, Verdict, Wish};
use crate::{mips, tso};

struct Figure {
    name: &'static str,
    about: &'static str,
    of: &'static dyn Subject,
    /// Its schedule: the instruction before which A is preempted, and what B does then.
    schedule: Option<(usize, Rival)>,
}

type Row = (&'static str, &'static str, Option<(usize, Rival)>, &'static str);

const ROWS: &[Row] = &[
    (
        "figure-3",
        "figure-2",
        Some((4, Rival::Holds)),
        "The schedule in which figure 2 lets two in: A is preempted between its load and its store.",
    ),
    (
        "figure-6",
        "system-call",
        Some((0, Rival::Absent)),
        "A lock by system call: the kernel is entered for each attempt, even if no other process wants the lock.",
    ),
    (
        "figure-7",
        "lamport-up",
        None,
        "Lamport's algorithm on one processor: loads and stores alone, with a word for each process.",
    ),
    (
        "figure-10",
        "figure-9",
        Some((6, Rival::GivesBack)),
        "The schedule in which figure 9 is preempted before its store: the store faults, and the handler starts tst again.",
    ),
];

/// Returns everything that is checked: the paper's figures in order, the other programs, mutants, Lamport's algorithm.
pub(crate) fn subjects() -> &'static [&'static dyn Subject] {
    static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
        let all = || [mips::subjects(), tso::subjects()].into_iter().flatten();
        let figure = |&(name, of, schedule, about): &Row| {
            let of = all().find(|subject| subject.name() == of)?;
            Some(Figure { name, about, of: *of, schedule })
        };
        ROWS.iter().filter_map(figure).collect()
    });
    static SUBJECTS: LazyLock<Vec<&'static dyn Subject>> = LazyLock::new(|| {
        let figures = FIGURES.iter().map(|figure| figure as &dyn Subject);
        let others = [mips::subjects(), tso::subjects()].into_iter().flatten().copied();
        let mut subjects: Vec<_> = figures.chain(others).collect();
        let number = |subject: &dyn Subject| subject.name().strip_prefix("figure-")?.parse::<u8>().ok();
        // Stable: subjects without a number keep their order, at the end.
        subjects.sort_by_key(|subject| number(*subject).unwrap_or(u8::MAX));
        subjects
    });
    &SUBJECTS
}

/// The figures that compare methods by time: 12 without a rival, 13 with producers and consumers.
pub const COMPARISONS: [&str; 2] = ["figure-12", "figure-13"];

/// Returns the compared methods by their names in the paper, each with its program.
pub fn methods() -> impl Iterator<Item = (&'static str, &'static dyn Subject)> {
    let methods =
        [("k1/magic", "figure-11"), ("di/ei", "di-ei"), ("Lamport", "figure-7"), ("system call", "figure-6")];
    let program = |name| subjects().iter().find(|subject| subject.name() == name).copied();
    methods.into_iter().filter_map(move |(method, name)| Some((method, program(name)?)))
}

impl Subject for Figure {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        self.about
    }

    fn group(&self) -> Group {
        Group::Published
    }

    fn expected(&self) -> Option<Verdict> {
        self.of.expected()
    }

    fn listing(&self) -> String {
        self.of.listing()
    }

    fn corrections(&self) -> &[Correction] {
        self.of.corrections()
    }

    fn setting(&self, wish: Wish) -> Result<Setting, Unfit> {
        self.of.setting(wish)
    }

    fn check(&self, setting: Setting, limits: Limits) -> Checked {
        Checked { name: self.name.to_owned(), ..self.of.check(setting, limits) }
    }

    fn points(&self) -> usize {
        self.of.points()
    }

    fn play(&self, point: usize, rival: Rival) -> Result<Counterexample, Unfit> {
        self.of.play(point, rival)
    }

    fn cost(&self) -> Option<Cost> {
        self.of.cost()
    }

    fn shown(&self) -> Option<(usize, Counterexample)> {
        let (point, rival) = self.schedule?;
        Some((point, self.of.play(point, rival).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Harm;

    fn shown(name: &str) -> Counterexample {
        subjects().iter().find(|subject| subject.name() == name).unwrap().shown().unwrap().1
    }

    #[test]
    fn every_figure_of_the_paper_is_a_name_in_its_order() {
        let names: Vec<&str> = subjects().iter().map(|subject| subject.name()).collect();
        let figures = (2..=11).map(|number| format!("figure-{number}")).collect::<Vec<_>>();
        assert_eq!(names[..10], figures);
        assert_eq!(names.len(), mips::subjects().len() + tso::subjects().len() + ROWS.len());
    }

    #[test]
    fn figure_3_ends_with_two_in_the_lock_and_figure_10_with_none() {
        let three = shown("figure-3");
        assert_eq!(three.harm, Some(Harm::Exclusion));
        assert!(three.so.starts_with("A loaded 0 at tst (lw v0,(a0)) before B stored 1"), "{}", three.so);
        let ten = shown("figure-10");
        assert_eq!(ten.harm, None);
        assert_eq!(
            ten.so,
            "A was preempted before tst+0x18; B took the lock and gave it back; A's store faulted, the handler \
             started tst again, and A finished."
        );
    }

    #[test]
    fn every_method_has_a_program_and_the_work_of_it() {
        let work = |(method, subject): (_, &dyn Subject)| {
            let Cost { alone, preempted } = subject.cost().unwrap();
            (
                method,
                alone.instructions,
                alone.entries,
                preempted.iter().map(|work| work.entries).sum::<usize>(),
            )
        };
        let works: Vec<_> = methods().map(work).collect();
        // Preempted at the store, k1/magic faults. The system call enters the kernel once for each of its 3 preemptions.
        assert_eq!(
            works,
            [("k1/magic", 10, 0, 1), ("di/ei", 10, 0, 0), ("Lamport", 5, 0, 0), ("system call", 3, 1, 3)]
        );
    }

    #[test]
    fn figure_6_enters_the_kernel_once_where_figure_11_does_not() {
        let six = shown("figure-6");
        assert_eq!(six.so, "Without a rival: 3 instructions, 1 kernel entry.");
        let eleven = subjects().iter().find(|subject| subject.name() == "figure-11").unwrap();
        let alone = eleven.play(0, Rival::Absent).unwrap().so;
        assert_eq!(alone, "Without a rival: 10 instructions, no kernel entry.");
    }
}
