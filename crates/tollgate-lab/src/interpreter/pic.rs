//! The two 8259A interrupt controllers: initialisation, priorities, the end of an interrupt. Edge-triggered only; rotation
//! and the special modes are not modelled. Source: Intel, "8259A Programmable Interrupt Controller".

/// The input of the first controller that the second is connected to.
const CASCADE: u8 = 2;

#[derive(Debug, Clone, Default)]
pub(super) struct Pics([Pic; 2]);

#[derive(Debug, Clone, Default)]
struct Pic {
    lines: u8,
    /// Requested, masked, and served inputs, one bit each.
    requests: u8,
    mask: u8,
    served: u8,
    base: u8,
    next: Next,
    wants_icw4: bool,
    is_single: bool,
    ends_by_itself: bool,
    /// OCW3: the next read of the first port returns the served interrupts.
    reads_served: bool,
    /// OCW3: the next read acknowledges an interrupt.
    polls: bool,
}

/// The meaning of the next byte to the second port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    /// The mask.
    #[default]
    Ocw1,
    Icw2,
    Icw3,
    Icw4,
}

impl Pic {
    fn set_line(&mut self, input: u8, high: bool) {
        let bit = 1 << input;
        if !high {
            self.lines &= !bit;
        } else if self.lines & bit == 0 {
            self.lines |= bit;
            self.requests |= bit;
        }
    }

    /// Returns the requested input of the highest priority, which is the lowest number, if no served input is at or above it.
    fn next(&self) -> Option<u8> {
        let asks = self.requests & !self.mask;
        let input = asks.trailing_zeros() as u8;
        (asks != 0 && u32::from(input) < self.served.trailing_zeros()).then_some(input)
    }

    fn acknowledge(&mut self, input: u8) {
        let bit = 1 << input;
        self.requests &= !bit;
        if !self.ends_by_itself {
            self.served |= bit;
        }
    }

    fn write_first(&mut self, byte: u8) {
        if byte & 0x10 != 0 {
            // ICW1 resets everything, including edges.
            *self = Self {
                next: Next::Icw2,
                wants_icw4: byte & 1 != 0,
                is_single: byte & 2 != 0,
                ..Self::default()
            };
        } else if byte & 8 != 0 {
            self.polls = byte & 4 != 0;
            if byte & 2 != 0 {
                self.reads_served = byte & 1 != 0;
            }
        } else {
            match byte >> 5 {
                // Ends the interrupt of the highest priority, or the named one.
                1 | 5 => self.served &= self.served.wrapping_sub(1),
                3 | 7 => self.served &= !(1 << (byte & 7)),
                _ => {}
            }
        }
    }

    fn write_second(&mut self, byte: u8) {
        let behind_icw3 = if self.wants_icw4 { Next::Icw4 } else { Next::Ocw1 };
        self.next = match self.next {
            Next::Ocw1 => {
                self.mask = byte;
                Next::Ocw1
            }
            Next::Icw2 => {
                self.base = byte & 0xf8;
                if self.is_single { behind_icw3 } else { Next::Icw3 }
            }
            Next::Icw3 => behind_icw3,
            Next::Icw4 => {
                self.ends_by_itself = byte & 2 != 0;
                Next::Ocw1
            }
        };
    }

    fn read_first(&mut self) -> u8 {
        if std::mem::take(&mut self.polls) {
            return match self.next() {
                Some(input) => {
                    self.acknowledge(input);
                    0x80 | input
                }
                None => 0,
            };
        }
        if self.reads_served { self.served } else { self.requests }
    }
}

impl Pics {
    pub(super) fn set_line(&mut self, input: u8, high: bool) {
        self.0[0].set_line(input, high);
    }

    #[inline]
    pub(super) fn asks(&self) -> bool {
        self.0[0].next().is_some()
    }

    /// Returns the vector of the interrupt that is now served. Nothing is connected to the second controller. If the request
    /// is gone, the vector is that of input 7, a spurious interrupt.
    pub(super) fn acknowledge(&mut self) -> u8 {
        let [first, _] = &mut self.0;
        let Some(input) = first.next() else { return first.base | 7 };
        first.acknowledge(input);
        first.base | input
    }

    pub(super) fn read(&mut self, port: u16) -> u8 {
        let pic = &mut self.0[usize::from(port >= 0xa0)];
        if port & 1 == 0 { pic.read_first() } else { pic.mask }
    }

    pub(super) fn write(&mut self, port: u16, byte: u8) {
        let [first, second] = &mut self.0;
        let pic = if port >= 0xa0 { second } else { first };
        if port & 1 == 0 {
            pic.write_first(byte)
        } else {
            pic.write_second(byte)
        }
        let asks = self.0[1].next().is_some();
        self.0[0].set_line(CASCADE, asks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Pics {
        let mut pics = Pics::default();
        for (port, byte) in [(0x20, 0x11), (0x21, 0x20), (0x21, 4), (0x21, 1), (0x21, 0xfe)] {
            pics.write(port, byte);
        }
        pics
    }

    #[test]
    fn an_edge_is_served_once() {
        let mut pics = ready();
        pics.set_line(0, true);
        assert!(pics.asks());
        assert_eq!((pics.acknowledge(), pics.asks()), (0x20, false));
        pics.set_line(0, false);
        pics.set_line(0, true);
        assert!(!pics.asks(), "the first one has not ended");
        pics.write(0x20, 0x20);
        assert!(pics.asks());
    }

    #[test]
    fn a_mask_holds_back_and_an_initialisation_forgets() {
        let mut pics = ready();
        pics.write(0x21, 0xff);
        pics.set_line(0, true);
        assert!(!pics.asks());
        assert_eq!((pics.read(0x20), pics.read(0x21)), (1, 0xff));
        pics.write(0x21, 0xfe);
        assert!(pics.asks());
        pics.write(0x20, 0x11);
        assert!(!pics.asks());
        assert_eq!(ready().acknowledge(), 0x27, "nothing asks: spurious");
    }

    #[test]
    fn any_bytes_are_taken() {
        let mut pics = ready();
        for at in 0..100_000_u32 {
            let byte = (at.wrapping_mul(0x9e37_79b9) >> 24) as u8;
            let port = [0x20, 0x21, 0xa0, 0xa1][at as usize % 4];
            pics.write(port, byte);
            pics.set_line(byte & 7, at & 64 == 0);
            pics.read(port);
            if pics.asks() {
                pics.acknowledge();
            }
        }
    }
}
