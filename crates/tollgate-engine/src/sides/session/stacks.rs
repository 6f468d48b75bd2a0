//! Reconstructs the stacks of functions from the order of the executed addresses alone.
//!
//! A function's first instruction is a call of it. Any other instruction of a function further down the stack is a return to it, which
//! ends all frames above. If the function is not on the stack, the instruction is a call too, since some functions are entered at more
//! than one instruction. So another thread's functions appear above the one that switched to it. A function that jumps to another at
//! its end keeps its frame until the caller of both goes on. The caller of `__x86_indirect_thunk_rax` and the like also calls the target.

use std::collections::{BTreeMap, HashMap};

use super::iterations::is_kernel;

/// The deepest nesting. The kernel's stack has room for fewer.
const DEEPEST: usize = 256;
/// The most different stacks.
const MOST: usize = 1 << 20;
const USER: &str = "user space";
const UNKNOWN: &str = "(no function)";
/// The beginnings and ends of the names of functions that only jump to another one.
const THUNKS: [&str; 2] = ["__x86_indirect", "return_thunk"];

/// Follows instructions from function to function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stacks {
    names: Vec<String>,
    /// By kernel address: the function, and whether it is its first executed instruction.
    functions: HashMap<u64, (usize, bool)>,
    /// Frames, each before all that it calls; the first is that of programs.
    frames: Vec<Frame>,
    at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    function: usize,
    /// The caller. That of the first frame is itself.
    caller: usize,
    depth: usize,
    callees: Vec<usize>,
    instructions: u64,
}

impl Stacks {
    /// For an execution whose kernel addresses have these functions.
    pub fn of(named: &BTreeMap<u64, String>) -> Self {
        let mut names = vec![USER.to_owned(), UNKNOWN.to_owned()];
        let (mut numbers, mut functions) = (HashMap::new(), HashMap::new());
        for (address, name) in named.iter().filter(|(address, _)| is_kernel(**address)) {
            // Addresses are sorted, and a call begins at the lowest one.
            let first = !numbers.contains_key(name);
            let number = *numbers.entry(name).or_insert_with(|| {
                names.push(name.clone());
                names.len() - 1
            });
            functions.insert(*address, (number, first));
        }
        let first = Frame { function: 0, caller: 0, depth: 0, callees: Vec::new(), instructions: 0 };
        Self { names, functions, frames: vec![first], at: 0 }
    }

    /// Adds the execution of an instruction at this address; for a repeated one only the first iteration.
    pub fn executed(&mut self, address: u64) {
        let (function, is_first) = if is_kernel(address) {
            self.functions.get(&address).copied().unwrap_or((1, false))
        } else {
            (0, false)
        };
        if self.frames[self.at].function != function {
            self.at = match self.below(function) {
                Some(frame) if !is_first || self.frames[self.at].depth >= DEEPEST => frame,
                _ => self.called(function),
            };
        }
        self.frames[self.at].instructions += 1;
    }

    fn is_thunk(&self, function: usize) -> bool {
        let [begin, end] = THUNKS;
        self.names[function].starts_with(begin) || self.names[function].ends_with(end)
    }

    /// The nearest frame of this function below the last one.
    fn below(&self, function: usize) -> Option<usize> {
        let mut at = self.at;
        while at != 0 {
            at = self.frames[at].caller;
            if self.frames[at].function == function {
                return Some(at);
            }
        }
        None
    }

    /// The frame of a function that the last one calls.
    fn called(&mut self, function: usize) -> usize {
        let mut caller = self.at;
        while self.is_thunk(self.frames[caller].function) {
            caller = self.frames[caller].caller;
        }
        if self.frames[caller].depth >= DEEPEST {
            caller = 0;
        }
        self.frame(caller, function)
    }

    fn frame(&mut self, caller: usize, function: usize) -> usize {
        let known =
            self.frames[caller].callees.iter().find(|frame| self.frames[**frame].function == function);
        if let Some(known) = known {
            return *known;
        }
        // If there is no room for a frame, its instructions count for the caller.
        if self.frames.len() >= MOST {
            return caller;
        }
        let depth = self.frames[caller].depth + 1;
        self.frames.push(Frame { function, caller, depth, callees: Vec::new(), instructions: 0 });
        let frame = self.frames.len() - 1;
        self.frames[caller].callees.push(frame);
        frame
    }

