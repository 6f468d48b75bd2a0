//! The initial stack of a program as the kernel lays it out: argument count, pointers to arguments and environment, and the
//! auxiliary vector (`create_elf_tables` in fs/binfmt_elf.c; getauxval(3)). Pure.

/// The kernel writes less: a quarter of the largest stack for arguments, `_STK_LIM` in fs/exec.c, full of pointers to empty
/// strings.
pub(super) const MOST_WORDS: usize = 1 << 20;

const AT_NULL: u64 = 0;
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;
const AT_SYSINFO_EHDR: u64 = 33;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Initial {
    /// Address of the first argument's text.
    pub arguments: Option<u64>,
    pub entry: Option<u64>,
    /// The loader's; 0 if there is none.
    pub base: Option<u64>,
    pub vdso: Option<u64>,
}

impl Initial {
    /// Parses words from the stack pointer upwards. `None` if they end too soon: more are needed.
    pub fn parse(words: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut words = words.into_iter();
        let arguments = words.next()?;
        let mut initial = Self::default();
        for at in 0..arguments {
            let argument = words.next()?;
            if at == 0 {
                initial.arguments = Some(argument);
            }
        }
        if words.next()? != 0 {
            return None;
        }
        while words.next()? != 0 {}
        loop {
            let (kind, value) = (words.next()?, words.next());
            match kind {
                AT_NULL => return Some(initial),
                AT_ENTRY => initial.entry = value,
                AT_BASE => initial.base = value,
                AT_SYSINFO_EHDR => initial.vdso = value,
                _ => value.map(drop)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack() {
        let words = [1, 0x7ffe, 0, 0x7fff, 0x8000, 0, 33, 0x7700, 3, 9, 9, 0x40, 7, 0, 0, 0];
        let initial = Initial::parse(words).unwrap();
        assert_eq!(initial.arguments, Some(0x7ffe));
        assert_eq!((initial.entry, initial.base, initial.vdso), (Some(0x40), Some(0), Some(0x7700)));
        for end in 0..words.len() - 1 {
            assert_eq!(Initial::parse(words[..end].to_vec()), None, "{end}");
        }
    }

    takes_any! {
        words in prop::collection::vec(prop_oneof![0u64..40, any::<u64>()], 0..60) =>
        Initial::parse(words)
    }
}
