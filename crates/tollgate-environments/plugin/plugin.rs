//! A plugin for QEMU's translator: writes which translated blocks a guest executes, in order, to a ring in shared memory.
//!
//! `build.rs` makes a shared object of it, which the program contains; `src/vm/ring.rs` has the layout of the ring, and `src/vm/plugin.rs`
//! its reader. QEMU's executable has the functions `qemu_plugin_…` and its C library the others (QEMU, include/qemu/qemu-plugin.h). A
//! guest has one processor, so one thread calls all of this, after another thread has registered it.
//!
//! The guest boots without the plugin, since QEMU takes a quarter longer to translate code that a plugin sees. The plugin is registered
//! when `/init` writes to the other end of a socket.
//!
//! Nothing is watched until the guest then executes [`READY`] and the requested number of windows was skipped. Then QEMU discards its
//! translations, and each block that it translates again is described once and noted at each execution, until enough windows have ended.

#![no_std]
#![allow(unsafe_op_in_unsafe_fn, non_upper_case_globals)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::{addr_of_mut, null, null_mut};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[path = "../src/vm/ring.rs"]
mod ring;
use ring::{DATA, DESCRIBED, END, HEAD, IS_LAST, IS_READ, IS_REGISTERED, RETURN, SKIP, SWITCHED, TAIL, TAKE, WORDS};

/// All but the last byte of a mark, `nopl disp32(%rax)`, which does nothing. The last one is the kind.
const MARK: [u8; 6] = [0x0f, 0x1f, 0x80, b't', b'o', b'l'];
const PLAIN: u64 = 0;
/// A window may follow.
const READY: u64 = 1;
/// `iretq` and `sysretq`, after which the next block may be the program's.
const RETURNS: [&[u8]; 2] = [&[0x48, 0xcf], &[0x48, 0x0f, 0x07]];
/// All but the displacements of `mov %rsp,disp32(%rdi)` and `mov disp32(%rsi),%rsp`, by which the kernel switches from the stack of a
/// task to that of the next one (Linux, arch/x86/entry/entry_64.S, `__switch_to_asm`).
const SWITCHES: [[u8; 3]; 2] = [[0x48, 0x89, 0xa7], [0x48, 0x8b, 0xa6]];

/// Opaque: a block, an instruction.
type Tb = c_void;
type Insn = c_void;
type Executed = extern "C" fn(c_uint, *mut c_void);
type Accessed = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// A place for a number per processor, since version 2.
#[repr(C)]
#[derive(Clone, Copy)]
struct PerProcessor {
    score: *mut c_void,
    offset: usize,
}

/// `sigset_t`.
type Signals = [u64; 16];