    /// The stacks with their instructions, as for flame graphs: the frames from the outermost on, with `;` between them.
    pub fn folded(&self) -> Vec<(String, u64)> {
        let mut lines = BTreeMap::new();
        for (number, frame) in self.frames.iter().enumerate().filter(|(_, frame)| frame.instructions > 0) {
            let mut names = Vec::new();
            let mut at = number;
            while at != 0 {
                names.push(self.names[self.frames[at].function].as_str());
                at = self.frames[at].caller;
            }
            names.push(USER);
            names.reverse();
            *lines.entry(names.join(";")).or_default() += frame.instructions;
        }
        lines.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    /// Functions of 16 bytes each.
    fn stacks(names: &[&str]) -> Stacks {
        let addresses = (0..).step_by(4).zip(names.iter().flat_map(|name| [name; 4]));
        Stacks::of(&addresses.map(|(at, name)| (KERNEL + at, (*name).to_owned())).collect())
    }

    /// Executes instruction `at` of function number `function`, or one of the program.
    fn execute(stacks: &mut Stacks, steps: &[Option<(u64, u64)>]) -> Vec<(String, u64)> {
        for step in steps {
            stacks.executed(step.map_or(0x40_0000, |(function, at)| KERNEL + 16 * function + 4 * at));
        }
        stacks.folded()
    }

    fn lines(of: &[(&str, u64)]) -> Vec<(String, u64)> {
        of.iter().map(|(stack, instructions)| ((*stack).to_owned(), *instructions)).collect()
    }

    #[test]
    fn calls_and_returns_are_told_by_addresses() {
        let mut stacks = stacks(&["entry", "read", "copy"]);
        let first =
            [None, Some((0, 0)), Some((0, 1)), Some((1, 0)), Some((2, 0)), Some((2, 1)), Some((1, 1))];
        // The copy is called again, then both return.
        let then = [Some((2, 0)), Some((1, 2)), Some((0, 2)), None];
        let found = execute(&mut stacks, &[&first[..], &then].concat());
        let expected = [
            ("user space", 2),
            ("user space;entry", 3),
            ("user space;entry;read", 3),
            ("user space;entry;read;copy", 3),
        ];
        assert_eq!(found, lines(&expected));
    }

    #[test]
    fn a_jump_keeps_the_frame_and_a_thunk_is_no_caller() {
        let mut stacks = stacks(&["entry", "read", "__x86_indirect_thunk_array", "method"]);
        let steps = [
            Some((0, 0)),
            Some((2, 0)),
            Some((3, 0)),
            // It jumps to `read`, which returns to `entry`, and that goes through another register's thunk.
            Some((1, 0)),
            Some((0, 1)),
            Some((2, 2)),
            Some((3, 0)),
            Some((0, 2)),
        ];
        let expected = [
            ("user space;entry", 3),
            ("user space;entry;__x86_indirect_thunk_array", 2),
            ("user space;entry;method", 2),
            ("user space;entry;method;read", 1),
        ];
        assert_eq!(execute(&mut stacks, &steps), lines(&expected));
    }

    #[test]
    fn another_thread_is_above_and_functions_that_jump_to_each_other_end() {
        let mut stacks = stacks(&["entry", "one", "other"]);
        let found = execute(&mut stacks, &[Some((0, 0)), Some((1, 2)), Some((0, 1))]);
        assert_eq!(found, lines(&[("user space;entry", 2), ("user space;entry;one", 1)]));
        let mut stacks = self::stacks(&["entry", "one", "other"]);
        let turns: Vec<_> = (0..10_000).map(|turn| Some((1 + turn % 2, 0))).collect();
        let found = execute(&mut stacks, &turns);
        assert_eq!(found.iter().map(|(_, instructions)| instructions).sum::<u64>(), 10_000);
        assert!(stacks.frames.iter().all(|frame| frame.depth <= DEEPEST), "{}", stacks.frames.len());
        // Without any functions the whole kernel is one.
        let found = execute(&mut Stacks::of(&BTreeMap::new()), &[Some((0, 0)), None]);
        assert_eq!(found, lines(&[("user space", 1), ("user space;(no function)", 1)]));
    }
}
