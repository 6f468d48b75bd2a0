//! The descriptor tables as ring 3 sees them: the descriptors that LAR and LSL load, the values that SGDT, SIDT, SLDT, STR and
//! SMSW store, and the gates that INT may use.
//!
//! All of it is tried in a child, since each attempt may kill it: UMIP without the kernel's emulation, a filter that kills for a
//! 32-bit system call, a sandbox that does not know an instruction. The child's results stay in shared memory, and the next
//! child continues after the attempt that killed it.

#![allow(unsafe_code)] // Instructions that only assembly has, and the signals that they raise.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use rustix::process::{Signal, set_parent_process_death_signal};
use tollgate_arch::ring3::{RING3, Ring3 as Instructions};
use tollgate_model::{Unknown, text::said_by, traced::Ended as Exit};
use tollgate_os::{process, signals::Disposition};
use tollgate_x86::{AccessRights, Selector, Table};

/// The descriptor tables as ring 3 sees them, see [`ring3`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ring3 {
    /// Every selector of privilege level 3 whose descriptor LAR loads, in order.
    pub selectors: Vec<Visible>,
    /// The selectors in CS, SS, DS, ES, FS and GS, in this order.
    pub loaded: [Selector; 6],
    /// The value that SGDT stored.
    pub gdtr: Attempt<TableRegister>,
    /// The value that SIDT stored.
    pub idtr: Attempt<TableRegister>,
    /// The value that SLDT stored.
    pub ldtr: Attempt<Selector>,
    /// The value that STR stored.
    pub tr: Attempt<Selector>,
    /// The value that SMSW stored: the low half of CR0.
    pub msw: Attempt<u32>,
    /// The outcome of INT with each vector, with 32-bit getpid(2) in EAX; if it returned, whether EAX then had the process ID.
    pub vectors: Vec<Attempt<bool>>,
}

/// A descriptor, as LAR and LSL load it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visible {
    /// Its selector.
    pub selector: Selector,
    /// The value that LAR loaded.
    pub rights: AccessRights,
    /// The limit that LSL loaded, in bytes; `None` if the descriptor has no limit.
    pub limit: Option<u32>,
}

/// GDTR or IDTR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableRegister {
    /// Address of the table.
    pub base: u64,
    /// Offset of its last byte.
    pub limit: u16,
}

/// The outcome of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Attempt<T> {
    /// The child ended before.
    #[default]
    NotTried,
    /// It continued with the next instruction.
    Done(T),
    /// It raised a signal.
    Signal {
        /// The signal's number.
        signal: i32,
        /// The exception's vector.
        vector: u64,
        /// The exception's error code.
        code: u64,
    },
    /// It ended the process, with this signal.
    Killed(i32),
}

/// Tries all of it from ring 3, in a few milliseconds.
///
/// # Errors
/// Refused if no child can be made or no memory can be mapped as executable; absent from another architecture than x86-64.
pub fn ring3() -> Result<Ring3, Unknown> {
    if RING3.is_none() {
        return Err(Unknown::Absent("descriptor tables are of x86-64".into()));
    }
    let board = Board::new()?;
    for _ in 0..MOST_CHILDREN {
        if board.run_child()? {
            break;
        }
    }
    Ok(board.read())
}

/// Returns whether it is Linux's dummy value under UMIP (`UMIP_DUMMY_GDT_BASE`, `UMIP_DUMMY_IDT_BASE`, arch/x86/kernel/umip.c).
pub fn is_dummy(register: TableRegister) -> bool {
    const GDT: u64 = 0xffff_ffff_fffe_0000;
    const IDT: u64 = 0xffff_ffff_ffff_0000;
    register.limit == 0 && [GDT, IDT].contains(&register.base)
}

/// Only a few attempts can kill a child.
const MOST_CHILDREN: usize = 24;
const PATIENCE: u32 = 2;
/// Linux's GDT has 16 entries, an LDT up to 8192.
const MOST_SELECTORS: usize = 512;
/// Attempts before the vectors: the scan of selectors, and five store instructions.
const BEFORE_VECTORS: usize = 6;
const ATTEMPTS: usize = BEFORE_VECTORS + 256;

