use tollgate_x86::Field;

use crate::number::{number, strip_prefix, word};
use crate::{kd_layouts::Layout, piece::What};

const SIZE: usize = 104;

#[derive(Debug)]
pub(crate) struct Structure {
    layout: &'static Layout,
    address: Option<u64>,
    line: usize,
    bytes: [u8; SIZE],
    /// Mask of the known bits of `bytes`.
    known: [u8; SIZE],
}

impl Structure {
    pub(crate) fn new(layout: &'static Layout, address: Option<u64>, line: usize) -> Self {
        Self { layout, address, line, bytes: [0; SIZE], known: [0; SIZE] }
    }

    pub(crate) fn line(&self) -> usize {
        self.line
    }

    pub(crate) fn is_of(&self, layout: &Layout) -> bool {
        self.layout.name == layout.name
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.known.iter().any(|&known| known != 0)
    }

    /// Sets a field to the value at the beginning of a text, if the structure has the field and the value fits.
    pub(crate) fn set(&mut self, name: &str, text: &str) {
        let (Some((first, count)), Some(value)) = (self.layout.field(name), value(text)) else { return };
        if count < 64 && value >> count != 0 {
            return;
        }
        for bit in 0..count {
            let (byte, mask) = ((first + bit) / 8, 1 << ((first + bit) % 8));
            self.known[byte] |= mask;
            if value >> bit & 1 == 1 {
                self.bytes[byte] |= mask;
            }
        }
    }

    fn stretches(&self) -> Vec<(usize, Vec<u8>)> {
        let mut stretches: Vec<(usize, Vec<u8>)> = Vec::new();
        for (at, _) in self.known.iter().enumerate().filter(|(_, known)| **known == 0xff) {
            match stretches.last_mut() {
                Some((first, bytes)) if *first + bytes.len() == at => bytes.push(self.bytes[at]),
                _ => stretches.push((at, vec![self.bytes[at]])),
            }
        }
        stretches
    }

    pub(crate) fn pieces(&self) -> Vec<What> {
        let mut pieces = vec![What::Form(self.layout.form)];
        if let (None, Some(fields)) = (self.address, self.layout.tss) {
            pieces.extend(self.tss_fields(fields));
            return pieces;
        }
        for (at, bytes) in self.stretches() {
            match self.address {
                Some(address) => {
                    let address = address.checked_add(at as u64);
                    let last = bytes.len() as u64 - 1;
                    if address.is_some_and(|first| first.checked_add(last).is_some()) {
                        pieces.push(What::Bytes { address, bytes });
                    }
                }
                // Part of an entry is not an entry.
                None if at == 0 && matches!(bytes.len(), 8 | 16) => {
                    pieces.push(What::Bytes { address: None, bytes });
                }
                None => {}
            }
        }
        pieces
    }

    /// Returns the fields of a TSS at an unknown address, by the manuals' names.
    fn tss_fields(&self, fields: &'static [Field]) -> impl Iterator<Item = What> {
        fields.iter().filter_map(|field| {
            let range = field.offset..field.offset + field.size;
            let is_known = self.known[range].iter().all(|&known| known == 0xff);
            let value = field.read(&self.bytes).filter(|_| is_known)?;
            Some(What::TssField { name: field.name, value })
        })
    }
}

fn value(text: &str) -> Option<u64> {
    let (word, _) = word(text);
    if let Some(bits) = word.strip_prefix("0y") {
        return u64::from_str_radix(bits, 2).ok().filter(|_| !bits.starts_with('+'));
    }
    let decimal = word.strip_prefix("0n").unwrap_or(word);
    match strip_prefix(word) {
        Some(_) => Some(number(word)?.value),
        None => decimal.bytes().all(|byte| byte.is_ascii_digit()).then(|| decimal.parse().ok())?,
    }
}
