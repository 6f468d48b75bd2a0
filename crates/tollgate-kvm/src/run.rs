use std::io;

use kvm_ioctls::VcpuExit;

use tollgate_model::text::plainly;

use crate::alarm::Alarm;
use crate::exit;
use crate::vm::Vm;

/// Bytes that a guest may write to its serial port. A run of all experiments of the lab writes a few thousand.
const MAX_SERIAL: usize = 1 << 20;

const COM1: u16 = 0x3f8;
const LINE_STATUS: u16 = 0x3fd;
/// The transmitter is empty, and so is its holding register (PC16550D, "Line status register").
const EMPTY: u8 = 0x60;
/// A byte to this port ends the run.
const END: u16 = 0xf4;
const NOTHING: u8 = 0xff;

/// Runs the guest until it ends itself; returns why it did not, in a clause. Its output is added to `serial`; a write of several
/// bytes counts as several writes of one. A guest that ended itself may be run again, and goes on after that point.
pub(super) fn run(vm: &mut Vm, alarm: &Alarm, serial: &mut Vec<u8>) -> Option<String> {
    loop {
        let why = match vm.vcpu.run() {
            Ok(VcpuExit::IoOut(END, _)) => return None,
            Ok(VcpuExit::IoOut(COM1, bytes)) => written(serial, bytes),
            Ok(VcpuExit::IoOut(..)) => None,
            Ok(VcpuExit::IoIn(port, bytes)) => {
                bytes.fill(if port == LINE_STATUS { EMPTY } else { NOTHING });
                None
            }
            Ok(VcpuExit::Intr) => alarm.rung(),
            Ok(VcpuExit::InternalError) => Some(exit::internal_error(vm)),
            Ok(exit) => Some(exit::clause(&exit)),
            Err(error) => match error.errno() {
                libc::EINTR | libc::EAGAIN => alarm.rung(),
                errno => Some(format!("KVM_RUN failed: {}", plainly(&io::Error::from_raw_os_error(errno)))),
            },
        };
        if why.is_some() {
            return why;
        }
    }
}

/// Adds to a guest's output; returns a clause if the guest wrote more than the limit.
pub fn written(serial: &mut Vec<u8>, bytes: &[u8]) -> Option<String> {
    let room = MAX_SERIAL.saturating_sub(serial.len());
    serial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    (bytes.len() > room).then(|| format!("it wrote more than {MAX_SERIAL} bytes to its serial port"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_has_a_bound(parts in proptest::collection::vec(0usize..(MAX_SERIAL / 2), 0..6)) {
            let mut serial = Vec::new();
            let refused = parts.iter().filter_map(|&part| written(&mut serial, &vec![1; part])).count();
            let all: usize = parts.iter().sum();
            prop_assert_eq!(serial.len(), all.min(MAX_SERIAL));
            prop_assert_eq!(refused > 0, all > MAX_SERIAL);
        }
    }
}
