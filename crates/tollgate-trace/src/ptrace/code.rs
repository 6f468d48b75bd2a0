//! The code that processes have mapped when they exit: proc_pid_maps(5), read at `PTRACE_EVENT_EXIT`, while they still have
//! memory.

use tollgate_model::traced::{Code, CodeMap};

use crate::symbols::code_of;

const MOST: usize = 1 << 12;

#[derive(Debug, Default)]
pub struct Mapped(CodeMap);

impl Mapped {
    pub fn executed(&mut self, pid: libc::pid_t) {
        self.0.programs = self.0.programs.saturating_add(1);
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        self.0.program = program.map(|path| path.to_string_lossy().into_owned());
    }

    pub fn look(&mut self, pid: libc::pid_t) {
        code_of(pid.unsigned_abs()).for_each(|mapping| self.add(mapping));
    }

    fn add(&mut self, new: Code) {
        let overlaps = |known: &&Code| known.begin < new.end && new.begin < known.end;
        match self.0.code.iter().find(overlaps) {
            // A forked process has the same mapping.
            Some(known) if *known == new => {}
            Some(_) => self.0.has_conflict = true,
            None if self.0.code.len() >= MOST => self.0.has_conflict = true,
            None => self.0.code.push(new),
        }
    }

    pub fn end(self) -> CodeMap {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_at_one_address_are_a_conflict_and_the_same_twice_is_none() {
        let code = |begin, end, file: &str| Code { begin, end, offset: 0, file: file.to_owned() };
        let mut mapped = Mapped::default();
        for new in [code(0x1000, 0x2000, "a"), code(0x2000, 0x3000, "b"), code(0x1000, 0x2000, "a")] {
            mapped.add(new);
        }
        assert_eq!((mapped.0.code.len(), mapped.0.has_conflict), (2, false));
        mapped.add(code(0x2800, 0x3800, "c"));
        assert_eq!((mapped.0.code.len(), mapped.0.has_conflict), (2, true));
    }
}
