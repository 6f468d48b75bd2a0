//! Whether software executes instructions, which their relative times show.

use std::arch::asm;

use super::counter;

/// Returns whether an estimate of a reciprocal square root (FRSQRTE) takes more than 128 times as long as an addition. Processors have a
/// table of estimates, and look one up in less than ten cycles; QEMU's translator searches for each in a loop (`do_recip_sqrt_estimate`
/// in target/arm/vfp_helper.c), which takes a thousand times as long as an addition there. Hypervisors intercept neither.
pub const IS_SOFTWARE: Option<unsafe fn() -> bool> = Some(is_software);

/// # Safety
/// As for [`counter::start`].
unsafe fn is_software() -> bool {
    // Counters tick as rarely as every 52 ns, and in some guests every microsecond: the additions take 20 µs.
    let least = |run: fn()| {
        let times = (0..4).map(|_| {
            // SAFETY: by the caller's contract.
            let before = unsafe { counter::fenced() };
            run();
            // SAFETY: by the caller's contract.
            unsafe { counter::fenced() }.saturating_sub(before)
        });
        times.min().unwrap_or(0)
    };
    least(estimates_512) > least(additions_65536)
}

fn estimates_512() {
    // SAFETY: the instructions touch only the named registers.
    unsafe {
        asm!(
            "2:", ".rept 16", "frsqrte {to:d}, {of:d}", ".endr", "subs {n}, {n}, 1", "b.ne 2b",
            // The search for the estimate of 1.0 is the longest.
            of = in(vreg) 1.0_f64, to = out(vreg) _, n = inout(reg) 32_u64 => _, options(nomem, nostack),
        );
    }
}

/// Each addition depends on the sum of the one before.
fn additions_65536() {
    // SAFETY: the instructions touch only the named registers.
    unsafe {
        asm!(
            "2:", ".rept 64", "add {sum}, {sum}, {one}", ".endr", "subs {n}, {n}, 1", "b.ne 2b",
            sum = inout(reg) 0_u64 => _, one = in(reg) 1_u64, n = inout(reg) 1024_u64 => _, options(nomem, nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_translator_is_software_whatever_processor_it_names() {
        if std::env::var_os("TOLLGATE_IN_QEMU").is_none() {
            return println!("skipped: .ci/arm64 sets TOLLGATE_IN_QEMU, and runs this in the translator");
        }
        // SAFETY: it lets programs read the counter.
        let answers = [(); 8].map(|()| unsafe { is_software() });
        assert_eq!(answers, [true; 8]);
    }
}
