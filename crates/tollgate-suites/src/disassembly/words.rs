//! The loops of arm64, an instruction a word (Arm ARM, C4.1). The decoder is tested on both architectures, the loops where they are.

use tollgate_arch::cpuid::CPUID;

use super::*;

/// Counts a loop down: `subs x19, x19, 1`. A conditional branch follows.
const COUNTS_DOWN: u32 = 0xf100_0673;
const RET: u32 = 0xd65f_03c0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Arithmetic,
    Vector,
    Load,
    Store,
    LoadExclusive,
    StoreExclusive,
    /// LSE: an addition and the like, which have one encoding.
    Addition,
    Swap,
    CompareAndSwap,
    Branch,
    Call,
    Return,
    /// SVC.
    Entry,
    /// BRK or UDF.
    Trap,
    /// Barriers, system registers, DC ZVA.
    System,
}

use Class::{
    Addition, Arithmetic, Branch, Call, CompareAndSwap, Entry, Load, LoadExclusive, Return, Store,
    StoreExclusive, Swap, System, Trap, Vector,
};

fn class(word: u32) -> Class {
    let has = |mask: u32, value: u32| word & mask == value;
    // A load of one general register has two bits: it may extend the sign.
    let loads = has(1 << 22, 1 << 22) || has(0x3c80_0000, 0x3880_0000);
    match word >> 25 & 0xf {
        0 => Trap,
        0b1000 | 0b1001 | 0b0101 | 0b1101 => Arithmetic,
        0b0111 | 0b1111 => Vector,
        0b1010 | 0b1011 if has(0xfc00_0000, 0x9400_0000) || has(0xffff_fc1f, 0xd63f_0000) => Call,
        0b1010 | 0b1011 if has(0xffff_fc1f, 0xd65f_0000) => Return,
        0b1010 | 0b1011 if has(0xffe0_001f, 0xd400_0001) => Entry,
        0b1010 | 0b1011 if has(0xff00_0000, 0xd400_0000) => Trap,
        0b1010 | 0b1011 if has(0xffc0_0000, 0xd500_0000) => System,
        0b1010 | 0b1011 => Branch,
        _ if has(0x3f20_0c00, 0x3820_0000) => {
            if has(0x8000, 0x8000) {
                Swap
            } else {
                Addition
            }
        }
        _ if has(0x3fa0_0000, 0x08a0_0000) => CompareAndSwap,
        _ if has(0x3fa0_0000, 0x0800_0000) => {
            if loads {
                LoadExclusive
            } else {
                StoreExclusive
            }
        }
        _ => {
            if loads {
                Load
            } else {
                Store
            }
        }
    }
}

/// The general registers that it writes. Those of vectors are taken for such.
fn written(word: u32) -> Vec<u32> {
    let field = |at: u32| word >> at & 31;
    let is_of_vectors = word >> 26 & 1 == 1;
    let is_pair = word >> 27 & 7 == 0b101;
    let is_indexed =
        if is_pair { word >> 23 & 1 == 1 && word >> 25 & 1 == 0 } else { word & 0x3b20_0400 == 0x3800_0400 };
    let base = is_indexed.then(|| field(5));
    match class(word) {
        Arithmetic | Vector | LoadExclusive | Addition | Swap => vec![field(0)],
        StoreExclusive | CompareAndSwap => vec![field(16)],
        Load if is_of_vectors => base.into_iter().collect(),
        Load => base.into_iter().chain([field(0)]).chain(is_pair.then(|| field(10))).collect(),
        Store => base.into_iter().collect(),
        Call => vec![30],
        // MRS has this bit, and writes what it reads.
        System if word >> 21 & 1 == 1 => vec![field(0)],
        Branch | Return | Entry | Trap | System => vec![],
    }
}

/// Returns the words between a loop's start and its counter, or those before the return of a called body.
fn body(case: &str, code: LongLoop) -> Vec<u32> {
    const MOST: usize = 1024;
    // SAFETY: the words lie in this program's own code, which is longer.
    let at = |address: usize| unsafe { *(address as *const u32) };
    let until = |first: usize, is_last: &dyn Fn(usize) -> bool| {
        let end = (first..).step_by(4).take(MOST).find(|&address| is_last(address));
        end.unwrap_or_else(|| panic!("{case}: no end"))
    };
    let target = |address: usize, bits: u32, from: u32| {
        let words = (at(address) << (32 - bits - from)).cast_signed() >> (32 - bits);
        address.wrapping_add_signed(words as isize * 4)
    };
    let counter =
        until(code.address(), &|address| at(address) == COUNTS_DOWN && at(address + 4) >> 24 == 0x54);
    let first = target(counter + 4, 19, 5);
    let (first, end) = if code.is_called() {
        assert_eq!((counter - first, class(at(first))), (4, Call), "{case} does more than call its body");
        let called = target(first, 26, 0);
        (called, until(called, &|address| at(address) == RET))
    } else {
        (first, counter)
    };
    (first..end).step_by(4).map(at).collect()
}

