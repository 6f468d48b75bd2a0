//! A user's own entry of SYSCALL: an assembly text that names its parts by symbols. Parts that it lacks are the lab's.

use std::path::Path;

use tollgate_x86::{Rflags, Star};

use crate::LabError;
use crate::interpreter::preempted::{Kernel, MOST_BYTES, MOST_DATA, Piece};
use crate::system::{ADDRESSES, FileError, Program, Segment};

/// The flags that the lab's kernel clears: AC, NT, IOPL, DF, IF and TF are not the caller's to choose.
const FMASK: u64 = 0x4_7700;
const SYMBOLS: [&str; 11] = [
    "syscall_entry",
    "FMASK",
    "STAR",
    "gdt",
    "gdt_end",
    "percpu",
    "kernel_stack",
    "nmi_entry",
    "NMI_IST",
    "mc_entry",
    "MC_IST",
];

/// A user's own entry of SYSCALL.
#[derive(Debug, Clone)]
pub struct OwnEntry {
    /// File name.
    pub name: String,
    /// A sentence that says which parts are the file's and which are the lab's.
    pub about: String,
    pub(super) kernel: Kernel,
}

/// Why a file has no entry that can be tried; the text follows the file's name in a sentence.
#[expect(missing_docs, reason = "the message says what the fields are")]
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "has no symbol syscall_entry, at which the entry begins: write `syscall_entry:` before its first instruction"
    )]
    NoEntry,
    #[error("has gdt without gdt_end: write `gdt_end:` after the last descriptor")]
    NoEnd,
    #[error(
        "has a gdt without 64-bit code of ring 0 (00af9b000000ffff), 64-bit code of ring 3 (00affb000000ffff) or data of ring 3 \
         (00cff3000000ffff), each of which the threads or the handlers need"
    )]
    Segments,
    #[error("has {name} at {at:x}, which is not {right}")]
    Outside { name: &'static str, at: u64, right: &'static str },
    #[error("has {name} = {value}; 0 is the stack that RSP points to, 1 one of its own")]
    Stack { name: &'static str, value: u64 },
    #[error(
        "has {0} bytes of data that it may write; {MOST_DATA} are the most, because they are part of every state"
    )]
    Large(u64),
    #[error("has bytes at {0:x}; they may lie from 40000000 to {end:x}", end = ADDRESSES.start + MOST_BYTES)]
    Far(u64),
    #[error("cannot be followed: {0}")]
    Unmodelled(String),
    #[error(
        "reaches more than {0} states, so it is not decided whether it holds: a loop that counts is longer than can be tried; shorten it"
    )]
    States(usize),
}

impl From<OwnError> for LabError {
    fn from(error: OwnError) -> Self {
        Self::Unfinished { why: error.to_string() }
    }
}

impl OwnEntry {
    /// Assembles a file and finds its parts.
    ///
    /// # Errors
    /// [`OwnError`] if the file cannot be assembled, or a part is missing or misplaced.
    pub fn open(path: &Path) -> Result<Self, OwnError> {
        let (program, symbols) = Program::with_symbols(path, SYMBOLS)?;
        let [entry, mask, star, gdt, gdt_end, percpu, stack, nmi, nmi_ist, mc, mc_ist] = symbols;
        expect_small(&program)?;
        let code = |name, at| within(&program, name, at, 1, |rights| rights.execute, "in its code");
        let data = |name, at| {
            within(&program, name, at, 8, |rights| rights.write, "a word of its data that it may write")
        };
        let entry = entry.ok_or(OwnError::NoEntry)?;
        code(SYMBOLS[0], entry)?;
        let mut kernel = Kernel::new(entry, Rflags(mask.unwrap_or(FMASK)));
        if let Some(star) = star {
            kernel.star = Star(star);
        }
        if let Some(gdt) = gdt {
            let end = gdt_end.ok_or(OwnError::NoEnd)?;
            let bytes = end.checked_sub(gdt).and_then(|bytes| u16::try_from(bytes).ok()).unwrap_or(0);
            let right = "the beginning of a table that ends at gdt_end";
            within(&program, "gdt", gdt, u64::from(bytes).max(8), |_| true, right)?;
            kernel.gdt = Some((gdt, bytes.saturating_sub(1)));
        }
        if let Some(base) = percpu {
            data("percpu", base)?;
            kernel.gs = base;
            kernel.stack_word = base;
        }
        if let Some(word) = stack {
            data("kernel_stack", word)?;
            kernel.stack_word = word;
        }
        for (at, (handler, stack)) in [(nmi, nmi_ist), (mc, mc_ist)].into_iter().enumerate() {
            let (handler_name, stack_name) = [("nmi_entry", "NMI_IST"), ("mc_entry", "MC_IST")][at];
            if let Some(handler) = handler {
                code(handler_name, handler)?;
            }
            let has_stack = match stack {
                None | Some(1) => true,
                Some(0) => false,
                Some(value) => return Err(OwnError::Stack { name: stack_name, value }),
            };
            kernel.strikes[at] = (handler, has_stack);
        }
        let name = program.name.clone();
        let piece = |segment: Segment| {
            let Segment { address, size, bytes, rights } = segment;
            Piece { address, size, bytes, is_writable: rights.write }
        };
        kernel.memory = program.segments.into_iter().map(piece).collect();
        let about = about(&symbols, &kernel);
        Ok(Self { name, about, kernel })
    }
}

