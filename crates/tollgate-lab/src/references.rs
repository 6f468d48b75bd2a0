use crate::guest::{BASE, Experiment, Image, Parameters};
use crate::{Counts, Engine, Interpreter, Machine};

/// Operations in the shorter run; the longer one has twice as many. The guest's records have (nearly) the same number
/// of digits in both.
const OPERATIONS: u32 = 0x100;
const BATCHES: u32 = 3;

/// Memory references of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct References {
    /// Reads of data, stacks and tables.
    pub reads: u64,
    /// Writes of data, stacks and tables.
    pub writes: u64,
    /// Walks of the page tables.
    pub page_walks: u64,
}

/// Subtracts two runs of different length: setup and reporting cancel, and the loop itself references no memory.
/// Returns `None` if the interpreter does not reach the end.
pub(crate) fn references(experiment: &'static Experiment, machine: Machine) -> Option<References> {
    let (short, long) =
        (counts(experiment, OPERATIONS, machine)?, counts(experiment, 2 * OPERATIONS, machine)?);
    let operations = u64::from(BATCHES * OPERATIONS);
    // The longer records add far less than one reference per operation: rounding removes it.
    let each = |of: fn(&Counts) -> u64| (of(&long).saturating_sub(of(&short)) + operations / 2) / operations;
    Some(References {
        reads: each(|counts| counts.reads),
        writes: each(|counts| counts.writes),
        page_walks: each(|counts| counts.page_walks),
    })
}

fn counts(experiment: &'static Experiment, operations: u32, machine: Machine) -> Option<Counts> {
    let chosen = std::iter::once(experiment).collect();
    let image = Image::new(&Parameters { operations, rounds: 1, chosen, ..Parameters::default() });
    let output = Interpreter.run(image.bytes(), BASE, image.entry(), machine).ok()?;
    output.counts.filter(|_| output.cut_short.is_none())
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests {
    use super::*;
    use crate::engines::machine;

    fn of(name: &str) -> References {
        references(Experiment::by_name(name).expect(name), machine(None)).expect("it ends")
    }

    #[test]
    fn a_crossing_refers_to_what_the_manual_says() {
        // Gate and code descriptor, two reads each of 8 bytes or one, and RSP0; IRETQ: five words and two descriptors.
        let int = of("int");
        assert_eq!(int.writes, 5, "SS, RSP, RFLAGS, CS, RIP");
        assert!(int.reads >= 4 + 7, "{int:?}");
        // Neither table nor stack.
        assert_eq!(of("syscall"), References { reads: 0, writes: 0, page_walks: 0 });
        assert_eq!(of("lfence").reads + of("lfence").writes, 0);
        assert_eq!((of("frame").reads, of("frame").writes), (15, 15));
        assert!(of("cr3").page_walks >= 1, "what was cached is lost");
    }
}
