//! The names of calls: translates between the programs' indices and the kernel's tables.

use std::collections::BTreeSet;

use super::layout::{CALLS, TABLE};
use crate::calls;

pub(super) fn indices(numbers: calls::Numbers) -> impl Iterator<Item = usize> {
    let x32 = numbers.x32.map(|number| number & !calls::X32);
    let tables = [(numbers.long, 0), (numbers.short, TABLE), (x32, 2 * TABLE)];
    tables.into_iter().filter_map(|(number, base)| number.map(|number| base + number as usize))
}

/// Returns the name in the kernel's table, without the ABI.
pub(super) fn base(index: usize) -> Option<&'static str> {
    calls::base_name((index % TABLE) as u32, index / TABLE == 1)
}

pub(super) fn shown(index: usize) -> String {
    let (table, number) = (index / TABLE, (index % TABLE) as u32);
    let name = match table {
        0 => calls::name(number.into(), false),
        1 => calls::name(number.into(), true),
        _ => calls::name((number | calls::X32).into(), false),
    };
    // The last index of a table covers all larger numbers.
    if number as usize == TABLE - 1 { format!("{name} and above") } else { name }
}

pub(super) fn all_but(names: &BTreeSet<String>) -> Vec<usize> {
    let numbers = names.iter().filter_map(|name| calls::number(name));
    let wanted: BTreeSet<usize> = numbers.flat_map(indices).collect();
    (0..CALLS).filter(|index| !wanted.contains(index)).collect()
}

#[cfg(test)]
mod tests {
    use tollgate_arch::architecture::{Architecture, HERE};

    use super::*;

    /// The numbers of openat(2): of 64-bit programs and of 32-bit ones, and how many 64-bit ABIs have it.
    const OPENAT: (usize, usize, usize) = match HERE {
        Architecture::X86_64 => (257, 295, 2),
        Architecture::Arm64 => (56, 322, 1),
    };

    #[test]
    fn indices_are_names_of_their_table() {
        assert_eq!(shown(OPENAT.0), "openat");
        assert_eq!(shown(TABLE + OPENAT.1), "openat (32-bit)");
        assert_eq!(shown(999), "call 999");
        assert!(shown(TABLE - 1).ends_with("and above"));
    }

    #[test]
    fn what_is_not_wanted_is_everything_else_in_every_table() {
        let unwanted = all_but(&BTreeSet::from(["openat".to_owned()]));
        assert!(!unwanted.contains(&OPENAT.0));
        assert!(!unwanted.contains(&(TABLE + OPENAT.1)));
        assert!(unwanted.contains(&0));
        assert_eq!(unwanted.len(), CALLS - OPENAT.2 - 1);
    }
}
