//! The ports: a serial port, the interrupt controllers, the timer, the port that ends the run, and one by which a guest asks
//! to be told of instructions that the interpreter does not know.

use super::pic::Pics;
use super::pit::Pit;

const SERIAL: u16 = 0x3f8;
/// COM1's line control, whose bit 7 turns the data port into the divisor's.
const LINE_CONTROL: u16 = SERIAL + 3;
const LINE_STATUS: u16 = SERIAL + 5;
/// The transmitter is empty.
const READY: u8 = 0x60;
/// A byte to this port ends the run, as with QEMU's isa-debug-exit.
const EXIT: u16 = 0xf4;
/// A byte to this port, where no PC has a device, sets the vector of the interrupt that reports an unknown instruction in ring 3.
const UNKNOWN: u16 = 0xeb;
const TIMER: u8 = 0;
const MOST: usize = 16 << 20;

#[derive(Clone)]
pub(super) struct Ports {
    pub(super) serial: Vec<u8>,
    line_control: u8,
    pics: Pics,
    pit: Pit,
    /// When the processor must look here again, in virtual nanoseconds: 0 while an interrupt is requested.
    attention: u64,
    /// The vector that reports an unknown instruction, if the guest has set it.
    pub(super) unknown: Option<u8>,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            serial: Vec::new(),
            line_control: 0,
            pics: Pics::default(),
            pit: Pit::default(),
            attention: u64::MAX,
            unknown: None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    GoOn,
    Exit,
    /// More output than is kept.
    TooMuch,
}

impl Ports {
    /// Reads a byte. Other ports have no device and return ones.
    pub(super) fn read(&mut self, port: u16, now: u64) -> u8 {
        match port {
            0x20 | 0x21 | 0xa0 | 0xa1 => {
                let byte = self.pics.read(port);
                self.set_attention();
                byte
            }
            0x40 => self.pit.read(now),
            LINE_STATUS => READY,
            LINE_CONTROL => self.line_control,
            _ => 0xff,
        }
    }

    pub(super) fn write(&mut self, port: u16, byte: u8, now: u64) -> Written {
        match port {
            EXIT => return Written::Exit,
            UNKNOWN => self.unknown = Some(byte),
            0x20 | 0x21 | 0xa0 | 0xa1 => {
                self.pics.write(port, byte);
                self.set_attention();
            }
            0x40..=0x43 => {
                if let Some(high) = self.pit.write(port, byte, now) {
                    self.pics.set_line(TIMER, high);
                }
                self.set_attention();
            }
            SERIAL if self.line_control & 0x80 == 0 => {
                if self.serial.len() == MOST {
                    return Written::TooMuch;
                }
                self.serial.push(byte);
            }
            LINE_CONTROL => self.line_control = byte,
            _ => {}
        }
        Written::GoOn
    }

    #[inline]
    pub(super) fn attention(&self) -> u64 {
        self.attention
    }

    pub(super) fn due(&self) -> Option<u64> {
        self.pit.due()
    }

    /// Advances the timer to `now`; returns whether an interrupt is requested.
    pub(super) fn pass(&mut self, now: u64) -> bool {
        while self.pit.due().is_some_and(|due| due <= now) {
            let high = self.pit.look();
            self.pics.set_line(TIMER, high);
        }
        self.set_attention();
        self.pics.asks()
    }

    pub(super) fn acknowledge(&mut self) -> u8 {
        let vector = self.pics.acknowledge();
        self.set_attention();
        vector
    }

    fn set_attention(&mut self) {
        self.attention = if self.pics.asks() { 0 } else { self.pit.due().unwrap_or(u64::MAX) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divisor_is_not_sent() {
        let mut ports = Ports::default();
        for (port, byte) in [(0x3fb, 0x83), (0x3f8, 1), (0x3f9, 0), (0x3fb, 3), (0x3f8, b'x'), (0x21, 0xff)] {
            assert_eq!(ports.write(port, byte, 0), Written::GoOn);
        }
        assert_eq!(ports.serial, b"x");
        assert_eq!(ports.write(0xf4, 0, 0), Written::Exit);
    }
}
