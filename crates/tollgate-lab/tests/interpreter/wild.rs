//! Random bytes as programs in ring 3. They must harm neither the kernel nor the well-behaved program that runs with them.

#![allow(clippy::panic, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;

use tollgate_lab::EngineChoice;
use tollgate_lab::system::{Cause, Control, End, Options, Program, Ran, Timer, run};

/// Random programs of a machine.
const TOGETHER: usize = 15;
/// Limit of instructions of a machine: enough for the well-behaved program if others never end.
const INSTRUCTIONS: u64 = 250_000;
/// The limit if they write as much as they may.
const MORE: u64 = 20_000_000;

/// Writes "well" and yields three times, then exits with 42.
const SENTINEL: &[u8] = &[
    0xbb, 3, 0, 0, 0, // mov $3, %ebx
    0xb8, 1, 0, 0, 0, // 1: mov $1, %eax
    0x48, 0x8d, 0x3d, 31, 0, 0, 0, // lea text(%rip), %rdi
    0xbe, 4, 0, 0, 0, // mov $4, %esi
    0x0f, 0x05, // syscall
    0xb8, 3, 0, 0, 0, // mov $3, %eax
    0xcd, 0x80, // int $0x80
    0xff, 0xcb, // dec %ebx
    0x75, 0xe2, // jnz 1b
    0x31, 0xc0, // xor %eax, %eax
    0xbf, 42, 0, 0, 0, // mov $42, %edi
    0x0f, 0x05, // syscall
    0x0f, 0x0b, // ud2
    0x90, 0x90, b'w', b'e', b'l', b'l',
];

/// xorshift64*: the same programs in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Makes a program of random bytes. Some begin like real programs: with a system call, or with registers that mean
    /// something to one.
    fn program(&mut self) -> Program {
        let mut code = Vec::new();
        match self.next() % 4 {
            // mov $call, %eax; mov $address, %rdi; mov $bytes, %esi; mov $rights, %r8d; and one of the four entries
            0 => self.call(&mut code),
            // Flags that a program may change: push $flags; popf
            1 => {
                code.push(0x68);
                code.extend((self.next() as u32 & 0x7f_ffff).to_le_bytes());
                code.push(0x9d);
            }
            _ => {}
        }
        let length = 8 + self.next() % 200;
        code.extend((0..length).map(|_| self.next() as u8));
        let mut program = Program::flat("wild", &code).unwrap();
        program.argument = self.next() as u32;
        program.is_32_bit = self.next().is_multiple_of(4);
        program
    }

    fn call(&mut self, code: &mut Vec<u8>) {
        code.push(0xb8);
        code.extend((self.next() as u32 % 16).to_le_bytes());
        code.extend([0x48, 0xbf]);
        let address = match self.next() % 4 {
            0 => 0x4000_0000 + self.next() % 0x3000,
            1 => 0x7fff_0000 + self.next() % 0x1_0000,
            2 => self.next() % 0x100_0000,
            _ => self.next(),
        };
        code.extend(address.to_le_bytes());
        code.push(0xbe);
        code.extend((self.next() as u32 % 0x2000).to_le_bytes());
        code.extend([0x41, 0xb8, self.next() as u8 & 7, 0, 0, 0]);
        match self.next() % 3 {
            0 => code.extend([0x0f, 0x05]),
            1 => code.extend([0xcd, 0x80]),
            _ => code.extend([0x0f, 0x34]),
        }
    }
}

fn sentinel() -> Program {
    Program::flat("sentinel", SENTINEL).unwrap()
}

/// Runs machine after machine; returns how many programs ended in each way.
fn wild(programs: usize, seed: u64) -> BTreeMap<String, usize> {
    let mut random = Random(seed);
    let mut ends = BTreeMap::new();
    for machine in 0..programs.div_ceil(TOGETHER) {
        let mut all: Vec<Program> = (0..TOGETHER).map(|_| random.program()).collect();
        // First, last, or anywhere between.
        let place = machine % (TOGETHER + 1);
        all.insert(place, sentinel());
        let run = |instructions| {
            let options = Options { timer: Timer::Counts(2), instructions, ..Options::default() };
            run(&all, EngineChoice::Interpreter, options).unwrap()
        };
        let mut ran = run(INSTRUCTIONS);
        if ran.cut_short.is_some() && ran.programs[place].is_empty() {
            ran = run(MORE);
        }
        check(&ran, place, machine);
        for (at, controls) in ran.programs.iter().enumerate().filter(|(at, _)| *at != place) {
            *ends.entry(end(&ran, at, controls)).or_insert(0) += 1;
        }
    }
    ends
}

/// Checks that the kernel ended or the instruction limit stopped it, and that the sentinel did all its work.
fn check(ran: &Ran, place: usize, machine: usize) {
    assert_eq!(ran.broken, None, "machine {machine}");
    assert_eq!(ran.complaints, [], "machine {machine}");
    assert_eq!(ran.unloaded, [], "machine {machine}");
    if let Some(why) = &ran.cut_short {
        assert!(
            why.starts_with(&format!("stopped after {INSTRUCTIONS} instructions")),
            "machine {machine}: {why}"
        );
    }
    assert_eq!(ran.output(place), b"wellwellwell", "machine {machine}");
    let controls = &ran.programs[place][..];
    assert!(
        matches!(controls, [Control { number: 0, end: End::Exit { status: 42, calls: 7, .. } }]),
        "machine {machine}: {controls:?}"
    );
}

fn end(ran: &Ran, at: usize, controls: &[Control]) -> String {
    let fault = |cause| match cause {
        Cause::Exception { vector, .. } => format!("vector {vector}"),
        Cause::Unknown => "unknown".to_owned(),
    };
    match controls.first() {
        _ if ran.fault(at).is_some() => ran.fault(at).map(|it| fault(it.cause)).unwrap_or_default(),
        Some(Control { end: End::Exit { .. }, .. }) => "exit".to_owned(),
        Some(_) => "stuck".to_owned(),
        None => "bound".to_owned(),
    }
}

#[test]
fn wild_programs_end_and_others_go_on() {
    let ends = wild(300, 0x1234_5678_9abc_def1);
    println!("{ends:?}");
    for kind in ["exit", "bound", "vector 6", "vector 13", "vector 14"] {
        assert!(ends.contains_key(kind), "{kind}: {ends:?}");
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn ten_thousand_wild_programs_end_and_others_go_on() {
    println!("{:?}", wild(10_000, 0x0fed_cba9_8765_4321));
}
