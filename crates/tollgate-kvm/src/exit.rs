//! Describes why a guest could not go on, in clauses.

#![allow(unsafe_code)] // The data of an exit are a union.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use kvm_bindings::{
    KVM_INTERNAL_ERROR_DELIVERY_EV, KVM_INTERNAL_ERROR_EMULATION,
    KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES, KVM_INTERNAL_ERROR_SIMUL_EX,
    KVM_INTERNAL_ERROR_UNEXPECTED_EXIT_REASON,
};
use kvm_ioctls::VcpuExit;

use crate::vm::Vm;

const LONGEST: usize = 15;

pub(super) fn clause(exit: &VcpuExit<'_>) -> String {
    match exit {
        VcpuExit::Hlt => "it halted and nothing can wake it".to_owned(),
        VcpuExit::Shutdown => {
            "a fault during the delivery of a double fault (triple fault) shut it down".to_owned()
        }
        VcpuExit::FailEntry(reason, _) => {
            format!("the processor refused to enter it (hardware's reason {reason:#x})")
        }
        VcpuExit::MmioRead(address, bytes) => outside("read", *address, bytes.len()),
        VcpuExit::MmioWrite(address, bytes) => outside("wrote", *address, bytes.len()),
        VcpuExit::SystemEvent(kind, _) => format!("KVM ended it by a system event (type {kind})"),
        other => format!("KVM_RUN returned for a reason that tollgate does not handle ({other:?})"),
    }
}

fn outside(did: &str, address: u64, bytes: usize) -> String {
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("it {did} {bytes} {unit} at {address:x}, where there is no memory")
}

/// Describes a KVM_EXIT_INTERNAL_ERROR: its suberror and data, or the instruction that KVM could not emulate.
pub(super) fn internal_error(vm: &mut Vm) -> String {
    let run = vm.vcpu.get_kvm_run();
    // SAFETY: the exit's reason is KVM_EXIT_INTERNAL_ERROR, to which `internal` belongs. All bytes of the union are
    // numbers, so any value is valid.
    let internal = unsafe { run.__bindgen_anon_1.internal };
    // SAFETY: as above: `emulation_failure` names the same bytes for the suberror of emulation.
    let emulation = unsafe { run.__bindgen_anon_1.emulation_failure };
    let what = match internal.suberror {
        KVM_INTERNAL_ERROR_EMULATION => {
            // Flags and 16 bytes of an instruction take three of `data`'s words.
            let has_bytes = internal.ndata >= 3
                && emulation.flags & u64::from(KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES) != 0;
            // SAFETY: as above: the instruction's bytes are numbers.
            let failure = unsafe { emulation.__bindgen_anon_1.__bindgen_anon_1 };
            let bytes = failure.insn_bytes[..usize::from(failure.insn_size).min(LONGEST)].to_vec();
            return not_emulated(vm, if has_bytes { bytes } else { Vec::new() });
        }
        KVM_INTERNAL_ERROR_SIMUL_EX => "two exceptions at once".to_owned(),
        KVM_INTERNAL_ERROR_DELIVERY_EV => "an exit while an event was delivered".to_owned(),
        KVM_INTERNAL_ERROR_UNEXPECTED_EXIT_REASON => "an exit unknown to KVM".to_owned(),
        other => format!("suberror {other}"),
    };
    let data: Vec<String> =
        internal.data.iter().take(internal.ndata as usize).map(|word| format!("{word:x}")).collect();
    format!("KVM could not go on: {what} (data {})", data.join(" "))
}

/// Names the instruction that KVM's emulator does not know. If KVM does not report its bytes, they are read at the
/// instruction pointer.
fn not_emulated(vm: &Vm, mut bytes: Vec<u8>) -> String {
    let state = vm.vcpu.get_regs().and_then(|regs| Ok((regs.rip, vm.vcpu.get_sregs()?.cs)));
    let Ok((rip, cs)) = state else { return "KVM could not emulate an instruction".to_owned() };
    if bytes.is_empty() {
        bytes = at(vm, cs.base.wrapping_add(rip)).unwrap_or_default();
    }
    let bits = match (cs.l, cs.db) {
        (1, _) => 64,
        (_, 1) => 32,
        _ => 16,
    };
    format!("KVM could not emulate the instruction at {rip:x} in ring {}{}", cs.dpl, shown(&bytes, bits, rip))
}

/// Reads the guest's memory at a linear address: the longest instruction's bytes, or up to the end of the page.
fn at(vm: &Vm, linear: u64) -> Option<Vec<u8>> {
    let translation = vm.vcpu.translate_gva(linear).ok().filter(|translation| translation.valid != 0)?;
    let left = usize::try_from(4096 - linear % 4096).ok()?;
    vm.memory.read(translation.physical_address, left.min(LONGEST))
}

/// Shows the first instruction in `bytes`, as `: cd 80, int 80h`; all bytes if it is invalid.
fn shown(bytes: &[u8], bits: u32, rip: u64) -> String {
    let mut decoder = Decoder::with_ip(bits, bytes, rip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let mut text = String::new();
    if !instruction.is_invalid() {
        IntelFormatter::new().format(&instruction, &mut text);
        text.insert_str(0, ", ");
    }
    let len = if instruction.is_invalid() { bytes.len() } else { instruction.len() };
    if bytes.is_empty() {
        String::new()
    } else {
        format!(
            ": {}{text}",
            bytes.iter().take(len).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_instruction_is_shown_by_its_bytes_and_its_name() {
        assert_eq!(shown(&[0xcd, 0x80, 0x90], 64, 0), ": cd 80, int 80h");
        assert_eq!(shown(&[0x0f, 0xb9, 0xc8], 64, 0), ": 0f b9 c8, ud1 ecx,eax");
        assert_eq!(shown(&[0xf0, 0x89, 0xc8], 32, 0), ": f0 89 c8", "no instruction");
        assert_eq!(shown(&[], 32, 0), "");
    }

    #[test]
    fn exits_have_a_clause() {
        assert_eq!(clause(&VcpuExit::Hlt), "it halted and nothing can wake it");
        let mut bytes = [0; 4];
        let read = clause(&VcpuExit::MmioRead(0x2bad_b002, &mut bytes[..1]));
        assert_eq!(read, "it read 1 byte at 2badb002, where there is no memory");
        let write = clause(&VcpuExit::MmioWrite(0x1_0000_0000, &bytes));
        assert_eq!(write, "it wrote 4 bytes at 100000000, where there is no memory");
    }

    proptest! {
        #[test]
        fn any_bytes_are_shown(bytes in proptest::collection::vec(any::<u8>(), 0..16), rip: u64) {
            for bits in [16, 32, 64] {
                prop_assert_eq!(shown(&bytes, bits, rip).is_empty(), bytes.is_empty());
            }
        }
    }
}
