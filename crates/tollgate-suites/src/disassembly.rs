//! Disassembles the timed loop of every registered case. A loop must contain the instruction that the benchmark names,
//! as often as it says, and apart from that only preparation.

use iced_x86::{
    Code, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use tollgate_model::own;

use crate::machines;
use crate::prelude::*;
use crate::registry::registered;
use crate::{Benchmark, SUITES};

mod vector;
mod words;

const PREPARATION: [Mnemonic; 8] = {
    use Mnemonic::*;
    [Mov, Lea, Xor, Add, Or, Pushfq, Popfq, Nop]
};

/// Whether the loops are in instructions of x86-64. Those of arm64 are decoded by `words`.
fn is_decoded() -> bool {
    HERE == Architecture::X86_64
}

/// Returns every registered case that has a loop: its name, the loop, the instruction, and how often it occurs.
fn loops() -> Vec<(String, TimedLoop, &'static str, usize)> {
    let benchmarks = registered();
    let machine = machines::here();
    let cases = benchmarks.flat_map(|benchmark| {
        benchmark.cases_in(Extent::Thorough, &machine).into_iter().map(move |params| (benchmark, params))
    });
    cases
        .filter(|(benchmark, params)| (benchmark.timed)(params).why_absent(HERE).is_none())
        .filter_map(|(benchmark, params)| match (benchmark.timed)(&params) {
            Timed::Loop { code, instruction, times } => {
                let instruction = Architecture::X86_64.spelling(instruction);
                Some((benchmark.case(params).to_string(), code, instruction, times))
            }
            Timed::Together { .. } => None,
            Timed::Whole(interface) => {
                assert!(!interface.is_empty(), "{}", benchmark.name);
                None
            }
        })
        .collect()
}

#[test]
fn every_timed_loop_holds_the_instruction_that_its_benchmark_names_and_nothing_else_that_matters() {
    if !is_decoded() {
        return;
    }
    let loops = loops();
    assert!(loops.len() > 10, "only {} loops", loops.len());
    for (case, code, named, times) in loops {
        let body = loop_body(&case, code);
        let is_named = |instruction: &&Instruction| mnemonic(instruction) == named;
        assert!(times > 0, "{case}");
        assert_eq!(body.iter().filter(is_named).count(), times, "{case}: {}", listing(&body));
        for other in body.iter().filter(|instruction| !is_named(instruction)) {
            assert!(PREPARATION.contains(&other.mnemonic()), "{case}: {}", listing(&body));
            assert_eq!(other.flow_control(), FlowControl::Next, "{case}: {}", listing(&body));
        }
    }
}

/// Instructions that inner loops add.
const WITHIN: [Mnemonic; 18] = {
    use Mnemonic::*;
    [And, Cmovb, Cmp, Cmpxchg, Dec, Inc, Je, Jne, Jg, Jmp, Pause, Pop, Push, Shr, Syscall, Sub, Test, Xchg]
};

/// Instructions that prepare vector registers, or sum them up.
const OF_VECTORS: [Mnemonic; 12] = {
    use Mnemonic::*;
    [
        Movq,
        Pxor,
        Psrldq,
        Punpcklqdq,
        Sfence,
        Vextracti128,
        Vextracti64x4,
        Vmovq,
        Vpbroadcastq,
        Vpsrldq,
        Vpxor,
        Vzeroupper,
    ]
};

#[test]
fn waiting_loops_hold_the_named_instruction_and_no_other_store() {
    if !is_decoded() {
        return;
    }
    let (mut seen, machine) = (0, machines::here());
    for benchmark in SUITES.iter().flat_map(|suite| suite.benchmarks.iter().copied()) {
        for params in benchmark.cases_in(Extent::Thorough, &machine) {
            let Timed::Together { code, instruction, times } = (benchmark.timed)(&params) else {
                continue;
            };
            let named = Architecture::X86_64.spelling(instruction);
            let case = benchmark.case(params).to_string();
            let body = loop_body(&case, TimedLoop::Long(code));
            // Only moves to memory outside the loop's context count.
            let is_measured = |instruction: &&Instruction| {
                let stores = instruction.op0_kind() == OpKind::Memory && !is_own(instruction);
                mnemonic(instruction) == named && (named != "mov" || stores)
            };
            let measured = body.iter().filter(is_measured).count();
            assert_eq!(measured, times, "{case}: {}", listing(&body));
            for other in &body {
                let lists = [&PREPARATION[..], &WITHIN, &OF_VECTORS];
                let known = lists.iter().any(|list| list.contains(&other.mnemonic()));
                assert!(known || mnemonic(other) == named, "{case}: {}", listing(&body));
            }
            seen += 1;
        }
    }
    assert!(seen > 0, "no such loop");
}

/// Returns whether it accesses the loop's own context.
fn is_own(instruction: &Instruction) -> bool {
    instruction.memory_base() == Register::R13
}

/// Instructions that always leave the user's code.
const ENTRIES: [&str; 5] = ["syscall", "int", "int3", "hlt", "sysenter"];

#[test]
fn kernel_entries_are_called_and_the_empty_loop_makes_the_same_call() {
    if !is_decoded() {
        return;
    }
    let mut inline = Vec::new();
    for (case, code, named, _) in loops() {
        let TimedLoop::Long(code) = code else { continue };
        if !ENTRIES.contains(&named) {
            continue;
        }
        if !code.is_called() {
            inline.push(case);
            continue;
        }
        let [with, without] = [code, code.empty()].map(|code| one_iteration(TimedLoop::Long(code)));
        let flow = |code: &[Instruction]| {
            let is_own = |i: &&Instruction| matches!(i.mnemonic(), Mnemonic::Call | Mnemonic::Ret);
            code.iter().filter(is_own).map(mnemonic).collect::<Vec<_>>()
        };
        assert_eq!(flow(&with), ["call", "ret"], "{case}");
        assert_eq!(flow(&without), flow(&with), "{case}");
        assert_eq!(without.len(), 2, "{case}: {}", listing(&without));
    }
    // Their names say that they are inline.
    assert_eq!(inline, ["entry/libc{by=inline}", "entry/return{depth=0}"]);
}

/// All three store in the same way; they differ in the calls around the store.
#[test]
fn faults_are_met_below_a_call_each_in_a_loop_that_was_called_and_after_a_return() {
    if !is_decoded() {
        return;
    }
    let faults = loops().into_iter().filter(|(case, ..)| case.starts_with("traps/return{"));
    let mut seen = Vec::new();
    for (case, code, ..) in faults {
        let TimedLoop::Long(long) = code else { panic!("64-bit code") };
        let (body, all) = (loop_body(&case, code), decode(code));
        assert_eq!(
            listing(&body),
            listing(&body_of(crate::find("traps/cow-fault").expect("registered"))),
            "{case}"
        );
        // If the code before the loop jumps, it jumps to a return, which pops what was pushed.
        let jump = all.iter().find(|instruction| instruction.mnemonic() == Mnemonic::Jmp);
        let returns = jump.map(|jump| called(&case, *jump).is_empty());
        let pushed = all.iter().filter(|instruction| instruction.mnemonic() == Mnemonic::Push).count();
        seen.push((long.is_called(), returns, pushed - 6));
    }
    let [none, in_loop, each] = [(false, Some(true), 1), (false, None, 0), (true, None, 0)];
    assert_eq!(seen, [none, in_loop, each, none, in_loop, each]);
}

#[test]
fn the_empty_loops_are_empty() {
    if !is_decoded() {
        return;
    }
    for benchmark in OWN_BENCHMARKS.iter().filter(|benchmark| benchmark.name != own::CANARY) {
        let body = body_of(benchmark);
        assert!(body.is_empty(), "{}: {}", benchmark.name, listing(&body));
    }
}

#[test]
fn interrupts_are_by_the_vector_of_system_calls() {
    if !is_decoded() {
        return;
    }
    for name in ["entry/int80", "entry/int80-getpid", "entry/compat-int80"] {
        let benchmark = crate::find(name).expect("registered");
        let body = body_of(benchmark);
        let vectors: Vec<u8> =
            body.iter().filter(|i| i.code() == Code::Int_imm8).map(Instruction::immediate8).collect();
        assert_eq!(vectors, [0x80], "{name}");
    }
}

#[test]
fn both_sides_of_a_comparison_of_gates_run_the_same_code() {
    if !is_decoded() {
        return;
    }
    for benchmark in crate::entry::SUITE.benchmarks {
        let Some(base) = benchmark.baseline.benchmark().and_then(crate::find) else { continue };
        assert_eq!(listing(&body_of(benchmark)), listing(&body_of(base)), "{}", benchmark.name);
    }
}

#[test]
fn a_system_call_below_calls_is_at_their_depth_and_the_loop_without_it_makes_the_same_calls() {
    if !is_decoded() {
        return;
    }
    for depth in [8, 24] {
        let Some((with, without)) = crate::entry::returns::loops(depth) else { panic!("no loop of {depth}") };
        let [with, without] = [with, without].map(one_iteration);
        let entry: Vec<usize> =
            (0..with.len()).filter(|&at| with[at].mnemonic() == Mnemonic::Syscall).collect();
        let [entry] = entry[..] else { panic!("{} system calls", entry.len()) };
        let is = |flow: FlowControl| move |i: &&Instruction| i.flow_control() == flow;
        let (down, up) = with.split_at(entry);
        assert_eq!(down.iter().filter(is(FlowControl::Call)).count(), depth as usize, "{}", listing(&with));
        assert_eq!(down.iter().filter(is(FlowControl::Return)).count(), 0, "{}", listing(&with));
        assert_eq!(up.iter().filter(is(FlowControl::Return)).count(), depth as usize, "{}", listing(&with));
        let rest: Vec<Instruction> = with.into_iter().filter(|i| i.mnemonic() != Mnemonic::Syscall).collect();
        let mnemonics = |code: &[Instruction]| code.iter().map(mnemonic).collect::<Vec<_>>();
        assert_eq!(mnemonics(&rest), mnemonics(&without));
    }
}

/// Returns the instructions of one iteration in the order of execution, through calls and returns.
fn one_iteration(timed: TimedLoop) -> Vec<Instruction> {
    const MOST: usize = 200;
    let TimedLoop::Long(code) = timed else { panic!("64-bit code") };
    let body = loop_as_written("a loop with calls", timed);
    // SAFETY: the bytes lie in this program's own code; functions that the loop calls follow it directly.
    let bytes = unsafe { std::slice::from_raw_parts(code.address() as *const u8, 1024) };
    let at = |address: u64| {
        let offset = (address - code.address() as u64) as usize;
        Decoder::with_ip(64, &bytes[offset..], address, DecoderOptions::NONE).decode()
    };
    let (mut executed, mut stack, mut address) = (Vec::new(), Vec::new(), body[0].ip());
    while executed.len() < MOST {
        let instruction = at(address);
        if stack.is_empty() && instruction.mnemonic() == Mnemonic::Dec {
            return executed;
        }
        address = match instruction.flow_control() {
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Call => {
                stack.push(instruction.next_ip());
                instruction.near_branch_target()
            }
            FlowControl::Return => stack.pop().expect("a call"),
            _ => instruction.next_ip(),
        };
        executed.push(instruction);
    }
    panic!("no end in {}", listing(&executed))
}

fn body_of(benchmark: &Benchmark) -> Vec<Instruction> {
    match (benchmark.timed)(&(benchmark.cases)(&Topology::default())[0]) {
        Timed::Loop { code, .. } => loop_body(benchmark.name, code),
        Timed::Together { .. } => panic!("{} is not a straight loop", benchmark.name),
        Timed::Whole(interface) => panic!("{} is not a loop but {interface}", benchmark.name),
    }
}

/// Returns the instructions between a loop's start and its counter, or those before the return of a called body.
fn loop_body(name: &str, timed: TimedLoop) -> Vec<Instruction> {
    let body = loop_as_written(name, timed);
    let is_called = matches!(timed, TimedLoop::Long(code) if code.is_called());
    match body[..] {
        [call] if is_called => called(name, call),
        _ => {
            assert!(!is_called, "{name} does more than call its body: {}", listing(&body));
            body
        }
    }
}

/// Returns the instructions of the called function without its return.
fn called(name: &str, call: Instruction) -> Vec<Instruction> {
    assert!(matches!(call.mnemonic(), Mnemonic::Call | Mnemonic::Jmp), "{name}");
    // SAFETY: the bytes lie in this program's own code.
    let bytes = unsafe { std::slice::from_raw_parts(call.near_branch_target() as *const u8, 512) };
    let mut body = decode_bytes(64, bytes, call.near_branch_target());
    body.pop();
    body
}

fn loop_as_written(name: &str, timed: TimedLoop) -> Vec<Instruction> {
    let code = decode(timed);
    let back = code
        .iter()
        .rposition(|instruction| {
            instruction.is_jcc_short_or_near() && instruction.near_branch_target() < instruction.ip()
        })
        .unwrap_or_else(|| panic!("{name}: no loop in {}", listing(&code)));
    let first = code.iter().position(|instruction| instruction.ip() == code[back].near_branch_target());
    let first = first.unwrap_or_else(|| panic!("{name}: jumps into an instruction"));
    assert_eq!(code[back].mnemonic(), Mnemonic::Jne, "{name}");
    assert_eq!(code[back - 1].mnemonic(), Mnemonic::Dec, "{name}");
    code[first..back - 1].to_vec()
}

fn decode(timed: TimedLoop) -> Vec<Instruction> {
    let (bitness, bytes): (u32, &[u8]) = match timed {
        TimedLoop::Compat(code) => (32, code()),
        TimedLoop::Long(code) => {
            let start = code.address() as *const u8;
            // All naked functions here return within 512 bytes, and the program's code is longer than that.
            // SAFETY: the bytes lie in this program's own code.
            (64, unsafe { std::slice::from_raw_parts(start, 512) })
        }
    };
    let address = bytes.as_ptr() as u64;
    decode_bytes(bitness, bytes, if bitness == 32 { 0 } else { address })
}

fn decode_bytes(bitness: u32, bytes: &[u8], first: u64) -> Vec<Instruction> {
    // Some instructions are invalid on purpose and still have to be decoded.
    let options = DecoderOptions::NO_INVALID_CHECK;
    let mut decoder = Decoder::with_ip(bitness, bytes, first, options);
    let mut code = Vec::new();
    while decoder.can_decode() {
        let (at, position) = (decoder.ip(), decoder.position());
        let vector =
            bytes.get(position..).filter(|_| bitness == 64).and_then(|rest| vector::decode(rest, at));
        if let Some(instruction) = vector {
            decoder.set_position(position + instruction.len()).expect("within the bytes");
            decoder.set_ip(instruction.next_ip());
            code.push(instruction);
            continue;
        }
        let instruction = decoder.decode();
        assert!(!instruction.is_invalid(), "undecodable after {}", listing(&code));
        code.push(instruction);
        if instruction.flow_control() == FlowControl::Return {
            return code;
        }
    }
    panic!("no return in {}", listing(&code))
}

fn mnemonic(instruction: &Instruction) -> String {
    let lock = if instruction.has_lock_prefix() { "lock " } else { "" };
    format!("{lock}{:?}", instruction.mnemonic()).to_lowercase()
}

fn listing(code: &[Instruction]) -> String {
    let text = |instruction: &Instruction| match instruction.encoding() {
        EncodingKind::Legacy => instruction.to_string(),
        _ => mnemonic(instruction),
    };
    code.iter().map(text).collect::<Vec<_>>().join("; ")
}
