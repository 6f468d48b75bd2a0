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
    both(&archive(&[count, count, hello, count], 0));
}