type InlineOfOne = unsafe extern "C" fn(*mut Insn, c_int, *mut u64, u64);
type InlinePerProcessor = unsafe extern "C" fn(*mut Insn, c_int, PerProcessor, u64);
type NewScore = unsafe extern "C" fn(usize) -> *mut c_void;
type FindScore = unsafe extern "C" fn(*mut c_void, c_uint) -> *const u64;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: extern "C" fn(u64, *mut Tb));
    fn qemu_plugin_register_vcpu_tb_exec_cb(tb: *mut Tb, callback: Executed, flags: c_int, data: *mut c_void);
    fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        callback: Accessed,
        flags: c_int,
        accesses: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_reset(id: u64, callback: extern "C" fn(u64));
    fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const Tb, at: usize) -> *mut Insn;
    fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    fn qemu_plugin_insn_haddr(insn: *const Insn) -> *const u8;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn mmap(at: *mut c_void, size: usize, access: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void;
    fn recv(socket: c_int, to: *mut u8, size: usize, flags: c_int) -> isize;
    fn pthread_sigmask(how: c_int, signals: *const Signals, before: *mut Signals) -> c_int;
    fn pthread_create(
        thread: *mut usize,
        attributes: *const c_void,
        function: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn usleep(microseconds: c_uint) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Version of the interface: see [`choose`].
#[unsafe(no_mangle)]
pub static mut qemu_plugin_version: c_int = 1;

/// QEMU reads the version after this object is loaded. Version 2 (QEMU 9) replaced counters at an address by one per processor.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;

extern "C" fn choose() {
    unsafe {
        if !found(c"qemu_plugin_scoreboard_new").is_null() {
            qemu_plugin_version = 2;
        }
    }
}

static mut OWN: u64 = 0;
static mut RING: *mut [AtomicU64; WORDS] = null_mut();
/// Words written so far.
static mut WRITTEN: u64 = 0;
/// Described blocks.
static mut BLOCKS: u64 = 0;
/// Whether translations are watched, and whether they will be after the next reset.
static mut IS_ON: bool = false;
static mut BECOMES_ON: bool = false;
/// The number of begun instructions: here, or per processor; and the place of that number.
static mut BEGUN: u64 = 0;
static mut SCORE: *mut c_void = null_mut();
static mut PLACE: *const u64 = null();
/// QEMU's function that adds to that number.
static mut ADDS: *mut c_void = null_mut();

unsafe fn found(name: &CStr) -> *mut c_void {
    dlsym(null_mut(), name.as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _: *const c_void,
    number: c_int,
    arguments: *const *const c_char,
) -> c_int {
    const READ_WRITE: c_int = 2;
    const READ_AND_WRITE: c_int = 3;
    const SHARED: c_int = 1;
    const SET: c_int = 2;
    if number != 2 {
        return 1;
    }
    // `ring=PATH` and `gate=NUMBER`.
    let file = open((*arguments).add(5), READ_WRITE);
    let gate = CStr::from_ptr((*arguments.add(1)).add(5)).to_bytes();
    let gate = gate.iter().fold(0, |number, digit| number * 10 + usize::from(digit & 0xf));
    let memory = mmap(null_mut(), WORDS * 8, READ_AND_WRITE, SHARED, file, 0);
    if file < 0 || memory as isize == -1 {
        return 1;
    }
    (OWN, RING) = (id, memory.cast());
    let new = found(c"qemu_plugin_scoreboard_new");
    if new.is_null() {
        ADDS = found(c"qemu_plugin_register_vcpu_insn_exec_inline");
    } else {
        ADDS = found(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu");
        SCORE = core::mem::transmute::<*mut c_void, NewScore>(new)(8);
    }
    if ADDS.is_null() {
        return 1;
    }
    // QEMU's main thread receives the signals.
    let (mut thread, mut before) = (0, [0; 16]);
    pthread_sigmask(SET, &[!0; 16], &mut before);
    let failed = pthread_create(&mut thread, null(), registered, gate as *mut c_void);
    pthread_sigmask(SET, &before, null_mut());
    failed
}

/// Registers the plugin when a first byte comes. The sender goes on only after several bytes are read, after the registration.
extern "C" fn registered(gate: *mut c_void) -> *mut c_void {
    const PEEK: c_int = 2;
    let (gate, mut bytes) = (gate as c_int, [0; 64]);
    unsafe {
        if recv(gate, bytes.as_mut_ptr(), 1, PEEK) == 1 {
            qemu_plugin_register_vcpu_tb_trans_cb(OWN, translated);
            word(IS_REGISTERED).store(1, Release);
            while recv(gate, bytes.as_mut_ptr(), bytes.len(), 0) > 0 {}
        }
    }
    null_mut()
}

unsafe fn word(at: usize) -> &'static AtomicU64 {
    &(&*RING)[at]
}

/// Appends a word. While the ring is full it waits for the reader; without a reader it drops the word.
unsafe fn push(value: u64) {
    const ROOM: u64 = (WORDS - DATA) as u64;
    while WRITTEN - word(TAIL).load(Acquire) >= ROOM {
        if word(IS_READ).load(Relaxed) == 0 {
            return;
        }
        usleep(50);
    }
    word(DATA + (WRITTEN % ROOM) as usize).store(value, Relaxed);
    WRITTEN += 1;
    word(HEAD).store(WRITTEN, Release);
}

extern "C" fn translated(_: u64, tb: *mut Tb) {
    const READS_AND_WRITES: c_int = 3;
    unsafe {
        let number = qemu_plugin_tb_n_insns(tb);
        let mut kind = PLAIN;
        for at in 0..number {
            match kind_of(qemu_plugin_tb_get_insn(tb, at)) {
                PLAIN => {}
                other => kind = other,
            }
        }
        if !IS_ON {
            if kind == READY {
                qemu_plugin_register_vcpu_tb_exec_cb(tb, ready, 0, null_mut());
            }
            return;
        }
        let index = describe(tb, number, kind) as *mut c_void;
        let callback = if kind == END { ended } else { executed };
        qemu_plugin_register_vcpu_tb_exec_cb(tb, callback, 0, index);
        for at in 0..number {
            let insn = qemu_plugin_tb_get_insn(tb, at);
            count(insn);
            let is_switch = SWITCHES.iter().any(|begin| code(insn).starts_with(begin));
            if is_switch && qemu_plugin_insn_vaddr(insn) >> 63 != 0 {
                qemu_plugin_register_vcpu_mem_cb(insn, switched, 0, READS_AND_WRITES, null_mut());
            }
        }
    }
}

/// The bytes of an instruction, or none if they are not in memory.
unsafe fn code<'i>(insn: *const Insn) -> &'i [u8] {
    match qemu_plugin_insn_haddr(insn) {
        code if code.is_null() => &[],
        code => core::slice::from_raw_parts(code, qemu_plugin_insn_size(insn)),
    }
}

unsafe fn kind_of(insn: *const Insn) -> u64 {
    let code = code(insn);
    match code.split_last() {
        Some((kind @ 1..=3, rest)) if rest == MARK => u64::from(*kind),
        _ if RETURNS.contains(&code) => RETURN,
        _ => PLAIN,
    }
}

/// Writes the description of a block. Returns its index.
unsafe fn describe(tb: *mut Tb, number: usize, kind: u64) -> u64 {
    let first = qemu_plugin_tb_get_insn(tb, 0);
    let start = qemu_plugin_insn_vaddr(first);
    push(DESCRIBED << 32 | kind << 16 | number as u64);
    push(start);
    push(page(start, qemu_plugin_insn_haddr(first)));
    let mut sizes = 0;
    for at in 0..number {
        sizes |= (qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, at)) as u64 & 0xff) << (at % 8 * 8);
        if at % 8 == 7 || at + 1 == number {
            push(sizes);
            sizes = 0;
        }
    }
    BLOCKS += 1;
    BLOCKS - 1
}

/// A number for the contents of a program's page, which distinguishes files at equal addresses.
unsafe fn page(address: u64, code: *const u8) -> u64 {
    if address >> 63 != 0 || code.is_null() {
        return 0;
    }
    let page = (code as usize & !0xfff) as *const [u8; 4096];
    ring::number(&*page)
}

/// Makes QEMU count this instruction when its execution begins.
unsafe fn count(insn: *mut Insn) {
    const ADD: c_int = 0;
    if SCORE.is_null() {
        core::mem::transmute::<*mut c_void, InlineOfOne>(ADDS)(insn, ADD, addr_of_mut!(BEGUN), 1);
    } else {
        let place = PerProcessor { score: SCORE, offset: 0 };
        core::mem::transmute::<*mut c_void, InlinePerProcessor>(ADDS)(insn, ADD, place, 1);
    }
}

extern "C" fn executed(_: c_uint, block: *mut c_void) {
    unsafe { push((block as u64) << 32 | PLACE.read_volatile() & 0xffff_ffff) }
}

extern "C" fn switched(_: c_uint, _: u32, address: u64, _: *mut c_void) {
    unsafe { push(SWITCHED << 32 | address >> 6 & 0xffff_ffff) }
}

extern "C" fn ready(_: c_uint, _: *mut c_void) {
    unsafe {
        let skip = word(SKIP).load(Relaxed);
        if skip > 0 {
            word(SKIP).store(skip - 1, Relaxed);
        } else if word(TAKE).load(Relaxed) > 0 {
            turn(true);
        }
    }
}

extern "C" fn ended(processor: c_uint, block: *mut c_void) {
    executed(processor, block);
    unsafe {
        let take = word(TAKE).load(Relaxed).saturating_sub(1);
        word(TAKE).store(take, Relaxed);
        if take == 0 {
            turn(false);
        }
    }
}

/// Discards all translations. QEMU does so before the next block.
unsafe fn turn(on: bool) {
    BECOMES_ON = on;
    qemu_plugin_reset(OWN, turned);
}

extern "C" fn turned(id: u64) {
    unsafe {
        IS_ON = BECOMES_ON;
        // QEMU moves that number when it makes a processor.
        PLACE = match SCORE.is_null() {
            true => addr_of_mut!(BEGUN),
            false => core::mem::transmute::<*mut c_void, FindScore>(found(c"qemu_plugin_scoreboard_find"))(SCORE, 0),
        };
        if IS_ON || word(IS_LAST).load(Relaxed) == 0 {
            qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
