//! Finds iterations of a timed loop in the executed addresses, and the functions of their instructions.

use std::collections::HashMap;
use std::ops::Range;

use super::{INTERRUPTS, OTHER_THREADS};

/// The loop's head has this alignment (`timed_loop!`), and lies this close after its first instruction.
const ALIGNMENT: u64 = 64;
const NEAR: u64 = 4096;
/// `dec`, `jnz`: the end of an iteration, which the empty loop has as well.
pub const OVERHEAD: usize = 2;

/// Returns the `number` iterations of the last call of a loop that begins at `entry`, as ranges of the addresses without the
/// loop's own instructions. A loop that `is_called` also has a call and a return around its body. Fails if there are fewer.
pub fn iterations(
    addresses: &[u64],
    entry: u64,
    number: usize,
    is_called: bool,
) -> Result<Vec<Range<usize>>, String> {
    let call = addresses.iter().rposition(|&address| address == entry);
    let call = call.ok_or("the instructions do not hold the loop")?;
    let heads = heads(addresses, call, entry, number);
    let heads =
        heads.ok_or_else(|| format!("the instructions do not hold {number} iterations of the loop"))?;
    // The branch back is the program's last instruction before the next iteration, if nothing comes between.
    let back = most_frequent(heads[1..].iter().map(|&head| addresses[head - 1]));
    let last = back.and_then(|back| addresses.iter().rposition(|&address| address == back));
    let end = last.filter(|&last| heads.last().is_some_and(|&head| last > head)).map(|last| last + 1);
    let ends = heads[1..].iter().copied().chain(end);
    let around = usize::from(is_called);
    let iteration = |(&head, end): (&usize, usize)| {
        let first = head + around;
        first..end.saturating_sub(OVERHEAD + around).max(first)
    };
    Ok(heads.iter().zip(ends).map(iteration).collect())
}

/// Returns the executions of the loop's head: the first aligned address after the entry that was executed once per iteration.
fn heads(addresses: &[u64], call: usize, entry: u64, number: usize) -> Option<Vec<usize>> {
    let is_candidate =
        |address: u64| address > entry && address - entry < NEAR && address.is_multiple_of(ALIGNMENT);
    let mut order: Vec<u64> = Vec::new();
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, &address) in addresses.iter().enumerate().skip(call) {
        if is_candidate(address) {
            let places = places.entry(address).or_default();
            if places.is_empty() {
                order.push(address);
            }
            places.push(at);
        }
    }
    let head = order.into_iter().find(|address| places[address].len() == number)?;
    places.remove(&head).filter(|_| number > 1)
}

fn most_frequent(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut times: HashMap<u64, usize> = HashMap::new();
    values.for_each(|value| *times.entry(value).or_default() += 1);
    times.into_iter().max_by_key(|&(value, times)| (times, value)).map(|(value, _)| value)
}

/// Lengths of iterations, in instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lengths {
    /// The number of iterations.
    pub iterations: u64,
    /// The most frequent length.
    pub usual: u64,
    /// How many have it.
    pub agree: u64,
    /// The greatest length.
    pub most: u64,
}

/// The iterations that stand for the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub iterations: Vec<Range<usize>>,
    /// The lengths of all iterations.
    pub lengths: Lengths,
}

/// Chooses the first iteration of the most frequent length, if that is the operation's count; otherwise all, to show the mean.
pub fn choose(iterations: &[Range<usize>], counted: f64) -> Chosen {
    /// Counts have three decimals.
    const EQUAL: f64 = 0.01;
    let usual = most_frequent(iterations.iter().map(|range| range.len() as u64)).unwrap_or_default();
    let is_usual = |range: &&Range<usize>| range.len() as u64 == usual;
    let lengths = Lengths {
        iterations: iterations.len() as u64,
        usual,
        agree: iterations.iter().filter(is_usual).count() as u64,
        most: iterations.iter().map(|range| range.len() as u64).max().unwrap_or_default(),
    };
    let iterations = if (usual as f64 - counted).abs() < EQUAL {
        iterations.iter().find(is_usual).into_iter().cloned().collect()
    } else {
        iterations.to_vec()
    };
    Chosen { iterations, lengths }
}

/// Instructions in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCount {
    /// Its name; `None` for undivided instructions of programs, or those of a file without symbols.
    pub name: Option<String>,
    /// The file of a program's function, such as `libc.so.6`, or a group of the kernel's; `None` for the kernel's functions that the
    /// command uses, and for all programs as one.
    pub file: Option<String>,
    /// In all chosen iterations.
    pub instructions: u64,
    /// Further iterations of repeated instructions (`rep`), if known separately; they are not included above.
    pub repeated: u64,
}

impl FunctionCount {
    /// Groups of the kernel's functions apart from the command's, and how they are called.
    pub const GROUPS: [(u64, &str); 2] = [(INTERRUPTS, "[interrupts]"), (OTHER_THREADS, "[other threads]")];

