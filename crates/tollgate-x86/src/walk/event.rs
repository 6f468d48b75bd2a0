use super::outcome::{Exception, Fault, Severity};

/// An event that is delivered through the interrupt descriptor table.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// INT n, subject to the gate's DPL.
    Int(u8),
    /// INT3, vector 3, subject to the gate's DPL.
    Int3,
    /// INTO with the overflow flag set, vector 4, subject to the gate's DPL. 64-bit mode does not have the instruction.
    Into,
    /// INT1, vector 1, not subject to the gate's DPL.
    Int1,
    /// A processor exception, with its error code if its vector has one. Not subject to the gate's DPL.
    Exception { vector: u8, code: Option<u32> },
    /// An external interrupt or NMI. Not subject to the gate's DPL.
    External { vector: u8 },
}

impl Event {
    /// Returns the vector, the index in the interrupt descriptor table.
    pub const fn vector(self) -> u8 {
        match self {
            Self::Int(vector) | Self::Exception { vector, .. } | Self::External { vector } => vector,
            Self::Int1 => 1,
            Self::Int3 => 3,
            Self::Into => 4,
        }
    }

    /// Returns whether the gate's DPL applies. SDM 2A, INT n: "does not apply to INT1".
    pub const fn is_checked(self) -> bool {
        matches!(self, Self::Int(_) | Self::Int3 | Self::Into)
    }

    /// Returns the error code, which is pushed last.
    pub const fn code(self) -> Option<u32> {
        match self {
            Self::Exception { code, .. } => code,
            _ => None,
        }
    }

    /// Returns whether RF is set in the pushed flags, so that an instruction breakpoint does not stop the retry: for every
    /// fault except the debug exception. SDM 3B, "Instruction-breakpoint exception condition".
    pub(super) const fn sets_rf(self) -> bool {
        match self {
            Self::Exception { vector, .. } => !matches!(vector, 1 | 3 | 4 | 8 | 18),
            _ => false,
        }
    }

    /// Returns the EXT bit in the error code of a fault during delivery: set unless an instruction raised the event.
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
    /// Returns the event by which it is delivered.
    pub const fn event(&self) -> Event {
        Event::Exception { vector: self.exception.0, code: self.code }
    }
}

/// How the processor reacts to a fault during the delivery of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// It delivers this event: the second fault, or a double fault.
    Deliver(Event),
    /// It shuts down, which usually resets the machine.
    Shutdown,
}

impl Next {
    /// Returns the reaction to `second` during the delivery of `first`. SDM 3A, "Interrupt 8: double fault exception",
    /// table "Conditions for generating a double fault".
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
