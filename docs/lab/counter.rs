//! Two threads of control add to one counter, 2000 times each: with a lock around it, and without.
//!
//! A load, an addition and a store are not one step: where the timer takes the processor between them, the other thread's additions
//! are lost. It prints how many.

#![no_std]
#![no_main]

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

const EXIT: u64 = 0;
const WRITE: u64 = 1;
const YIELD: u64 = 3;
const SPAWN: u64 = 4;
const WAIT: u64 = 5;

/// Additions of each thread.
const TIMES: u64 = 2000;

static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static COUNTER: AtomicU64 = AtomicU64::new(0);

#[repr(align(16))]
struct Stack(UnsafeCell<[u8; 4096]>);

// SAFETY: one thread of control has each of them.
unsafe impl Sync for Stack {}

static STACKS: [Stack; 2] = [const { Stack(UnsafeCell::new([0; 4096])) }; 2];

fn call(number: u64, first: u64, second: u64, third: u64) -> i64 {
    let mut result = number as i64;
    // SAFETY: the kernel changes RAX, RCX and R11, and what the call is about.
    unsafe {
        asm!("syscall", inout("rax") result, in("rdi") first, in("rsi") second, in("r8") third,
             out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Adds with the lock, or without it.
extern "C" fn add(with_lock: u64) -> ! {
    for _ in 0..TIMES {
        if with_lock == 1 {
            while IS_TAKEN.swap(true, Acquire) {
                call(YIELD, 0, 0, 0);
            }
        }
        // Not fetch_add: a load, an addition, a store.
        let value = COUNTER.load(Relaxed);
        COUNTER.store(black_box(value + 1), Relaxed);
        if with_lock == 1 {
            IS_TAKEN.store(false, Release);
        }
    }
    exit(0)
}

fn exit(status: u64) -> ! {
    loop {
        call(EXIT, status, 0, 0);
    }
}

fn run(with_lock: bool) -> u64 {
    COUNTER.store(0, Relaxed);
    let threads = STACKS.each_ref().map(|stack| {
        // A function expects the stack as a call leaves it.
        let end = stack.0.get() as u64 + 4096 - 8;
        call(SPAWN, add as *const () as u64, with_lock as u64, end)
    });
    for thread in threads {
        call(WAIT, thread as u64, 0, 0);
    }
    COUNTER.load(Relaxed)
}

fn print(text: &[u8]) {
    call(WRITE, text.as_ptr() as u64, text.len() as u64, 0);
}

fn print_number(mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut begin = digits.len();
    while begin == digits.len() || number > 0 {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    print(&digits[begin..]);
}

extern "C" fn main() -> ! {
    for (name, with_lock) in [("without a lock, lost: ", false), ("with a lock, lost:    ", true)] {
        print(name.as_bytes());
        print_number(2 * TIMES - run(with_lock));
        print(b"\n");
    }
    exit(0)
}

// The stack is a multiple of 16 here, and a function expects it as a call leaves it.
global_asm!(".globl _start", "_start:", "call {main}", "ud2", main = sym main);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    exit(101)
}
