//! Instructions of ring 3 that read descriptor tables.

use core::arch::{asm, naked_asm};
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

/// See [`Ring3::segments`](crate::ring3::Ring3::segments).
pub fn segments() -> [u16; 6] {
    let mut loaded = [0; 6];
    // SAFETY: reads the selectors in six registers.
    unsafe {
        asm!(
            "mov {:x}, cs", "mov {:x}, ss", "mov {:x}, ds", "mov {:x}, es", "mov {:x}, fs", "mov {:x}, gs",
            out(reg) loaded[0], out(reg) loaded[1], out(reg) loaded[2],
            out(reg) loaded[3], out(reg) loaded[4], out(reg) loaded[5],
            options(nomem, nostack, preserves_flags),
        );
    }
    loaded
}

/// See [`Ring3::descriptor`](crate::ring3::Ring3::descriptor).
pub fn descriptor(selector: u16) -> (Option<u32>, Option<u32>) {
    let (rights, limit): (u32, u32);
    let (has_rights, has_limit): (u8, u8);
    // SAFETY: changes only the registers and flags that are named.
    unsafe {
        asm!(
            "lar {rights:e}, {selector:e}", "setz {has_rights}",
            "lsl {limit:e}, {selector:e}", "setz {has_limit}",
            selector = in(reg) u32::from(selector),
            rights = inout(reg) 0 => rights, limit = inout(reg) 0 => limit,
            has_rights = out(reg_byte) has_rights, has_limit = out(reg_byte) has_limit,
            options(nomem, nostack),
        );
    }
    ((has_rights != 0).then_some(rights), (has_limit != 0).then_some(limit))
}

/// See [`Ring3::store`](crate::ring3::Ring3::store).
///
/// # Safety
/// A handler of faults must resume at the address.
pub unsafe fn store(number: usize, into: &mut [u8; 16], resume: &AtomicU64) {
    macro_rules! store {
        ($instruction:literal) => {
            // SAFETY: the instruction stores into the caller's 16 bytes; if it faults, the handler resumes at the label after it.
            unsafe {
                asm!(
                    "lea {address}, [rip + 2f]",
                    "mov [{resume}], {address}",
                    concat!($instruction, " [{into}]"),
                    "2:",
                    address = out(reg) _, resume = in(reg) resume.as_ptr(), into = in(reg) into,
                    options(nostack),
                )
            }
        };
    }
    match number {
        1 => store!("sgdt"),
        2 => store!("sidt"),
        3 => store!("sldt word ptr"),
        4 => store!("str word ptr"),
        _ => store!("smsw word ptr"),
    }
}

/// See [`Ring3::through`](crate::ring3::Ring3::through).
///
/// # Safety
/// `code` returns.
#[unsafe(naked)]
pub unsafe extern "C" fn through(rax: u64, code: *const u8) -> u64 {
    naked_asm!("mov rax, rdi", "call rsi", "ret")
}

/// See [`Ring3::fault`](crate::ring3::Ring3::fault).
///
/// # Safety
/// `context` is the handler's ucontext.
pub unsafe fn fault(context: *mut c_void, resume: u64) -> (u64, u64) {
    // SAFETY: by the caller's contract.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_RIP as usize] = resume.cast_signed();
    let of = |register: libc::c_int| registers[register as usize].cast_unsigned();
    (of(libc::REG_TRAPNO), of(libc::REG_ERR))
}
