use tollgate_x86::{Msr, Tss64};

use super::places::word;
use super::*;

/// The accessed and dirty bits of a page-table entry, which the processor sets.
const USED: u64 = 0x60;
/// The busy bit in the first 8 bytes of a TSS's descriptor, which LTR sets.
const BUSY: u64 = 1 << 41;

fn place(write: &Write) -> usize {
    write.by.number as usize
}

/// Returns the number of the first matching write.
fn first(setup: &Setup, is_it: impl Fn(&Item) -> bool) -> usize {
    let write = setup.writes.iter().find(|write| is_it(&write.item));
    place(write.expect("it is written"))
}

fn control(setup: &Setup, number: u8) -> usize {
    first(setup, |item| matches!(item, Item::Control { number: is, .. } if *is == number))
}

fn msr(setup: &Setup, msr: Msr) -> usize {
    first(setup, |item| matches!(item, Item::Msr { msr: is, .. } if *is == msr))
}

#[test]
fn long_mode_is_entered_in_the_order_of_the_manual() {
    for vendor in [None, Some(Vendor::Amd)] {
        let setup = setup(vendor).expect("a kernel");
        assert!(setup.writes.is_sorted_by_key(place));
        let root = first(&setup, |item| matches!(item, Item::Pages { level: 4, .. }));
        let code = first(&setup, |item| matches!(item, Item::Segments { .. }));
        let order =
            [root, control(&setup, 4), control(&setup, 3), msr(&setup, Msr::Efer), control(&setup, 0), code];
        assert!(order.is_sorted(), "{order:?}");
        let task = first(&setup, |item| matches!(item, Item::Segments { selector: Selector(0x40), .. }));
        let stack = first(&setup, |item| matches!(item, Item::Task { field, .. } if field.name == "rsp0"));
        let gates = first(&setup, |item| matches!(item, Item::Gates { .. }));
        let table = |register| {
            first(&setup, |item| matches!(item, Item::Table { register: is, .. } if *is == register))
        };
        assert!(stack < task && gates < table(TableRegister::Idtr), "{setup:?}");
        assert!(table(TableRegister::Gdtr) < code, "the far jump needs a GDT");
        assert!(matches!(setup.writes.last().map(|write| &write.item), Some(Item::Return { .. })));
    }
}

#[test]
fn the_second_time_all_is_the_same() {
    let setup = setup(None).expect("a kernel");
    let times = |again: bool| {
        let set_up = |write: &&Write| {
            matches!(write.item, Item::Descriptor { .. } | Item::Task { .. } | Item::Gates { .. })
        };
        setup.writes.iter().filter(set_up).filter(|write| write.again == again).count()
    };
    assert!(times(false) > 10);
    assert_eq!(times(false), times(true));
}

/// Returns each address that a write changes, with the 8 bytes there.
fn words(item: &Item, places: (u64, u64, u64, u64)) -> Vec<(u64, u64)> {
    let (gdt, task, idt, kernel) = places;
    let of = |address: u64, bytes: &[u8]| -> Vec<(u64, u64)> {
        (0..bytes.len() as u64 / 8).map(|at| (address + 8 * at, word(bytes, 8 * at))).collect()
    };
    match item {
        Item::Pages { table, first, count, value, step, .. } => (0..u64::from(*count))
            .map(|at| (table + 8 * (u64::from(*first) + at), value + step * at))
            .collect(),
        Item::Descriptor { selector, bytes } => of(gdt + u64::from(selector.0), bytes),
        Item::Task { field, value } if field.size == 8 => vec![(task + field.offset as u64, *value)],
        Item::Gates { first, count, gate, step } => (0..u64::from(*count))
            .flat_map(|at| {
                let mut gate = *gate;
                gate.low.offset += (step * at) as u32;
                of(idt + 16 * (u64::from(*first) + at), &gate.encode())
            })
            .collect(),
        Item::Kernel { offset, value } => vec![(kernel + offset, *value)],
        _ => Vec::new(),
    }
}

#[test]
fn what_was_written_is_what_memory_holds() {
    let (setup, output) = gather(None).expect("a kernel");
    let memory = output.memory.expect("the interpreter's");
    let table = |register: TableRegister| {
        let of = |write: &Write| match write.item {
            Item::Table { register: is, base, limit } if is == register => Some((base, limit)),
            _ => None,
        };
        setup.writes.iter().rev().find_map(of).expect("it is loaded")
    };
    let ((gdt, last), (idt, last_gate)) = (table(TableRegister::Gdtr), table(TableRegister::Idtr));
    let task = setup.writes.iter().find_map(|write| match &write.item {
        Item::Segments { registers, hidden, .. } if registers[..] == [SegmentRegister::Tr] => {
            Some(hidden.base)
        }
        _ => None,
    });
    let kernel = setup.writes.iter().find_map(|write| match write.item {
        Item::Msr { msr: Msr::KernelGsBase, value } => Some(value),
        _ => None,
    });
    let (task, kernel) = (task.expect("LTR"), kernel.expect("WRMSR"));
    let mut told = std::collections::BTreeMap::new();
    for write in &setup.writes {
        told.extend(words(&write.item, (gdt, task, idt, kernel)));
    }
    assert!(told.len() > 550, "{}", told.len());
    for (address, value) in &told {
        let own = match *address {
            address if address == gdt + 0x40 => word(&memory, address) & !BUSY,
            address if address < gdt => word(&memory, address) & !USED,
            address => word(&memory, address),
        };
        assert_eq!(own, *value, "{address:x}");
    }
    // The writes include everything that the processor reads there.
    let entries = |base: u64, bytes: u64| {
        (base..base + bytes).step_by(8).filter(|at| word(&memory, *at) != 0).collect()
    };
    let all: [Vec<u64>; 2] = [entries(gdt, u64::from(last) + 1), entries(idt, u64::from(last_gate) + 1)];
    assert!(all.iter().flatten().all(|address| told.contains_key(address)), "{all:?}");
    for field in Tss64::FIELDS {
        let value = field.read(&memory[task as usize..]).expect("memory");
        let is_told = setup.writes.iter().any(|write| {
            matches!(&write.item, Item::Task { field: is, value: told } if is == field && *told == value)
        });
        assert_eq!(is_told, value != 0, "{}", field.name);
    }
}
