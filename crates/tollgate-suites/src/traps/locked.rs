//! Locks code in memory while an instance lives, so that none of its traps waits for a page.

use std::sync::{Mutex, MutexGuard};
use std::{collections::BTreeMap, io};

use crate::prelude::*;

/// Bytes of code to lock from each entry point.
const REACH: usize = 512;

/// Number of holders of each page: locks belong to the process and do not nest; one munlock undoes all (mlock(2)).
static HOLDERS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

pub(super) struct Locked(Vec<usize>);

impl Locked {
    /// Locks the code at each of these entry points.
    ///
    /// # Errors
    /// Fails if mlock(2) does, such as with EPERM or ENOMEM if RLIMIT_MEMLOCK is too low. Then nothing is locked.
    pub fn code(entries: &[usize]) -> io::Result<Self> {
        let size = page_size();
        let mut locked = Self(Vec::new());
        let mut holders = holders();
        for &entry in entries {
            let last = entry + REACH - 1;
            for page in (entry / size..=last / size).map(|number| number * size) {
                let held = holders.get(&page).copied().unwrap_or(0);
                // SAFETY: the page belongs to this program's code; locking it changes nothing in it.
                if held == 0 && unsafe { libc::mlock(page as *const _, size) } != 0 {
                    let error = io::Error::last_os_error();
                    drop(holders);
                    return Err(error);
                }
                holders.insert(page, held + 1);
                locked.0.push(page);
            }
        }
        Ok(locked)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut holders = holders();
        for page in self.0.drain(..) {
            let left = holders.remove(&page).unwrap_or(1).saturating_sub(1);
            if left > 0 {
                holders.insert(page, left);
            } else {
                // SAFETY: unlocking changes nothing in the page.
                unsafe { libc::munlock(page as *const _, page_size()) };
            }
        }
    }
}

fn holders() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    locked(&HOLDERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traps::tests::alone;

    /// Returns the KiB that this process has locked (proc_pid_status(5)).
    fn locked_now() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with("VmLck:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    #[test]
    fn a_page_stays_locked_until_its_last_holder_drops_it() {
        let _alone = alone();
        let (Some(before), Ok(first)) = (locked_now(), Locked::code(&[alone as fn() -> _ as usize])) else {
            eprintln!("skipped: nothing can be locked, or VmLck is not readable");
            return;
        };
        let held = locked_now().expect("read before");
        assert!(held > before, "{held} kB");
        let second = Locked::code(&[alone as fn() -> _ as usize]).expect("held already");
        drop(first);
        assert_eq!(locked_now(), Some(held));
        drop(second);
        assert_eq!(locked_now(), Some(before));
    }
}
