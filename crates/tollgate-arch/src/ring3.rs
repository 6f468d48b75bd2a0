//! Instructions of ring 3 that read x86-64's descriptor tables.

use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

pub use crate::chosen::RING3;

/// The instructions.
pub struct Ring3 {
    /// The selectors in CS, SS, DS, ES, FS and GS.
    pub segments: fn() -> [u16; 6],
    /// The access rights and the limit that LAR and LSL load for a selector. Both clear ZF if they load nothing (SDM 2A).
    pub descriptor: fn(selector: u16) -> (Option<u32>, Option<u32>),
    /// Stores into the bytes by SGDT, SIDT, SLDT, STR or SMSW, which are numbers 1 to 5. `resume` receives the address at which the
    /// handler of a fault resumes.
    ///
    /// # Safety
    /// A handler of faults must resume there.
    pub store: unsafe fn(number: usize, into: &mut [u8; 16], resume: &AtomicU64),
    /// Calls code with RAX set, and returns RAX. A 32-bit entry may zero R8 to R11, which the compiler expects of a call to a
    /// separate function. Every kernel's entry preserves the registers that functions must preserve.
    ///
    /// # Safety
    /// `code` returns.
    pub through: unsafe extern "C" fn(rax: u64, code: *const u8) -> u64,
    /// The vector and the error code of a signal's exception; its handler returns to `resume`.
    ///
    /// # Safety
    /// `context` is the handler's ucontext.
    pub fault: unsafe fn(context: *mut c_void, resume: u64) -> (u64, u64),
}