/// The child's results, in shared memory; the child does not allocate.
#[repr(C)]
struct Sheet {
    /// The attempt that was begun last, counted from 1.
    begun: AtomicUsize,
    ended: [Ended; ATTEMPTS],
    loaded: [u16; 6],
    stored: [[u8; 16]; BEFORE_VECTORS],
    filled: usize,
    selectors: [Row; MOST_SELECTORS],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Row {
    selector: u16,
    has_limit: bool,
    rights: u32,
    limit: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Ended {
    how: u8,
    is_pid: bool,
    signal: i32,
    vector: u64,
    code: u64,
}

const DONE: u8 = 1;
const SIGNAL: u8 = 2;
const KILLED: u8 = 3;

/// Shared memory with a [`Sheet`], and executable memory with `int n; ret` for each n.
struct Board {
    sheet: *mut Sheet,
    stubs: *mut u8,
}

const STUB: usize = 4;
const STUBS: usize = 256 * STUB;

impl Board {
    fn new() -> Result<Self, Unknown> {
        let map = |size: usize, flags| {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping of its own.
            let at = unsafe {
                libc::mmap(core::ptr::null_mut(), size, protection, flags | libc::MAP_ANONYMOUS, -1, 0)
            };
            if at == libc::MAP_FAILED { Err(refused("mmap(2)")) } else { Ok(at) }
        };
        let sheet = map(size_of::<Sheet>(), libc::MAP_SHARED)?;
        let mut board = Self { sheet: sheet.cast(), stubs: core::ptr::null_mut() };
        board.stubs = map(STUBS, libc::MAP_PRIVATE)?.cast();
        for n in 0..=u8::MAX {
            // SAFETY: 256 stubs of 4 bytes are within the mapping of that size, which is still writable.
            unsafe {
                board.stubs.add(usize::from(n) * STUB).cast::<[u8; STUB]>().write([0xcd, n, 0xc3, 0xcc]);
            }
        }
        // SAFETY: the mapping is this function's own, of that size.
        let protected =
            unsafe { libc::mprotect(board.stubs.cast(), STUBS, libc::PROT_READ | libc::PROT_EXEC) };
        if protected == 0 { Ok(board) } else { Err(refused("mprotect(2) PROT_EXEC")) }
    }

    fn run_child(&self) -> Result<bool, Unknown> {
        // SAFETY: the mapping is as large as a sheet, zeros are a valid one, and there is no child.
        let sheet = unsafe { &mut *self.sheet };
        let first = sheet.begun.load(Ordering::Acquire);
        // The child does not allocate or lock.
        let mut process = process::fork(|| RING3.map_or(0, |ring3| child(&ring3, sheet, self.stubs, first)))
            .map_err(|_| refused("fork(2)"))?;
        let signal = match process.wait().map_err(|_| refused("waitpid(2)"))? {
            Exit::Exit(_) => return Ok(true),
            Exit::Signal(signal) => signal,
        };
        // SAFETY: as above; the child has ended.
        let sheet = unsafe { &mut *self.sheet };
        let at = sheet.begun.load(Ordering::Acquire);
        if at == first {
            return Err(refused("what a child does"));
        }
        if let Some(ended) = sheet.ended.get_mut(at - 1) {
            *ended = Ended { how: KILLED, signal, ..Ended::default() };
        }
        Ok(at >= ATTEMPTS)
    }

    fn read(&self) -> Ring3 {
        // SAFETY: as in `run_child`; the last child has ended.
        let sheet = unsafe { &*self.sheet };
        let rows = &sheet.selectors[..sheet.filled.min(MOST_SELECTORS)];
        let visible = |row: &Row| Visible {
            selector: Selector(row.selector),
            rights: AccessRights(row.rights),
            limit: row.has_limit.then_some(row.limit),
        };
        let word = |at: usize| u16::from_le_bytes([sheet.stored[at][0], sheet.stored[at][1]]);
        let register = |at: usize| {
            let [a, b, c, d, e, f, g, h, ..] = *sheet.stored[at].last_chunk::<14>().unwrap_or(&[0; 14]);
            TableRegister { limit: word(at), base: u64::from_le_bytes([a, b, c, d, e, f, g, h]) }
        };
        Ring3 {
            selectors: rows.iter().map(visible).collect(),
            loaded: sheet.loaded.map(Selector),
            gdtr: sheet.ended[1].attempt(register(1)),
            idtr: sheet.ended[2].attempt(register(2)),
            ldtr: sheet.ended[3].attempt(Selector(word(3))),
            tr: sheet.ended[4].attempt(Selector(word(4))),
            msw: sheet.ended[5]
                .attempt(u32::from_le_bytes(*sheet.stored[5].first_chunk().unwrap_or(&[0; 4]))),
            vectors: sheet.ended[BEFORE_VECTORS..].iter().map(|ended| ended.attempt(ended.is_pid)).collect(),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: both mappings are the board's own, of these sizes, and no reference to them is left. If one was not mapped,
        // its address cannot be unmapped, and the call fails.
        unsafe {
            libc::munmap(self.sheet.cast(), size_of::<Sheet>());
            if !self.stubs.is_null() {
                libc::munmap(self.stubs.cast(), STUBS);
            }
        }
    }
}

impl Ended {
    fn attempt<T>(&self, value: T) -> Attempt<T> {
        match self.how {
            DONE => Attempt::Done(value),
            SIGNAL => Attempt::Signal { signal: self.signal, vector: self.vector, code: self.code },
            KILLED => Attempt::Killed(self.signal),
            _ => Attempt::NotTried,
        }
    }
}

fn refused(what: &str) -> Unknown {
    Unknown::Refused(format!("{what}: {}", said_by(what, &std::io::Error::last_os_error())))
}

/// The address at which the signal handler resumes, and where it stores its results.
static RESUME: AtomicU64 = AtomicU64::new(0);
static CAUGHT: AtomicPtr<Ended> = AtomicPtr::new(core::ptr::null_mut());

fn child(ring3: &Instructions, sheet: &mut Sheet, stubs: *const u8, first: usize) -> i32 {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // SAFETY: the call takes a number, and `caught` is ready for signals that the attempts below raise.
    let handler = unsafe {
        libc::alarm(PATIENCE);
        Disposition::handler(caught, libc::SA_NODEFER)
    };
    for signal in [libc::SIGSEGV, libc::SIGTRAP, libc::SIGILL, libc::SIGBUS, libc::SIGFPE, libc::SIGSYS] {
        let _ = handler.set(signal);
    }
    for at in first..ATTEMPTS {
        sheet.begun.store(at + 1, Ordering::Release);
        let ended: *mut Ended = &mut sheet.ended[at];
        CAUGHT.store(ended, Ordering::Release);
        match at {
            0 => scan(ring3, sheet),
            // SAFETY: the handler resumes at the address.
            1..BEFORE_VECTORS => unsafe { (ring3.store)(at, &mut sheet.stored[at], &RESUME) },
            _ => sheet.ended[at].is_pid = interrupt(ring3, stubs.wrapping_add((at - BEFORE_VECTORS) * STUB)),
        }
        let ended = &mut sheet.ended[at];
        if ended.how != SIGNAL {
            ended.how = DONE;
        }
    }
    0
}

extern "C" fn caught(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let ended = CAUGHT.load(Ordering::Acquire);
    // SAFETY: the kernel passes a ucontext_t (sigaction(2), SA_SIGINFO), and `child` an address that only this thread writes.
    unsafe {
        let resume = RESUME.load(Ordering::Acquire);
        let (vector, code) = RING3.map_or((0, 0), |ring3| (ring3.fault)(context, resume));
        *ended = Ended { how: SIGNAL, signal, vector, code, ..*ended };
    }
}

/// LAR and LSL of every selector of privilege level 3.
fn scan(ring3: &Instructions, sheet: &mut Sheet) {
    sheet.loaded = (ring3.segments)();
    sheet.filled = 0;
    let tables = [Table::Gdt, Table::Ldt].into_iter();
    for selector in tables.flat_map(|table| (0..1 << 13).map(move |index| Selector::new(index, table, 3))) {
        if let (Some(rights), limit) = (ring3.descriptor)(selector.0)
            && let Some(row) = sheet.selectors.get_mut(sheet.filled)
        {
            let (has_limit, limit) = (limit.is_some(), limit.unwrap_or_default());
            *row = Row { selector: selector.0, has_limit, rights, limit };
            sheet.filled += 1;
        }
    }
}

/// Runs `int n; ret` with 32-bit getpid(2) in EAX, which changes nothing in any handler. Returns whether it answered.
fn interrupt(ring3: &Instructions, stub: *const u8) -> bool {
    /// `__NR_getpid` in arch/x86/entry/syscalls/syscall_32.tbl.
    const GETPID: u64 = 20;
    // INT n takes two bytes: a fault's handler resumes at the RET after it.
    RESUME.store(stub.wrapping_add(2) as u64, Ordering::Release);
    // SAFETY: the stub is in executable memory and returns, by itself or through the handler; getpid(2) cannot fail.
    unsafe { (ring3.through)(GETPID, stub) as i32 == libc::getpid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_3_sees_its_own_segments() {
        let seen = match ring3() {
            Ok(seen) => seen,
            Err(why) => return println!("skipped: {why}"),
        };
        println!("{:x?}", (seen.gdtr, seen.idtr, seen.ldtr, seen.tr, seen.msw));
        let [cs, ss, ..] = seen.loaded;
        let descriptor = |selector| seen.selectors.iter().find(|descriptor| descriptor.selector == selector);
        let code = descriptor(cs).expect("the code segment that runs this").rights.with_limit(0);
        assert!(code.s && code.p && code.l && code.dpl == 3, "{code:?}");
        let stack = descriptor(ss).expect("the stack segment").rights.with_limit(0);
        assert!(stack.s && stack.p && stack.dpl == 3, "{stack:?}");
        assert!(seen.selectors.iter().all(|descriptor| descriptor.selector.rpl() == 3));
    }

    #[test]
    fn breakpoints_are_for_ring_3_and_other_exceptions_are_not() {
        let seen = match ring3() {
            Ok(seen) => seen,
            Err(why) => return println!("skipped: {why}"),
        };
        assert_eq!(seen.vectors.len(), 256);
        let of = |signal| match signal {
            Attempt::Signal { signal, vector, code } => (signal, vector, code),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(seen.vectors[3]).0, libc::SIGTRAP);
        let (signal, vector, code) = of(seen.vectors[14]);
        assert_eq!((signal, vector), (libc::SIGSEGV, 13), "no page fault: the gate is not for ring 3");
        // Vector 14 and the bit that marks an IDT vector (SDM 3A, "Error code"); FRED has no error code. QEMU 7.2, when it
        // emulates, has the vector a bit higher (target/i386/tcg/seg_helper.c, do_interrupt64()).
        let is_emulated = crate::hypervisor::is_translator(&crate::Machine::here());
        assert!(code == 14 << 3 | 2 || code == 0 || is_emulated && code == 14 << 4 | 2, "{code:x}");
    }

    #[test]
    fn dummies_are_no_tables() {
        assert!(is_dummy(TableRegister { base: 0xffff_ffff_fffe_0000, limit: 0 }));
        assert!(!is_dummy(TableRegister { base: 0xffff_ffff_fffe_0000, limit: 0x7f }));
        assert!(!is_dummy(TableRegister { base: 0xffff_fe00_0000_1000, limit: 0x7f }));
    }

    #[test]
    fn an_attempt_that_ends_the_child_costs_that_attempt() {
        if let Err(why) = ring3() {
            return println!("skipped: {why}");
        }
        let board = Board::new().unwrap();
        // SAFETY: there is no child yet. As if an attempt had killed the last child.
        let sheet = unsafe { &mut *board.sheet };
        sheet.begun.store(BEFORE_VECTORS + 3, Ordering::Release);
        sheet.ended[BEFORE_VECTORS + 2] = Ended { how: KILLED, signal: libc::SIGSYS, ..Ended::default() };
        assert!(board.run_child().unwrap());
        let seen = board.read();
        assert_eq!(seen.vectors[1], Attempt::NotTried);
        assert_eq!(seen.vectors[2], Attempt::Killed(libc::SIGSYS));
        assert!(matches!(seen.vectors[3], Attempt::Signal { .. }));
    }
}