/// Whether a word is the measured instruction; `None` for a name that other words of the loop have too.
fn is_named(name: &str, word: u32) -> Option<bool> {
    let class = class(word);
    Some(match name {
        "svc" => class == Entry,
        "bl" | "blr" => class == Call,
        "ldaddal" => class == Addition,
        "swpa" | "swpal" => class == Swap,
        "casal" => class == CompareAndSwap,
        "ldxr" => class == LoadExclusive,
        "stxr" | "stlxr" => class == StoreExclusive && (word >> 15 & 1 == 1) == (name == "stlxr"),
        "stlr" => word & 0x3fff_fc00 == 0x089f_fc00,
        "strb" => word & 0xffc0_0000 == 0x3900_0000,
        "dmb" => word & 0xffff_f0ff == 0xd503_30bf,
        "mrs" => word >> 20 == 0xd53,
        "mul" => word & 0x7fe0_fc00 == 0x1b00_7c00,
        "brk" => class == Trap,
        "dc zva" => word & 0xffff_ffe0 == 0xd50b_7420,
        "ldp" | "stp" | "stnp" => {
            let is_pair = word >> 27 & 7 == 0b101;
            let moves = if name == "ldp" { Load } else { Store };
            is_pair && class == moves && (word >> 23 & 3 == 0) == (name == "stnp")
        }
        _ => return None,
    })
}

#[test]
fn words_are_of_their_class_and_write_their_registers() {
    for (word, text, is, writes) in [
        (0xd400_0001, "svc 0", Entry, &[][..]),
        (0xd420_0000, "brk 0", Trap, &[]),
        (0x0000_0000, "udf 0", Trap, &[]),
        (0x9400_0004, "bl 16", Call, &[30]),
        (0xd63f_0120, "blr x9", Call, &[30]),
        (RET, "ret", Return, &[]),
        (0x5400_0041, "b.ne 8", Branch, &[]),
        (0xb400_0040, "cbz x0, 8", Branch, &[]),
        (COUNTS_DOWN, "subs x19, x19, 1", Arithmetic, &[19]),
        (0x8b0a_0129, "add x9, x9, x10", Arithmetic, &[9]),
        (0xf940_0689, "ldr x9, [x20, 8]", Load, &[9]),
        (0xf900_0689, "str x9, [x20, 8]", Store, &[]),
        (0xf840_8680, "ldr x0, [x20], 8", Load, &[20, 0]),
        (0xb980_0280, "ldrsw x0, [x20]", Load, &[0]),
        (0xa9bf_53f3, "stp x19, x20, [sp, -16]!", Store, &[31]),
        (0xa8c1_53f3, "ldp x19, x20, [sp], 16", Load, &[31, 19, 20]),
        (0xc8df_fd20, "ldar x0, [x9]", Load, &[0]),
        (0xc89f_fd2a, "stlr x10, [x9]", Store, &[]),
        (0xc85f_fd20, "ldaxr x0, [x9]", LoadExclusive, &[0]),
        (0xc80a_fd20, "stlxr w10, x0, [x9]", StoreExclusive, &[10]),
        (0xf8ea_0120, "ldaddal x10, x0, [x9]", Addition, &[0]),
        (0xf8e0_8120, "swpal x0, x0, [x9]", Swap, &[0]),
        (0xc8e0_fd3f, "casal x0, xzr, [x9]", CompareAndSwap, &[0]),
        (0xd503_3bbf, "dmb ish", System, &[]),
        (0xd50b_742e, "dc zva, x14", System, &[]),
        (0xd53b_e040, "mrs x0, cntvct_el0", System, &[0]),
        (0x4ee4_8400, "add v0.2d, v0.2d, v4.2d", Vector, &[0]),
        (0xad00_01c0, "stp q0, q0, [x14]", Store, &[]),
        (0xad40_15c4, "ldp q4, q5, [x14]", Load, &[]),
    ] {
        assert_eq!((class(word), written(word).as_slice()), (is, writes), "{text}");
    }
}

#[test]
fn every_loop_of_words_holds_what_its_benchmark_names_and_keeps_the_frames_registers() {
    if CPUID.is_some() {
        return eprintln!("skipped: the loops here are x86-64's");
    }
    let (mut seen, machine) = (0, machines::here());
    for benchmark in registered() {
        for params in benchmark.cases_in(Extent::Thorough, &machine) {
            let (code, name, times) = match (benchmark.timed)(&params) {
                Timed::Loop { code: TimedLoop::Long(code), instruction, times }
                | Timed::Together { code, instruction, times } => (code, instruction, times),
                _ => continue,
            };
            if code.why_absent(HERE).is_some() {
                continue;
            }
            let case = benchmark.case(params).to_string();
            let words = body(&case, code);
            let name = HERE.spelling(name);
            let named = words.iter().map(|&word| is_named(name, word)).collect::<Option<Vec<_>>>();
            if let Some(named) = named {
                let number = named.iter().filter(|is| **is).count();
                assert_eq!(number, times, "{case}: {name} in {words:08x?}");
            }
            for word in &words {
                let kept = written(*word)
                    .iter()
                    .all(|number| ![19, 20].contains(number) && (*number != 30 || !code.is_called()));
                assert!(kept, "{case}: {word:08x} changes a register of the frame");
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} loops");
}
