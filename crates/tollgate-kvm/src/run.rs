use std::io;

use kvm_ioctls::VcpuExit;

use tollgate_model::text::plainly;

use crate::alarm::Alarm;
use crate::exit;
use crate::serial::written;
use crate::vm::Vm;

const COM1: u16 = 0x3f8;
const LINE_STATUS: u16 = 0x3fd;
/// The transmitter is empty, and so is its holding register (PC16550D, "Line status register").
const EMPTY: u8 = 0x60;
/// A byte written to this port ends the run.
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
