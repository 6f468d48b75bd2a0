//! Programs in ring 3 under the lab's kernel.

use std::arch::global_asm;

use tollgate_lab::guest::{BASE, Image, Parameters};
use tollgate_lab::{Engine, Interpreter, Output};
use tollgate_x86::Vendor;

use super::{machine, program};

global_asm!(
    ".section .tg_interpreter_programs, \"a\", @progbits",
    include_str!("programs.s"),
    ".text",
    options(att_syntax, raw)
);

/// Flat programs, as an archive has them: loaded and entered at 40000000h.
fn archive(programs: &[&[u8]], options: u32) -> Vec<u8> {
    let count = programs.len();
    let mut bytes = b"tgprog\0\x01".to_vec();
    bytes.resize(64 + (64 + 40) * count, 0);
    bytes[12..16].copy_from_slice(&(count as u32).to_le_bytes());
    bytes[16..20].copy_from_slice(&options.to_le_bytes());
    for (at, code) in programs.iter().enumerate() {
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        let words = [0x4000_0000, 0, at as u64 | 1 << 32, 0];
        let head: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        bytes[64 + 64 * at + 24..64 + 64 * at + 56].copy_from_slice(&head);
        let words = [0x4000_0000, 0x2000, bytes.len() as u64, code.len() as u64, 7];
        let segment: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let begin = 64 + 64 * count + 40 * at;
        bytes[begin..begin + 40].copy_from_slice(&segment);
        bytes.extend(*code);
    }
    let total = bytes.len() as u32;
    bytes[8..12].copy_from_slice(&total.to_le_bytes());
    bytes
}

fn with_period(mut archive: Vec<u8>, period: u32) -> Vec<u8> {
    archive[20..24].copy_from_slice(&period.to_le_bytes());
    archive
}

fn run(archive: &[u8]) -> Output {
    let image = Image::with_programs(&Parameters::default(), archive);
    Interpreter.run(image.bytes(), BASE, image.entry(), machine(Vendor::Intel)).unwrap()
}

fn both(archive: &[u8]) -> (String, String) {
    let image = Image::with_programs(&Parameters::default(), archive);
    let ours = run(archive);
    let qemu = tollgate_lab::Qemu::find().unwrap();
    let theirs = qemu.run(image.bytes(), BASE, image.entry(), machine(Vendor::Intel)).unwrap();
    println!("{:?} {}", ours.cut_short, String::from_utf8_lossy(&ours.serial));
    println!("{:?} {}", theirs.cut_short, String::from_utf8_lossy(&theirs.serial));
    (String::from_utf8(ours.serial).unwrap(), String::from_utf8(theirs.serial).unwrap())
}

#[test]
fn one_program_says_hello_and_ends() {
    let hello = program!(tgr_hello, tgr_hello_end);
    let ways = program!(tgr_ways, tgr_ways_end);
    let count = program!(tgr_count, tgr_count_end);
    let threads = program!(tgr_threads, tgr_threads_end);
    let sleeper = program!(tgr_sleeper, tgr_sleeper_end);
    let strings = program!(tgr_strings, tgr_strings_end);
    both(&archive(&[hello], 0));
    both(&archive(&[ways], 0));
    both(&archive(&[strings], 0));
    both(&archive(&[threads], 0));
    both(&archive(&[sleeper], 0));
    for period in [2, 10, 50, 77] {
        both(&with_period(archive(&[count, count, hello, count, sleeper, threads], 0), period));
    }
}

/// xorshift64*
fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Numbers that programs may try: addresses of every kind, flags, selectors, numbers of calls.
const NUMBERS: [u64; 24] = [
    0, 1, 3, u64::MAX, 0x4000_0000, 0x4000_0080, 0x4000_1ff8, 0x4000_1fff, 0x7fff_f000, 0x7fff_eff8, 0x7fff_8000, 0x8000_0000,
    0x3fff_f000, 0x10_0000, 0x20_4000, 0x23_0400, 0x7fff_ffff_ffff, 0x8000_0000_0000, 0xffff_8000_0000_0000,
    0xffff_ffff_ffff_fff8, 0x2b, 0x1b, 0x23, 0x4000_0001,
];
const FLAGS: [u32; 10] = [0x100, 0x4000, 0x400, 0x4_0000, 0x200, 0x3000, 0x1_0000, 0x20_0000, 0x8d5, 0];

