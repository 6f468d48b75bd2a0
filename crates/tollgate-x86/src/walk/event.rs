//! Events that go through the interrupt descriptor table, and faults during their delivery.

use super::outcome::{Exception, Fault, Severity};

/// An event that goes through the interrupt descriptor table.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// INT n. The gate's privilege level is checked.
    Int(u8),
    /// INT3, vector 3. The gate's privilege level is checked.
    Int3,
    /// INTO where the overflow flag is set, vector 4. The gate's privilege level is checked; 64-bit mode has no such
    /// instruction.
    Into,
    /// INT1, vector 1: not checked.
    Int1,
    /// An exception that the processor found, with the error code that is pushed last where its vector has one. Not checked.
    Exception { vector: u8, code: Option<u32> },
    /// An interrupt from outside, an NMI included. Not checked.
    External { vector: u8 },
}

impl Event {
    /// The entry of the interrupt descriptor table.
    pub const fn vector(self) -> u8 {
        match self {
            Self::Int(vector) | Self::Exception { vector, .. } | Self::External { vector } => vector,
            Self::Int1 => 1,
            Self::Int3 => 3,
            Self::Into => 4,
        }
    }

    /// Whether it is an instruction that the gate's privilege level has to admit. SDM 2A, INT n: "does not apply to
    /// INT1".
    pub const fn is_checked(self) -> bool {
        matches!(self, Self::Int(_) | Self::Int3 | Self::Into)
    }

    /// The error code, which is pushed last.
    pub const fn code(self) -> Option<u32> {
        match self {
            Self::Exception { code, .. } => code,
            _ => None,
        }
    }

    /// Whether RF is set in the pushed flags, so that a breakpoint on the instruction does not stop its second
    /// try: for every fault but the debug exception. SDM 3B, "Instruction-breakpoint exception condition".
    pub(super) const fn sets_rf(self) -> bool {
        match self {
            Self::Exception { vector, .. } => !matches!(vector, 1 | 3 | 4 | 8 | 18),
            _ => false,
        }
    }

    /// The EXT bit of the error code of a fault that happens in its delivery: set where no instruction asked for it.
    pub(super) const fn external(self) -> u32 {
        !self.is_checked() as u32
    }

    const fn severity(self) -> Severity {
        match self {
            Self::Exception { vector, .. } => Exception(vector).severity(),
            _ => Severity::Benign,
        }
    }
}

impl Fault {
    /// The event that its delivery is.
    pub const fn event(&self) -> Event {
        Event::Exception { vector: self.exception.0, code: self.code }
    }
}

/// The processor's reaction to a fault in the delivery of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// It delivers this: the second fault, or a double fault.
    Deliver(Event),
    /// It shuts down, which usually resets the machine.
    Shutdown,
}

impl Next {
    /// The reaction to `second` in the delivery of `first`. SDM 3A, "Interrupt 8: double fault exception", table
    /// "Conditions for generating a double fault".
    pub fn after(first: Event, second: &Fault) -> Self {
        let serious = second.exception.severity();
        match (first.severity(), serious) {
            (Severity::DoubleFault, Severity::Contributory | Severity::PageFault | Severity::DoubleFault) => {
                Self::Shutdown
            }
            (Severity::Contributory, Severity::Contributory)
            | (Severity::PageFault, Severity::Contributory | Severity::PageFault) => {
                Self::Deliver(Event::Exception { vector: Exception::DOUBLE_FAULT.0, code: Some(0) })
            }
            _ => Self::Deliver(second.event()),
        }
    }
}
