//! The ports: a serial port, and the one that ends the run.

const SERIAL: u16 = 0x3f8;
/// COM1: the line's control, whose bit 7 turns the data port into the divisor's.
const LINE_CONTROL: u16 = SERIAL + 3;
/// COM1: the line's state.
const LINE_STATUS: u16 = SERIAL + 5;
/// The transmitter is empty.
const READY: u8 = 0x60;
/// A byte to this port ends the run, as that of QEMU's isa-debug-exit.
const EXIT: u16 = 0xf4;
const MOST: usize = 16 << 20;

#[derive(Default)]
pub(super) struct Ports {
    pub(super) serial: Vec<u8>,
    line_control: u8,
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
    pub(super) fn read(&self, port: u16) -> u8 {
        match port {
            LINE_STATUS => READY,
            LINE_CONTROL => self.line_control,
            _ => 0xff,
        }
    }

    pub(super) fn write(&mut self, port: u16, byte: u8) -> Written {
        match port {
            EXIT => return Written::Exit,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divisor_is_not_sent() {
        let mut ports = Ports::default();
        for (port, byte) in [(0x3fb, 0x83), (0x3f8, 1), (0x3f9, 0), (0x3fb, 3), (0x3f8, b'x'), (0x21, 0xff)] {
            assert_eq!(ports.write(port, byte), Written::GoOn);
        }
        assert_eq!(ports.serial, b"x");
        assert_eq!(ports.write(0xf4, 0), Written::Exit);
    }
}