fn expect_small(program: &Program) -> Result<(), OwnError> {
    let end = ADDRESSES.start + MOST_BYTES;
    if let Some(far) = program.segments.iter().find(|segment| segment.address + segment.size > end) {
        return Err(OwnError::Far(far.address));
    }
    let data = program.segments.iter().filter(|segment| segment.rights.write).map(|segment| segment.size);
    match data.sum() {
        bytes if bytes > MOST_DATA => Err(OwnError::Large(bytes)),
        _ => Ok(()),
    }
}

/// Checks that some bytes lie in one segment with a right.
fn within(
    program: &Program,
    name: &'static str,
    at: u64,
    bytes: u64,
    has: fn(&crate::system::Rights) -> bool,
    right: &'static str,
) -> Result<(), OwnError> {
    let holds = program.segments.iter().any(|segment| {
        let from = at.checked_sub(segment.address);
        has(&segment.rights) && from.is_some_and(|from| from.saturating_add(bytes) <= segment.size)
    });
    if holds { Ok(()) } else { Err(OwnError::Outside { name, at, right }) }
}

fn about(symbols: &[Option<u64>; SYMBOLS.len()], kernel: &Kernel) -> String {
    let whose = |at: usize| if symbols[at].is_some() { "its own" } else { "the lab's" };
    let stack =
        |at: usize| if kernel.strikes[at].1 { "a stack of its own" } else { "the stack that RSP points to" };
    format!(
        "The entry is at {:x}. FMASK {:x} is {}, STAR {:016x} {}, the GDT {}, what GS points to {}. The handler of NMI is {}, on {}, and \
         that of #MC {}, on {}.",
        kernel.entry,
        kernel.mask.0,
        whose(1),
        kernel.star.0,
        whose(2),
        whose(3),
        whose(5),
        whose(7),
        stack(0),
        whose(9),
        stack(1)
    )
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests {
    use super::*;
    use crate::locks::{Proof, prove_own};

    const ENTRY: &str = include_str!("../../../../docs/lab/entry.s");
    const PUBLISHED: &str = include_str!("../../../../docs/lab/entry-gs8.s");

    /// Proves an entry's text; `None` if there is no compiler.
    fn proof(text: &str) -> Option<Result<Proof, OwnError>> {
        if tollgate_os::programs::find("cc").is_none() {
            println!("skipped: there is no cc");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("entry.s");
        std::fs::write(&path, text).unwrap();
        Some(OwnEntry::open(&path).and_then(|entry| prove_own(&entry)))
    }

    /// Returns the right entry with one part replaced.
    fn mutated(from: &str, to: &str) -> String {
        assert_eq!(ENTRY.matches(from).count(), 1, "{from}");
        ENTRY.replace(from, to)
    }

    /// Returns the losses of a kind of interruption, each with the instruction that it comes before.
    fn lost(proof: &Proof, kind: usize) -> Vec<(&str, &'static str)> {
        let losses = |at: usize| proof.points[at].outcomes[kind].iter().flatten();
        (0..proof.points.len())
            .flat_map(|at| losses(at).map(move |loss| (proof.points[at].instruction.as_str(), loss.0)))
            .collect()
    }

    #[test]
    fn a_right_entry_loses_nothing_at_any_interruption() {
        let Some(proof) = proof(ENTRY) else { return };
        let proof = proof.unwrap();
        assert!(proof.holds() && proof.violation.is_none(), "{proof:?}");
        let swaps: Vec<_> = proof.points.iter().filter(|point| point.instruction == "swapgs").collect();
        assert_eq!(swaps.len(), 2, "{proof:?}");
        for swap in &swaps {
            assert_eq!(swap.outcomes, [None, Some(Vec::new()), Some(Vec::new())], "interrupts are off");
            assert!(swap.on_caller_stack);
        }
        assert!(swaps[0].has_user_gs && !swaps[1].has_user_gs);
        let open = proof.points.iter().filter(|point| point.offset.is_some() && point.outcomes[0].is_some());
        // The shadow of STI covers only the call. Interruptible are then the handler's four, and CLI.
        assert_eq!(open.count(), 5, "{proof:?}");
    }

    #[test]
    #[ignore = "slow: .ci/weekly runs it"]
    fn each_part_that_is_wrong_is_found() {
        let rip = "    pop rcx\n    add rsp, 8\n    pop r11";
        for (from, to, verdict) in [
            ("syscall_entry:\n    swapgs\n", "syscall_entry:\n", "the processor stops"),
            ("    swapgs\n    sysretq", "    sysretq", "a base of GS is lost"),
            ("FMASK, 0x47700", "FMASK, 0x47500", "the processor stops"),
            ("    cli\n", "", "the processor stops"),
            ("    pop rsp\n", "    mov rsp, gs:[8]\n", "a stack is lost"),
            ("rdx, rsi, rdi\n", "rdx, rdi, rsi\n", "registers are lost"),
            (rip, "    pop r11\n    add rsp, 8\n    pop rcx", "a return is lost"),
            ("STAR, 0x001b", "STAR, 0x0013", "a segment is lost"),
            ("    sti\n", "1:  jmp 1b\n", "a call never ends"),
        ] {
            let Some(proof) = proof(&mutated(from, to)) else { return };
            let proof = proof.unwrap();
            assert!(!proof.holds() && proof.violation.is_some(), "{from:?} {to:?}: {proof:?}");
            assert_eq!(proof.lost, Some(verdict), "{from:?} {to:?}: {:?}", proof.violation);
        }
        // Data and 64-bit code swapped: the order that SYSENTER does not accept either.
        let (data, code) = (".quad 0x00cff3000000ffff ", ".quad 0x00affb000000ffff ");
        let Some(proof) = proof(&mutated(data, "DATA").replace(code, data).replace("DATA", code)) else {
            return;
        };
        let proof = proof.unwrap();
        assert_eq!(proof.lost, Some("a segment is lost"));
        let so = proof.violation.unwrap().so;
        assert!(so.contains("CS 2bh, where the GDT has no 64-bit code of ring 3"), "{so}");
        assert!(proof.points.is_empty(), "it needs no interruption");
    }

    #[test]
    fn an_nmi_finds_what_the_entry_has_not_yet_changed() {
        // On the current stack: wherever that is the caller's.
        let Some(proof) = proof(&mutated("    .data\n", "    .set NMI_IST, 0\n    .data\n")) else { return };
        let proof = proof.unwrap();
        assert!(!proof.holds() && proof.violation.is_none());
        let stack = |instruction| (instruction, "stack");
        let expected = ["swapgs", "mov gs:[8],rsp", "mov rsp,gs:[0]", "swapgs", "sysretq"];
        assert_eq!(lost(&proof, 1), expected.map(stack));
        assert!(lost(&proof, 0).is_empty() && lost(&proof, 2).is_empty(), "{proof:?}");
        // With a handler that checks CS: wherever GS is ring 3's.
        let handler = "mc_entry: test byte ptr [rsp+8], 3\n jz 1f\n swapgs\n1: cmp qword ptr gs:[0], 0\n test byte ptr [rsp+8], 3\n \
                       jz 2f\n swapgs\n2: iretq\n    .data\n";
        let proof = self::proof(&mutated("    .data\n", handler)).unwrap().unwrap();
        assert_eq!(lost(&proof, 2), [("swapgs", "GS"), ("sysretq", "GS")]);
        assert!(lost(&proof, 1).is_empty());
        // With a handler that does not save a register.
        let handler = "nmi_entry: mov rax, 1\n iretq\n    .data\n";
        let proof = self::proof(&mutated("    .data\n", handler)).unwrap().unwrap();
        assert_eq!(lost(&proof, 1).len(), proof.points.len());
    }

    #[test]
    fn the_published_entry_loses_a_stack_after_sti() {
        let Some(proof) = proof(PUBLISHED) else { return };
        let proof = proof.unwrap();
        assert_eq!(proof.lost, Some("a stack is lost"));
        let interrupts = lost(&proof, 0);
        // None can come before STI or after CLI; in ring 3 an interrupt loses nothing.
        let between = ["push rcx", "mov eax,26h", "pop rcx", "pop r11", "cli"];
        assert_eq!(interrupts, between.map(|instruction| (instruction, "stack")));
    }

    #[test]
    fn what_cannot_be_tried_is_said() {
        for (text, says) in [
            (mutated("syscall_entry:", "entry:"), "has no symbol syscall_entry"),
            (mutated("gdt_end:", "end:"), "has gdt without gdt_end"),
            (mutated("    .quad 0x00af9b000000ffff ", "    .quad 0 "), "00af9b000000ffff"),
            (mutated("percpu:\n", "percpu = 0x7000\n"), "has percpu at 7000"),
            (mutated("    .data\n", "    .set MC_IST, 2\n    .data\n"), "has MC_IST = 2; 0 is"),
            (
                mutated("percpu:\n", "percpu: .skip 5000\n"),
                "bytes of data that it may write; 4096 are the most",
            ),
            (mutated("    xor esi, esi\n", "    mov cr3, rax\n"), "control registers"),
            (mutated("    xor esi, esi\n", "    hlt\n"), "cannot be followed: HLT"),
            (
                mutated("    xor esi, esi\n", "1:  inc qword ptr gs:[8]\n    jmp 1b\n"),
                "more than 32768 states",
            ),
        ] {
            let Some(proof) = proof(&text) else { return };
            let error = proof.expect_err(says).to_string();
            assert!(error.contains(says), "{says}: {error}");
        }
        assert!(matches!(
            OwnEntry::open(Path::new("/no/such.s")),
            Err(OwnError::File(FileError::Unreadable(_)))
        ));
    }
}
