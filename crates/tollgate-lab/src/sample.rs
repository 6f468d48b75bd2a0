//! Small guests for the engines' tests.

use std::time::Duration;

use crate::{Engine, Machine, Output};

pub(crate) const BASE: u64 = 0x10_0000;
const HEADER: u32 = 32;

/// Makes a flat image of a multiboot header and code, and returns it with its entry.
pub(crate) fn bootable(code: &[u8]) -> (Vec<u8>, u64) {
    const MAGIC: u32 = 0x1bad_b002;
    const HAS_ADDRESSES: u32 = 1 << 16;
    let base = u32::try_from(BASE).unwrap();
    let checksum = MAGIC.wrapping_add(HAS_ADDRESSES).wrapping_neg();
    // The addresses of the header, the image, its end and the end of its bss (0: the file's), and the entry.
    let header = [MAGIC, HAS_ADDRESSES, checksum, base, base, 0, 0, base + HEADER];
    let mut image: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.extend(code);
    (image, BASE + u64::from(HEADER))
}

/// Writes [`SAID`] and ends with 7; ends at once if it was not entered as multiboot specifies.
#[rustfmt::skip]
pub(crate) const HELLO: &[u8] = &[
    0x3d, 0x02, 0xb0, 0xad, 0x2b, // cmp eax, 0x2badb002
    0x75, 0x1e,                   // jne end
    0xbe, 0x4a, 0x00, 0x10, 0x00, // mov esi, said
    0xfc,                         // cld
                                  // next:
    0xac,                         // lodsb
    0x84, 0xc0,                   // test al, al
    0x74, 0x13,                   // jz end
    0x88, 0xc3,                   // mov bl, al
                                  // wait:
    0xba, 0xfd, 0x03, 0x00, 0x00, // mov edx, 0x3fd
    0xec,                         // in al, dx
    0xa8, 0x20,                   // test al, 0x20
    0x74, 0xf6,                   // jz wait
    0x88, 0xd8,                   // mov al, bl
    0xb2, 0xf8,                   // mov dl, 0xf8
    0xee,                         // out dx, al
    0xeb, 0xe8,                   // jmp next
                                  // end:
    0xb0, 0x07,                   // mov al, 7
    0xe6, 0xf4,                   // out 0xf4, al
    0xf4,                         // hlt
                                  // said:
    b'i', b'n', b' ', b'f', b'l', b'a', b't', b' ', b'm', b'o', b'd', b'e', b'\n', 0,
];
pub(crate) const SAID: &[u8] = b"in flat mode\n";
/// An endless loop: jmp to itself.
pub(crate) const LOOP: &[u8] = &[0xeb, 0xfe];
/// An endless loop that exits at every iteration: in al, 0x21; jmp.
pub(crate) const LOOP_OF_EXITS: &[u8] = &[0xe4, 0x21, 0xeb, 0xfc];
/// An endless loop that writes at every iteration: mov dx, 0x3f8; out dx, al; jmp to the out.
pub(crate) const CHATTER: &[u8] = &[0x66, 0xba, 0xf8, 0x03, 0xee, 0xeb, 0xfd];
/// A fault without an IDT, so a triple fault: lidt of six zeroes at address 0; ud2.
pub(crate) const FAULT: &[u8] = &[0x0f, 0x01, 0x1d, 0, 0, 0, 0, 0x0f, 0x0b];
/// Halts with interrupts off.
pub(crate) const HALT: &[u8] = &[0xf4];
/// Ends at once, with 0: mov al, 0; out 0xf4, al; jmp to itself.
pub(crate) const END: &[u8] = &[0xb0, 0, 0xe6, 0xf4, 0xeb, 0xfe];

pub(crate) fn machine(patience: Duration) -> Machine {
    Machine { memory: 16 << 20, vendor: None, patience, instructions: 1 << 30 }
}

/// Runs a test in a process of its own, because other tests make threads, descriptors and children. Returns whether
/// this is that process.
pub(crate) fn is_alone(test: &str) -> bool {
    const ALONE: &str = "TOLLGATE_LAB_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    assert!(command.status().unwrap().success());
    false
}

/// Longer than anything here that ends by itself.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn run(engine: &impl Engine, code: &[u8], patience: Duration) -> Output {
    let (image, entry) = bootable(code);
    engine.run(&image, BASE, entry, machine(patience)).unwrap()
}
