//! Makes and runs archives of flat programs.

use std::arch::global_asm;

use tollgate_lab::guest::{BASE, Image, Parameters, Record, Report, Serial};
use tollgate_lab::{Engine, Interpreter, Machine, Output};
use tollgate_x86::Vendor;

use super::super::machine;

global_asm!(
    ".section .tg_interpreter_programs, \"a\", @progbits",
    include_str!("../programs.s"),
    ".text",
    options(att_syntax, raw)
);

/// A program that is loaded and entered at 40000000h.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flat {
    pub(crate) code: Vec<u8>,
    pub(crate) flags: u32,
}

/// Takes a program from `programs.s`.
macro_rules! flat {
    ($name:ident) => {
        $crate::programs::kit::Flat {
            code: {
                unsafe extern "C" {
                    #[link_name = concat!("tgr_", stringify!($name))]
                    static BEGIN: u8;
                    #[link_name = concat!("tgr_", stringify!($name), "_end")]
                    static END: u8;
                }
                // SAFETY: the symbols are the program's first byte and the one after its last, in one section.
                unsafe {
                    let (begin, end) = (&raw const BEGIN, &raw const END);
                    std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)).to_vec()
                }
            },
            flags: 0,
        }
    };
}
pub(crate) use flat;

/// The bytes of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Archive(pub(crate) Vec<u8>);

fn words(words: &[u64]) -> impl Iterator<Item = u8> {
    words.iter().flat_map(|word| word.to_le_bytes())
}

impl Archive {
    pub(crate) fn new(programs: &[Flat]) -> Self {
        let count = programs.len();
        let mut archive = Self(b"tgprog\0\x01".to_vec());
        archive.0.resize(64 + (64 + 40) * count, 0);
        archive.set(12, count as u32);
        for (at, Flat { code, flags }) in programs.iter().enumerate() {
            let begins = archive.0.len().next_multiple_of(16);
            archive.0.resize(begins, 0);
            archive.0.extend(code);
            let head = [0x4000_0000, 0, at as u64 | 1 << 32, u64::from(*flags) << 32];
            archive.0.splice(64 + 64 * at + 24..64 + 64 * at + 56, words(&head));
            let segment = [0x4000_0000, 0x2000, begins as u64, code.len() as u64, 7];
            let place = 64 + 64 * count + 40 * at;
            archive.0.splice(place..place + 40, words(&segment));
        }
        archive.set(8, archive.0.len() as u32);
        archive
    }

    pub(crate) fn set(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn set_options(&mut self, options: u32) {
        self.set(16, options);
    }

    pub(crate) fn set_period(&mut self, counts: u32) {
        self.set(20, counts);
    }
}

pub(crate) fn image(archive: &Archive) -> Image {
    Image::with_programs(&Parameters::default(), &archive.0)
}

pub(crate) fn run(archive: &Archive, vendor: Vendor) -> Output {
    run_on(archive, machine(vendor))
}

pub(crate) fn run_on(archive: &Archive, machine: Machine) -> Output {
    let image = image(archive);
    Interpreter.run(image.bytes(), BASE, image.entry(), machine).unwrap()
}

pub(crate) fn serial(output: &Output) -> Serial {
    let serial = Serial::read(&output.serial);
    assert_eq!(serial.complaints, []);
    serial
}

/// Those of programs.
pub(crate) fn reports(records: &[Record]) -> Vec<Report> {
    let report = |record: &Record| match record {
        Record::Program(report) => Some(*report),
        _ => None,
    };
    records.iter().filter_map(report).collect()
}
