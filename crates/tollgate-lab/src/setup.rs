//! The setup of the lab's kernel until its first program runs: each write to a table, a register or a port, in the order in which
//! the interpreter meets it.
//!
//! Nothing here repeats the kernel's code or its addresses. A byte of memory belongs to a table because the processor was given
//! that table's address: by CR3, LGDT, LIDT, LTR and KERNEL_GS_BASE. Other writes, to stacks and variables, are only counted.

mod entries;
mod places;
#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests;

use std::ops::ControlFlow;

use tollgate_x86::walk::{Hidden, Mode, SegmentRegister, TableRegister};
use tollgate_x86::{Field, Msr, Selector, Vendor, WideGate};

use crate::guest::{BASE, Experiment, Image, Parameters};
use crate::{Effect, Interpreter, LabError, Moment, Output, Window, engines};
use entries::Group;
use places::Places;
pub use places::Region;
pub(crate) use places::{ADDRESS, LARGE, PRESENT, USER};

/// The writes until the first program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Vendor of the processor.
    pub vendor: Vendor,
    /// Writes, in order.
    pub writes: Vec<Write>,
    /// Number of other writes: to the kernel's stack and variables, and to the serial port.
    pub others: u64,
}

/// One write, or several similar ones to adjacent entries of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The object that was written, and its value.
    pub item: Item,
    /// The first instruction that wrote it.
    pub by: By,
    /// Number of instructions that wrote it.
    pub instructions: u64,
    /// Whether the same value was written to the same place before.
    pub again: bool,
}

/// An instruction that wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Number of instructions that were completed before it.
    pub number: u64,
    /// Address of the instruction.
    pub address: u64,
    /// Bytes of the instruction.
    pub bytes: Vec<u8>,
    /// The instruction in Intel's syntax.
    pub text: String,
    /// The mode in which it was executed, in ring 0.
    pub mode: Mode,
}

/// A written object and its value.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A byte to a port.
    Port { port: u16, value: u8 },
    /// A control register.
    Control { number: u8, value: u64 },
    /// A model-specific register of kernel entry.
    Msr { msr: Msr, value: u64 },
    /// GDTR or IDTR.
    Table { register: TableRegister, base: u64, limit: u16 },
    /// Segment registers, or TR, with the hidden part that was loaded.
    Segments { registers: Vec<SegmentRegister>, selector: Selector, hidden: Hidden },
    /// Bytes of a table that were cleared.
    Cleared { place: Region, address: u64, bytes: u64 },
    /// Entries of one page table from index `first` on, at a level (4 for the root). Each is `step` more than the one before.
    Pages { level: u8, table: u64, first: u16, count: u16, value: u64, step: u64 },
    /// An entry of the GDT: 8 bytes, or 16.
    Descriptor { selector: Selector, bytes: Vec<u8> },
    /// A field of the TSS.
    Task { field: Field, value: u64 },
    /// Gates of the IDT from the vector `first` on. Each target is `step` bytes after the one before.
    Gates { first: u8, count: u16, gate: WideGate, step: u64 },
    /// A word of the structure that KERNEL_GS_BASE points to.
    Kernel { offset: u64, value: u64 },
    /// The program of ring 3.
    Program { address: u64, bytes: u64 },
    /// The first return to ring 3, by IRETQ: the contents of its frame.
    Return { cs: Selector, rip: u64, rflags: u64, ss: Selector, rsp: u64 },
}

/// Returns what the kernel sets up on a vendor's processor until its first program runs.
///
/// # Errors
/// [`LabError`] if the kernel does not get so far.
pub fn setup(vendor: Option<Vendor>) -> Result<Setup, LabError> {
    Ok(gather(vendor)?.0)
}

