//! Programs of random bytes, and of pieces that have broken kernels: the kernel must survive them.

use std::time::Duration;

use tollgate_lab::Machine;
use tollgate_lab::guest::{Ending, Outcomes, Record, Report};
use tollgate_x86::Vendor;

use super::super::machine;
use super::kit::{Archive, Flat, flat, reports, run_on, serial};

/// Numbers that a program may try: addresses of every kind, flags, selectors.
const NUMBERS: [u64; 24] = [
    0,
    1,
    3,
    u64::MAX,
    0x4000_0000,
    0x4000_0080,
    0x4000_1ff8,
    0x4000_1fff,
    0x7fff_f000,
    0x7fff_eff8,
    0x7fff_8000,
    0x8000_0000,
    0x3fff_f000,
    0x10_0000,
    0x20_4000,
    0x23_0400,
    0x7fff_ffff_ffff,
    0x8000_0000_0000,
    0xffff_8000_0000_0000,
    0xffff_ffff_ffff_fff8,
    0x2b,
    0x1b,
    0x23,
    0x4000_0001,
];
/// TF, NT, DF, AC, IF, IOPL, RF, ID, the arithmetic flags, and none.
const FLAGS: [u32; 10] = [0x100, 0x4000, 0x400, 0x4_0000, 0x200, 0x3000, 0x1_0000, 0x20_0000, 0x8d5, 0];

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn code_segment(&mut self) -> u8 {
        self.choose(&[0x1b, 0x2b])
    }
}

/// Makes one piece for an address.
fn piece(random: &mut Random, at: u32) -> Vec<u8> {
    let mut code = Vec::new();
    match random.below(20) {
        0..=4 => {
            // mov of a number to a register; to rax usually the number of a system call.
            let register = random.below(16) as u8;
            let number = if register == 0 { 1 + random.below(15) } else { random.choose(&NUMBERS) };
            code.extend([0x48 | register >> 3, 0xb8 | register & 7]);
            code.extend(number.to_le_bytes());
        }
        5 | 6 => {
            // push; popf
            code.push(0x68);
            code.extend((random.choose(&FLAGS) | random.choose(&FLAGS)).to_le_bytes());
            code.push(0x9d);
        }
        7 | 8 => code.extend([0x0f, 0x05]),
        9 => code.extend([0xcd, 0x80]),
        10 | 11 => {
            // lea next(%rip), %rdx; mov %rsp, %rcx, most times; sysenter
            if random.below(4) != 0 {
                code.extend([0x48, 0x8d, 0x15, 5, 0, 0, 0, 0x48, 0x89, 0xe1]);
            }
            code.extend([0x0f, 0x34]);
        }
        // push $0x53; push $0; movl $0x53, 4(%rsp); lcall *(%rsp)
        12 => code.extend([0x6a, 0x53, 0x6a, 0, 0xc7, 0x44, 0x24, 4, 0x53, 0, 0, 0, 0xff, 0x1c, 0x24]),
        13 => {
            // mov of a selector to a segment register
            let selector = random.below(112) as u8;
            code.extend([0xb8, selector, 0, 0, 0, 0x8e, 0xc0 | (random.below(6) as u8) << 3]);
        }
        14 => {
            // push of a code segment and of the next address; lretq
            code.extend([0x6a, random.code_segment(), 0x68]);
            code.extend((at + 9).to_le_bytes());
            code.extend([0x48, 0xcb]);
        }
        15 => code.extend([0xcd, random.next() as u8]),
        16 => {
            // a frame, and iretq
            code.extend([0x6a, 0x23, 0x54, 0x68]);
            code.extend(random.choose(&FLAGS).to_le_bytes());
            code.extend([0x6a, random.code_segment(), 0x68]);
            code.extend((at + 17).to_le_bytes());
            code.extend([0x48, 0xcf]);
        }
        17 => code.extend([0xf3, random.choose(&[0xaa, 0xa4, 0xae, 0xa6])]),
        18 => code.extend([0xf1]),
        _ => code.extend(random.next().to_le_bytes().iter().take(3)),
    }
    code
}

fn of_pieces(random: &mut Random) -> Vec<u8> {
    let mut code = Vec::new();
    while code.len() < 200 {
        let at = 0x4000_0000 + code.len() as u32;
        code.extend(piece(random, at));
    }
    code
}

fn of_bytes(random: &mut Random) -> Vec<u8> {
    (0..100).map(|_| random.next() as u8).collect()
}

/// Runs fifteen of them under the timer, and one that does nothing wrong: the kernel must write its last record, unless the
/// instruction limit ends the run.
fn survives(round: u64, make: fn(&mut Random) -> Vec<u8>) {
    let mut random = Random(0x1234_5678_9abc_def1 ^ round << 40);
    // Odd rounds have IOPL 3, and every other pair of rounds 32-bit code.
    let flags = (round % 4) as u32;
    let mut programs: Vec<Flat> = (0..15).map(|_| Flat { code: make(&mut random), flags }).collect();
    programs.push(flat!(hello));
    let mut archive = Archive::new(&programs);
    archive.set_period(2);
    // Without records of registers.
    archive.set_options(0x4000);
    let vendor = if round.is_multiple_of(3) { Vendor::Amd } else { Vendor::Intel };
    let machine = Machine { instructions: 1_000_000, patience: Duration::from_secs(60), ..machine(vendor) };
    let output = run_on(&archive, machine);
    let records = serial(&output).records;
    let broken = records.iter().any(|record| matches!(record, Record::Broken { .. }));
    assert!(!broken, "round {round}: {:?}", records.last());
    match &output.cut_short {
        None => assert_eq!(Outcomes::of(&records).ending, Ending::Complete, "round {round}"),
        Some(why) => assert!(why.starts_with("stopped after 1000000 instructions"), "round {round}: {why}"),
    }
    let reports = reports(&records);
    let hello =
        |report: &Report| matches!(report, Report::Exit { thread, status: 42, .. } if thread.program == 15);
    // Programs that may disable interrupts may keep the processor, and they may use the ports.
    assert!(flags & 1 == 1 || reports.iter().any(hello), "round {round}");
}

#[test]
fn bytes() {
    (0..8).for_each(|round| survives(2 * round, of_bytes));
}

#[test]
fn pieces() {
    (0..12).for_each(|round| survives(round, of_pieces));
}
