//! A connection on this machine, from the socket to the last close: lmbench's lat_connect and lat_unix_connect.
//!
//! One thread makes both ends. The kernel completes the handshake inside connect(2), so no thread has to be woken.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use super::endpoint::{Listener, Subject, Verified};
use crate::prelude::*;

timed_loop! {
    /// socket(2), connect(2), accept4(2), and close(2) of the accepted end and then of the other. Words: 0: the listener; 1: its
    /// address; 2: the address's length; 3: its family; 4: all results, combined by OR: negative if any is. If connect fails, the
    /// OR makes accept4's descriptor invalid. On the listener it would wait for the time limit in each remaining iteration.
    connect_and_close: called
        // SOCK_STREAM | SOCK_CLOEXEC
        "mov edi, [r13 + 24]", "mov esi, 0x80001", "xor edx, edx", "mov eax, 41",
        "syscall",
        "or [r13 + 32], rax", "mov rbx, rax",
        "mov rdi, rbx", "mov rsi, [r13 + 8]", "mov rdx, [r13 + 16]", "mov eax, 42",
        "syscall",
        "or [r13 + 32], rax",
        // SOCK_CLOEXEC
        "mov rdi, [r13]", "or rdi, rax", "xor esi, esi", "xor edx, edx", "mov r10d, 0x80000", "mov eax, 288",
        "syscall",
        "or [r13 + 32], rax",
        "mov rdi, rax", "mov eax, 3",
        "syscall",
        "or [r13 + 32], rax",
        "mov rdi, rbx", "mov eax, 3",
        "syscall",
        "or [r13 + 32], rax";
    aarch64
        "ldr x0, [x20, #24]", "mov x1, 1", "movk x1, 8, lsl 16", "mov x2, 0", "mov x8, 198",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]", "mov x21, x0",
        "ldr x1, [x20, #8]", "ldr x2, [x20, #16]", "mov x8, 203",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]",
        "ldr x9, [x20]", "orr x0, x9, x0", "mov x1, 0", "mov x2, 0", "mov x3, 0x80000", "mov x8, 242",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]",
        "mov x8, 57",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]",
        "mov x0, x21", "mov x8, 57",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]"
}

const RESULTS: usize = 4;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/connect",
    operation: "One connection by one thread: socket, connect, accept4, close of the accepted end and of the other. TCP on 127.0.0.1 ends by a reset (SO_LINGER 0), which leaves no TIME_WAIT.",
    avoid: "Keep connections open and send the next request on them.",
    source: "connect(2); accept(2); tcp(7); unix(7); lmbench, lat_connect.c and lat_unix_connect.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, Socket],
    timed: |_| Timed::Loop { code: TimedLoop::Long(connect_and_close), instruction: "syscall/svc", times: 5 },
    cases: |_| each_word("by", By::WORDS),
    kind: Kind::Instance(|timed, params, _| {
        let connections = Connections::new(By::try_from(params)?)?;
        let words = connections.words();
        // SAFETY: the kernel reads the address, which lies in the box that the hooks keep.
        let timed = unsafe { Loop::new(timed, words, None, any) }?;
        Ok(timed.with_hooks(Verified::new(connections)).here())
    }),
    absence: &[KILLED_BY_FILTER],
    ..PLAIN
};

words! {
    enum By("by") { Tcp = "tcp", Unix = "unix" }
}

struct Connections {
    listener: Listener,
    number: u64,
}

impl Connections {
    fn new(by: By) -> Result<Self> {
        let listener = match by {
            By::Tcp => Listener::tcp(),
            By::Unix => Listener::unix(),
        };
        let connections = Self { listener: listener.or_refused("no socket can listen here")?, number: 0 };
        connections.try_one()?;
        Ok(connections)
    }

    fn words(&self) -> [u64; 7] {
        let [address, length] = self.listener.address();
        [self.listener.descriptor() as u64, address, length, self.listener.family() as u64, 0, 0, 0]
    }

    fn try_one(&self) -> Result<()> {
        let (client, accepted) = self.listener.connection().or_refused("no connection can be made")?;
        let (there, back) = (self.number.to_ne_bytes(), (!self.number).to_ne_bytes());
        let came = exchange(&client, &accepted, there)? && exchange(&accepted, &client, back)?;
        if came {
            // The accepted end closes first, as in the loop; otherwise the client would stay in TIME_WAIT.
            drop((accepted, client))
        } else {
            return Err(fail!("the accepted connection is not the one that was asked for"));
        }
        Ok(())
    }
}