fn gather(vendor: Option<Vendor>) -> Result<(Setup, Output), LabError> {
    // The experiment whose program needs only what every program needs.
    let chosen = Experiment::by_name("int").into_iter().collect();
    let image = Image::new(&Parameters { operations: 1, rounds: 1, chosen, ..Parameters::default() });
    let machine = engines::machine(vendor);
    let mut steps = Vec::new();
    let mut arrived = false;
    let mut note = |moment: &Moment| {
        arrived = (moment.before.cpl, moment.after.cpl) == (0, 3);
        steps.extend(Step::new(moment, arrived));
        if arrived { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let window = Window { from: None, after: 0, until: None, at_most: u64::MAX };
    let output = Interpreter.watch(image.bytes(), BASE, image.entry(), machine, window, &mut note)?;
    if !arrived {
        let why = output.cut_short.unwrap_or_else(|| "it ended before a program ran".to_owned());
        return Err(LabError::Unfinished { why });
    }
    let mut memory = vec![0; machine.memory];
    let begin = BASE as usize;
    memory[begin..begin + image.bytes().len()].copy_from_slice(image.bytes());
    let places = Places::new(&steps, &memory);
    let mut told = Teller {
        places,
        memory,
        setup: Setup { vendor: vendor.unwrap_or(Vendor::Intel), writes: Vec::new(), others: 0 },
        group: None,
    };
    for step in &steps {
        told.step(step);
    }
    told.close();
    Ok((told.setup, output))
}

struct Step {
    by: By,
    effects: Vec<Effect>,
    /// The first program's initial state, if this instruction enters it.
    entered: Option<Item>,
}

impl Step {
    /// Returns `None` for an instruction that writes nothing.
    fn new(moment: &Moment, enters: bool) -> Option<Self> {
        let after = &moment.after;
        let [cs, ss, ..] = after.selectors;
        let entered = enters.then_some(Item::Return {
            cs,
            rip: after.rip,
            rflags: after.rflags,
            ss,
            rsp: after.general[RSP],
        });
        let by = By {
            number: moment.number,
            address: moment.before.rip,
            bytes: moment.bytes.clone(),
            text: moment.text.clone(),
            mode: moment.before.mode,
        };
        (enters || !moment.effects.is_empty()).then(|| Self { by, effects: moment.effects.clone(), entered })
    }

    fn is_repeated(&self, operation: &str) -> bool {
        self.by.text.strip_prefix("rep ").is_some_and(|text| text.starts_with(operation))
    }
}

const RSP: usize = 4;
/// The masks of the two interrupt controllers, the 8259A's operation control word 1.
const MASKS: [u16; 2] = [0x21, 0xa1];

struct Teller {
    places: Places,
    memory: Vec<u8>,
    setup: Setup,
    group: Option<Group>,
}

impl Teller {
    fn step(&mut self, step: &Step) {
        if let Some(item) = &step.entered {
            return self.write(item.clone(), step);
        }
        let loads_task = step.by.text.starts_with("ltr ");
        for effect in &step.effects {
            match *effect {
                // LTR itself marks the descriptor as busy.
                Effect::Memory { .. } if loads_task => self.store(effect),
                Effect::Memory { address, .. } => match self.places.of_address(address) {
                    Some(place) => self.entry(place, address, effect, step),
                    None => {
                        self.store(effect);
                        self.setup.others += 1;
                    }
                },
                Effect::Port { port, value } if MASKS.contains(&port) => {
                    self.write(Item::Port { port, value }, step);
                }
                Effect::Port { .. } => self.setup.others += 1,
                Effect::Control { number, value } => self.write(Item::Control { number, value }, step),
                Effect::Msr { msr, value } => self.write(Item::Msr { msr, value }, step),
                Effect::Table { register, base, limit } => {
                    self.write(Item::Table { register, base, limit }, step);
                }
                Effect::Segment { register, selector, hidden } => {
                    self.segment(register, selector, hidden, step);
                }
            }
        }
    }

    fn entry(&mut self, place: Region, address: u64, effect: &Effect, step: &Step) {
        let fits = self.group.as_ref().is_some_and(|group| group.takes(place, address, step));
        if !fits {
            self.close();
        }
        self.store(effect);
        self.group.get_or_insert_with(|| Group::new(place, step)).add(address, effect, step);
    }

    fn store(&mut self, effect: &Effect) {
        if let Effect::Memory { address, bytes, value } = *effect {
            let begin = address as usize;
            if let Some(place) = self.memory.get_mut(begin..begin + usize::from(bytes)) {
                place.copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
            }
        }
    }

    /// Adds a segment register. Consecutive registers that take the same value are one write.
    fn segment(&mut self, register: SegmentRegister, selector: Selector, hidden: Hidden, step: &Step) {
        self.close();
        if let Some(Write { item: Item::Segments { registers, selector: same, .. }, instructions, .. }) =
            self.setup.writes.last_mut()
            && *same == selector
            && !registers.contains(&register)
        {
            registers.push(register);
            *instructions += 1;
            return;
        }
        self.write(Item::Segments { registers: vec![register], selector, hidden }, step);
    }

    fn write(&mut self, item: Item, step: &Step) {
        self.close();
        self.push(item, step.by.clone(), 1);
    }

    fn close(&mut self) {
        let Some(group) = self.group.take() else { return };
        for (item, by, instructions) in group.items(&self.places, &self.memory) {
            self.push(item, by, instructions);
        }
    }

    fn push(&mut self, item: Item, by: By, instructions: u64) {
        let again = self.setup.writes.iter().any(|write| write.item == item);
        self.setup.writes.push(Write { item, by, instructions, again });
    }
}
