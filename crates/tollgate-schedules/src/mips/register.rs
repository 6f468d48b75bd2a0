use std::fmt;

/// A register of the model: those that a short function needs for its caller's arguments, and k1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Register {
    Zero,
    V0,
    A0,
    /// Reserved for the kernel by MIPS convention; here it reports a preemption.
    K1,
    T0,
    T1,
    T2,
    /// Return address; no instruction of the model writes it.
    Ra,
}

pub(super) const KEPT: usize = 6;

impl Register {
    pub(super) const ALL: [Self; 8] =
        [Self::Zero, Self::V0, Self::A0, Self::K1, Self::T0, Self::T1, Self::T2, Self::Ra];

    const TABLE: [(&str, u32); Self::ALL.len()] =
        [("zero", 0), ("v0", 2), ("a0", 4), ("k1", 27), ("t0", 8), ("t1", 9), ("t2", 10), ("ra", 31)];

    pub(super) const fn name(self) -> &'static str {
        Self::TABLE[self as usize].0
    }

    pub(super) const fn number(self) -> u32 {
        Self::TABLE[self as usize].1
    }

    pub(super) fn numbered(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|register| register.number() == number)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let bare = name.strip_prefix('$').unwrap_or(name);
        let named = Self::ALL.into_iter().find(|register| register.name() == bare);
        let numbered = || bare.parse().ok().and_then(Self::numbered);
        if bare.len() < name.len() { named.or_else(numbered) } else { named }
    }

    /// Returns its index in a process; `None` for registers that never change.
    pub(super) const fn slot(self) -> Option<usize> {
        match self {
            Self::Zero | Self::Ra => None,
            _ => Some(self as usize - 1),
        }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_the_convention() {
        for register in Register::ALL {
            assert_eq!(Register::named(register.name()), Some(register));
            assert_eq!(Register::named(&format!("${}", register.name())), Some(register));
            assert_eq!(Register::named(&format!("${}", register.number())), Some(register));
            assert_eq!(Register::numbered(register.number()), Some(register));
        }
        assert_eq!([Register::named("8"), Register::named("s0"), Register::named("$")], [None; 3]);
        let mut slots: Vec<_> = Register::ALL.into_iter().filter_map(Register::slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..KEPT).collect::<Vec<_>>());
    }
}
