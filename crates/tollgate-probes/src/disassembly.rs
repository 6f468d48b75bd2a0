//! What the timed loops contain is asserted, not hoped: every registered probe's loop is disassembled
//! and must hold the instruction that the probe names exactly once, and beside it nothing but the
//! loads that make it ready.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::bench::{OWN_PROBES, TimedLoop};
use crate::{Probe, SUITES};

/// Instructions that make a crossing ready or take its result.
const PREPARATION: [Mnemonic; 4] = [Mnemonic::Mov, Mnemonic::Lea, Mnemonic::Xor, Mnemonic::Add];

#[test]
fn every_timed_loop_holds_the_instruction_that_its_probe_names_exactly_once() {
    let mut seen = 0;
    for probe in SUITES.iter().flat_map(|suite| suite.probes.iter().copied().chain(suite.twin)) {
        let body = loop_body(probe);
        let named = |instruction: &&Instruction| mnemonic(instruction) == probe.instruction;
        assert_eq!(body.iter().filter(named).count(), 1, "{}: {}", probe.name, listing(&body));
        for other in body.iter().filter(|instruction| !named(instruction)) {
            assert!(PREPARATION.contains(&other.mnemonic()), "{}: {}", probe.name, listing(&body));
            assert_eq!(other.flow_control(), FlowControl::Next, "{}: {}", probe.name, listing(&body));
        }
        seen += 1;
    }
    assert!(seen > 10, "only {seen} probes");
}

#[test]
fn the_empty_loops_are_empty() {
    for probe in OWN_PROBES {
        let body = loop_body(probe);
        assert!(body.is_empty(), "{}: {}", probe.name, listing(&body));
    }
}

#[test]
fn interrupts_are_by_the_vector_of_system_calls() {
    for name in ["gates/int80", "gates/int80-getpid", "gates/compat-int80"] {
        let probe = crate::find(name).expect("registered");
        let body = loop_body(probe);
        let vectors: Vec<u8> =
            body.iter().filter(|i| i.code() == Code::Int_imm8).map(Instruction::immediate8).collect();
        assert_eq!(vectors, [0x80], "{name}");
    }
}

#[test]
fn both_sides_of_a_comparison_run_the_same_code() {
    for probe in SUITES.iter().flat_map(|suite| suite.probes) {
        let Some(base) = probe.against.and_then(crate::find) else { continue };
        assert_eq!(listing(&loop_body(probe)), listing(&loop_body(base)), "{}", probe.name);
    }
}

/// What lies between a loop's first instruction and its counter.
fn loop_body(probe: &Probe) -> Vec<Instruction> {
    let code = decode(probe.timed);
    let back = code
        .iter()
        .position(|instruction| {
            instruction.is_jcc_short_or_near() && instruction.near_branch_target() < instruction.ip()
        })
        .unwrap_or_else(|| panic!("{}: no loop in {}", probe.name, listing(&code)));
    let first = code.iter().position(|instruction| instruction.ip() == code[back].near_branch_target());
    let first = first.unwrap_or_else(|| panic!("{}: jumps into an instruction", probe.name));
    assert_eq!(code[back].mnemonic(), Mnemonic::Jne, "{}", probe.name);
    assert_eq!(code[back - 1].mnemonic(), Mnemonic::Dec, "{}", probe.name);
    code[first..back - 1].to_vec()
}

/// The instructions from the entry to the first return.
fn decode(timed: TimedLoop) -> Vec<Instruction> {
    let (bitness, bytes): (u32, &[u8]) = match timed {
        TimedLoop::Compat(code) => (32, code()),
        TimedLoop::Long(entry) => {
            let start = entry as *const u8;
            // A naked function is what was written: all of ours return within 512 bytes, and the
            // program's code goes on for longer than that.
            // SAFETY: the bytes lie in this program's own code.
            (64, unsafe { std::slice::from_raw_parts(start, 512) })
        }
    };
    let address = bytes.as_ptr() as u64;
    let decoder =
        Decoder::with_ip(bitness, bytes, if bitness == 32 { 0 } else { address }, DecoderOptions::NONE);
    let mut code = Vec::new();
    for instruction in decoder {
        assert!(!instruction.is_invalid(), "undecodable after {}", listing(&code));
        code.push(instruction);
        if instruction.flow_control() == FlowControl::Return {
            return code;
        }
    }
    panic!("no return in {}", listing(&code))
}

fn mnemonic(instruction: &Instruction) -> String {
    format!("{:?}", instruction.mnemonic()).to_lowercase()
}

fn listing(code: &[Instruction]) -> String {
    code.iter().map(|instruction| format!("{instruction}")).collect::<Vec<_>>().join("; ")
}