/// A program made of pieces that kernels have stumbled over.
fn wild(state: &mut u64) -> Vec<u8> {
    let mut code = Vec::new();
    while code.len() < 200 {
        let choice = random(state) >> 8;
        let number = NUMBERS[(random(state) >> 8) as usize % NUMBERS.len()];
        match choice % 20 {
            0..=4 => {
                // mov number, a register; rax is most often the number of a call
                let register = (random(state) >> 8) as u8 % 16;
                let number = if register == 0 { 1 + (choice >> 8) % 15 } else { number };
                code.extend([0x48 | register >> 3, 0xb8 | register & 7]);
                code.extend(number.to_le_bytes());
            }
            5 | 6 => {
                let flags = FLAGS[(random(state) >> 8) as usize % FLAGS.len()]
                    | FLAGS[(random(state) >> 8) as usize % FLAGS.len()];
                code.push(0x68);
                code.extend(flags.to_le_bytes());
                code.push(0x9d);
            }
            7 | 8 => code.extend([0x0f, 0x05]),
            9 => code.extend([0xcd, 0x80]),
            10 | 11 => {
                // A valid way back, most times: lea 2(%rip), %rdx; mov %rsp, %rcx
                if choice & 0x300 != 0 {
                    code.extend([0x48, 0x8d, 0x15, 5, 0, 0, 0, 0x48, 0x89, 0xe1]);
                }
                code.extend([0x0f, 0x34]);
            }
            12 => {
                // push $0x53; push $0; lcall *(%rsp)
                code.extend([0x6a, 0x53, 0x6a, 0, 0xc7, 0x44, 0x24, 4, 0x53, 0, 0, 0, 0xff, 0x1c, 0x24]);
            }
            13 => {
                // mov $selector, %eax; mov %eax, a segment register
                let selector = ((random(state) >> 8) % 14 * 8) as u8 | (choice >> 16) as u8 & 7;
                code.extend([0xb8, selector, 0, 0, 0, 0x8e, 0xc0 | ((choice >> 8) as u8 % 6) << 3]);
            }
            14 => {
                // push $cs; push $behind; lretq
                let at = 0x4000_0000 + code.len() as u32 + 9;
                code.extend([0x6a, if choice & 0x100 == 0 { 0x1b } else { 0x2b }, 0x68]);
                code.extend(at.to_le_bytes());
                code.extend([0x48, 0xcb]);
            }
            15 => code.extend([0xcd, (choice >> 8) as u8]),
            16 => {
                // A frame for IRETQ.
                code.extend([0x6a, 0x23, 0x54, 0x68]);
                code.extend((FLAGS[(choice >> 8) as usize % FLAGS.len()]).to_le_bytes());
                code.extend([0x6a, if choice & 0x100 == 0 { 0x1b } else { 0x2b }, 0x68]);
                code.extend((0x4000_0000 + code.len() as u32 + 6).to_le_bytes());
                code.extend([0x48, 0xcf]);
            }
            17 => code.extend([0xf3, [0xaa, 0xa4, 0xae, 0xa6][(choice >> 8) as usize % 4]]),
            18 => code.extend([0xf1]),
            _ => code.extend(random(state).to_le_bytes().iter().take(1 + (choice >> 8) as usize % 3)),
        }
    }
    code
}

#[test]
fn wild_bytes() {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let begin = std::time::Instant::now();
    let mut kinds = std::collections::BTreeMap::new();
    let rounds = std::env::var("ROUNDS").map_or(60, |r| r.parse().unwrap());
    let engine = std::env::var("ENGINE").is_ok();
    if let Ok(seed) = std::env::var("SEED") { state ^= seed.parse::<u64>().unwrap(); }
    for round in 0..rounds {
        let before = state;
        let programs: Vec<Vec<u8>> = (0..16).map(|_| wild(&mut state)).collect();
        let refs: Vec<&[u8]> = programs.iter().map(|p| p.as_slice()).collect();
        let mut archive = with_period(archive(&refs, 0), 2);
        if round % 2 == 1 { for at in 0..16 { archive[64 + 64 * at + 52] = 1; } }
        let image = Image::with_programs(&Parameters::default(), &archive);
        let vendor = if round % 3 == 0 { Vendor::Amd } else { Vendor::Intel };
        let m = tollgate_lab::Machine { instructions: 800_000, patience: std::time::Duration::from_secs(2), ..machine(vendor) };
        let output = if engine { tollgate_lab::Qemu::find().unwrap().run(image.bytes(), BASE, image.entry(), m).unwrap() } else { Interpreter.run(image.bytes(), BASE, image.entry(), m).unwrap() };
        let text = String::from_utf8_lossy(&output.serial).into_owned();
        if text.contains("broken") || output.cut_short.as_ref().is_some_and(|c| !c.contains("stopped after")) {
            println!("{round} {before:x} {:?} {}", output.cut_short, &text[text.len().saturating_sub(500)..]);
        }
        for u in output.unknown { *kinds.entry(format!("unknown {}", u.text.split(' ').next().unwrap())).or_insert(0) += 1; }
        for line in text.lines() {
            let w: Vec<&str> = line.split(' ').collect();
            let k = if w.len() > 4 && w[1] == "dead" { format!("dead {}", w[4]) } else { w.get(1).unwrap_or(&"-").to_string() };
            *kinds.entry(k).or_insert(0) += 1;
        }
        *kinds.entry(format!("{:?}", output.cut_short.map(|c| c[..20].to_owned()))).or_insert(0) += 1;
    }
    println!("{kinds:?} {:?}", begin.elapsed());
}
