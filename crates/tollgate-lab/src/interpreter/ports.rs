//! The ports: a serial port, the interrupt controllers, the timer, the port that ends the run, and one by which a guest asks
//! to be told of instructions that the interpreter does not know.

use super::pic::Pics;
use super::pit::Pit;

const SERIAL: u16 = 0x3f8;
/// COM1: the line's control, whose bit 7 turns the data port into the divisor's.
const LINE_CONTROL: u16 = SERIAL + 3;
/// COM1: the line's state.
const LINE_STATUS: u16 = SERIAL + 5;
/// The transmitter is empty.
const READY: u8 = 0x60;
/// A byte to this port ends the run, as that of QEMU's isa-debug-exit.
const EXIT: u16 = 0xf4;
/// A byte to this port, which no PC has a device at, is the vector of the interrupt that tells the guest of an unknown instruction in ring 3.
const UNKNOWN: u16 = 0xeb;
/// The input of the first interrupt controller that the timer is connected to.
const TIMER: u8 = 0;
const MOST: usize = 16 << 20;

#[derive(Clone)]
pub(super) struct Ports {
    pub(super) serial: Vec<u8>,
    line_control: u8,
    pics: Pics,
    pit: Pit,
    /// When the processor is to look here again, in virtual nanoseconds: 0 where an interrupt is asked for.
    attention: u64,
    /// The vector of the interrupt that tells of an unknown instruction, where the guest takes it.
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
    /// The next instruction.
    GoOn,
    /// The end of the run.
    Exit,
    /// The end of what is kept.
    TooMuch,
}

impl Ports {
    /// A byte is read. Other ports have no device, which gives ones.
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

    /// When the processor is to look here again.
    #[inline]
    pub(super) fn attention(&self) -> u64 {
        self.attention
    }

    /// When the timer's output changes next.
    pub(super) fn due(&self) -> Option<u64> {
        self.pit.due()
    }

    /// Lets the timer come to this time. Whether an interrupt is asked for.
    pub(super) fn pass(&mut self, now: u64) -> bool {
        while self.pit.due().is_some_and(|due| due <= now) {
            let high = self.pit.look();
            self.pics.set_line(TIMER, high);
        }
        self.set_attention();
        self.pics.asks()
    }

    /// The vector of the interrupt that is served from now on.
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