    /// Whether it is a program's.
    pub fn is_of_program(&self) -> bool {
        self.file.as_ref().is_some_and(|file| Self::GROUPS.iter().all(|(_, name)| name != file))
    }
}

/// Whether an address is the kernel's: the upper half (Documentation/arch/x86/x86_64/mm.rst).
pub fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// The functions in the order of their first execution. `name` is that of a kernel's address.
pub fn functions<'n>(
    addresses: impl Iterator<Item = u64>,
    name: impl Fn(u64) -> &'n str,
) -> Vec<FunctionCount> {
    let mut places: HashMap<Option<&str>, usize> = HashMap::new();
    let mut counts: Vec<FunctionCount> = Vec::new();
    for address in addresses {
        let name = is_kernel(address).then(|| name(address));
        let place = *places.entry(name).or_insert_with(|| {
            counts.push(FunctionCount {
                name: name.map(str::to_owned),
                file: None,
                instructions: 0,
                repeated: 0,
            });
            counts.len() - 1
        });
        counts[place].instructions += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENTRY: u64 = 0x40_1010;
    const HEAD: u64 = 0x40_1040;
    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    /// A call of a loop whose iterations have these numbers of kernel instructions.
    fn call(kernel: &[u64]) -> Vec<u64> {
        let mut addresses = vec![0x40_0000, ENTRY, ENTRY + 2];
        for &number in kernel {
            addresses.extend([HEAD, HEAD + 5]);
            addresses.extend((0..number).map(|at| KERNEL + at));
            addresses.extend([HEAD + 7, HEAD + 10]);
        }
        addresses.extend([HEAD + 12, 0x40_0005]);
        addresses
    }

    fn lengths(addresses: &[u64], number: usize) -> Result<Vec<usize>, String> {
        Ok(iterations(addresses, ENTRY, number, false)?.iter().map(Range::len).collect())
    }

    #[test]
    fn each_iteration_is_found_without_the_loops_own_instructions() {
        // The warm-up comes first.
        let addresses = [call(&[9]), call(&[3, 3, 40, 3])].concat();
        assert_eq!(lengths(&addresses, 4), Ok(vec![5, 5, 42, 5]));
        assert!(lengths(&addresses, 5).is_err() && lengths(&[], 2).is_err());
        assert!(lengths(&call(&[3]), 1).is_err(), "one iteration has no next one");
        let called: Vec<usize> =
            iterations(&addresses, ENTRY, 4, true).expect("four").iter().map(Range::len).collect();
        assert_eq!(called, [3, 3, 40, 3], "less a call and a return");
    }

    #[test]
    fn an_interrupt_before_the_next_iteration_does_not_move_the_end_of_the_others() {
        let mut addresses = call(&[3, 3, 3, 3]);
        let second =
            addresses.iter().enumerate().filter(|(_, address)| **address == HEAD).nth(1).expect("one").0;
        addresses.splice(second..second, (0..10).map(|at| KERNEL + 0x1000 + at));
        assert_eq!(lengths(&addresses, 4), Ok(vec![15, 5, 5, 5]));
    }

    #[test]
    fn one_iteration_stands_for_equal_ones_and_the_mean_for_others() {
        let ranges = |lengths: &[usize]| -> Vec<Range<usize>> {
            lengths.iter().map(|&length| 10..10 + length).collect()
        };
        let chosen = choose(&ranges(&[7, 5, 5, 9]), 5.0);
        assert_eq!(chosen.iterations.as_slice(), std::slice::from_ref(&(10..15)));
        assert_eq!(chosen.lengths, Lengths { iterations: 4, usual: 5, agree: 2, most: 9 });
        assert_eq!(choose(&ranges(&[5, 5, 5, 9]), 6.0).iterations.len(), 4, "the count is the mean");
        assert_eq!(choose(&[], 5.0).iterations.len(), 0);
    }

    #[test]
    fn functions_stand_in_the_order_of_their_first_execution() {
        let name = |address: u64| if address < KERNEL + 0x100 { "entry" } else { "work" };
        let addresses = [HEAD, KERNEL, KERNEL + 4, KERNEL + 0x100, KERNEL + 8, HEAD + 2];
        let counts = functions(addresses.into_iter(), name);
        let counts: Vec<_> = counts.iter().map(|count| (count.name.as_deref(), count.instructions)).collect();
        assert_eq!(counts, [(None, 2), (Some("entry"), 3), (Some("work"), 1)]);
    }

    proptest! {
        #[test]
        fn no_log_panics(addresses in prop::collection::vec(0x40_1000_u64..0x40_1100, 0..200), number in 0_usize..10) {
            if let Ok(found) = iterations(&addresses, ENTRY, number, number % 2 == 1) {
                prop_assert!(found.iter().all(|range| range.end <= addresses.len()));
                choose(&found, 1.0);
            }
        }
    }
}