/// Sends bytes into one end. Returns whether they arrive at the other.
fn exchange(from: &OwnedFd, to: &OwnedFd, bytes: [u8; 8]) -> Result<bool> {
    let copy = |end: &OwnedFd| end.try_clone().map(std::fs::File::from);
    let sent = || -> io::Result<bool> {
        copy(from)?.write_all(&bytes)?;
        let mut came = [0; 8];
        copy(to)?.read_exact(&mut came)?;
        Ok(came == bytes)
    };
    sent().map_err(|error| Refusal::new("a connection carries no data", &error))
}

impl Subject for Connections {
    fn before(&mut self, context: &mut LoopContext) -> Result<()> {
        context.words[RESULTS] = 0;
        self.number += 1;
        Ok(())
    }

    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()> {
        if (context.words[RESULTS] as i64) < 0 {
            return Err(fail!("socket, connect, accept4 or close failed in one of {iterations} connections"));
        }
        if self.listener.has_more() {
            return Err(fail!("more connections arrived than the {iterations} that were made"));
        }
        self.try_one()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    fn each(test: impl Fn(By, Connections)) {
        for by in [By::Tcp, By::Unix] {
            if let Some(connections) = ready(by, Connections::new(by)) {
                test(by, connections);
            }
        }
    }

    fn run(connections: Connections, times: u64) -> Result<Batch> {
        let words = connections.words();
        // SAFETY: as in the benchmark.
        let timed = unsafe { Loop::new((BENCHMARK.timed)(&Params::new()), words, None, any) }?;
        timed.with_hooks(Verified::new(connections)).here().batch(Clock::Kernel, Order::new(times))
    }

    #[test]
    fn connections_are_made_and_nothing_is_left_of_them() {
        each(|by, connections| {
            let port = port(&connections.listener);
            assert!(run(connections, 50).is_ok_and(|batch| batch.work > 0), "{by:?}");
            let Ok(table) = std::fs::read_to_string("/proc/net/tcp") else {
                return eprintln!("skipped: no /proc/net/tcp");
            };
            let left: Vec<&str> =
                table.lines().filter(|line| by == By::Tcp && line.contains(&port)).collect();
            assert!(left.is_empty(), "{left:?}");
        });
    }

    /// The address as /proc/net/tcp shows it.
    fn port(listener: &Listener) -> String {
        // SAFETY: the storage is large enough for any family's address; for another family these are other bytes.
        let address = unsafe { &*(listener.address()[0] as *const libc::sockaddr_in) };
        format!("0100007F:{:04X}", u16::from_be(address.sin_port))
    }

    #[test]
    fn without_a_connection_no_accept_waits() {
        const TIMES: u64 = 1_000;
        each(|by, connections| {
            let mut words = connections.words();
            // Too short for an address.
            words[2] = 1;
            // SAFETY: as in the benchmark.
            let timed = unsafe { Loop::new((BENCHMARK.timed)(&Params::new()), words, None, any) };
            let mut timed = timed.expect("a loop").with_hooks(Verified::new(connections)).here();
            let began = std::time::Instant::now();
            let Err(Refusal::Fail(why)) = timed.batch(Clock::Kernel, Order::new(TIMES)) else {
                panic!("{by:?}: a failure")
            };
            assert!(why.contains("failed in one of"), "{by:?}: {why}");
            // With waits of two seconds it would be half an hour.
            assert!(began.elapsed().as_secs() < 600, "{by:?}");
        });
    }

    #[test]
    fn a_connection_more_or_less_fails() {
        each(|by, connections| {
            let stray = connections.listener.client().expect("a connection");
            let Err(Refusal::Fail(why)) = run(connections, 5) else { panic!("{by:?}: a failure") };
            // The loop's first accept takes the stray connection.
            assert!(why.contains("more connections"), "{by:?}: {why}");
            drop(stray);
        });
        each(|by, connections| {
            // SAFETY: shutdown(2) takes numbers.
            unsafe { libc::shutdown(connections.listener.descriptor(), libc::SHUT_RDWR) };
            let Err(Refusal::Fail(why)) = run(connections, 5) else { panic!("{by:?}: a failure") };
            assert!(why.contains("failed in one of"), "{by:?}: {why}");
        });
    }
}
