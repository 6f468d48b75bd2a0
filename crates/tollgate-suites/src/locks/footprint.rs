//! Memory of a lock, from this program's own sections.

use std::io::{self, BufRead, BufReader};
use std::{fs::File, rc::Rc};

use super::{layout::Guard, method::Method};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "locks/footprint",
    operation: "Memory of a lock: its code, its data for one lock and one thread, and the kernel code that it calls.",
    avoid: "Use a lock of one word where millions of objects have one each.",
    source: "futex(7); Linux Documentation/userspace-api/rseq.rst",
    crosses: &[KernelImage],
    crossed_in: |params, _| Part::try_from(params) == Ok(Part::Kernel),
    timed: |_| Timed::Whole("the addresses of its parts in this program, and /proc/kallsyms"),
    unit: Unit::Bytes,
    cases: |_| {
        let case = |by: Method, part: &str| params(&[("by", by.name().into()), ("part", part.into())]);
        let own = Method::LOCKS.into_iter().flat_map(|by| [case(by, "code"), case(by, "data")]);
        let in_kernel = |by: &Method| !kernel_functions(*by).is_empty();
        own.chain(Method::LOCKS.into_iter().filter(in_kernel).map(|by| case(by, "kernel"))).collect()
    },
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    ..PLAIN
};

words! {
    enum Part("part") { Code = "code", Data = "data", Kernel = "kernel" }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let method = Method::from_params(params)?;
    let amount = match Part::try_from(params)? {
        Part::Code => code(method),
        Part::Data => data(method),
        Part::Kernel => kernel(method, context)?,
    };
    Ok(Instance::new(amount.0).with_most(1).with_notes([amount.1]))
}

type Explained = (Amount, String);

/// Bytes of code, including contended paths.
fn code(method: Method) -> Explained {
    let extent = method.code().extent;
    let length = |(from, to): (usize, usize)| to.saturating_sub(from);
    let [take, release] = [extent.take, extent.release].map(length);
    let aside: usize = extent.aside.into_iter().map(length).sum();
    let mut note = format!("acquire {take}, release {release}");
    if aside > 0 {
        note.push_str(&format!(", contended paths {aside}"));
    }
    if matches!(method, Method::PthreadTrylock | Method::SemTrywait) {
        note.push_str("; excludes the C library's functions, whose sizes are unknown");
    }
    (Amount((take + release + aside) as u64), note)
}

/// Bytes of data of one lock and one thread, plus constants.
fn data(method: Method) -> Explained {
    let (from, to) = method.code().extent.data;
    let constant = to.saturating_sub(from);
    let Memory { lock, thread, of_thread } = memory(method);
    let mut note = format!("{lock} per lock");
    if thread > 0 {
        note.push_str(&format!(", {thread} per thread: {of_thread}"));
    }
    if constant > 0 {
        note.push_str(&format!("; constant {constant}: the sequence's descriptor"));
    }
    (Amount((lock + thread + constant) as u64), note)
}

/// Data of a method, in bytes, without padding.
struct Memory {
    lock: usize,
    thread: usize,
    of_thread: &'static str,
}

fn memory(method: Method) -> Memory {
    const WORD: usize = size_of::<u32>();
    let (lock, thread, of_thread) = match method {
        Method::Plain | Method::Xchg | Method::Cmpxchg => (WORD, 0, ""),
        Method::Rseq => (WORD, 32, "struct rseq, one for all locks"),
        Method::RseqCpu => (2 * WORD, 32, "struct rseq, one for all locks"),
        Method::Lamport | Method::LamportUp => {
            (WORD + Guard::OF_ALL, Guard::OF_EACH + 2 * WORD, "its b, its number, and the number of threads")
        }
        Method::FutexTrylockPi => (WORD, WORD, "its thread id"),
        Method::Eventfd => (WORD, 8, "the buffer of read and write"),
        Method::Semop => (WORD, 2 * size_of::<libc::sembuf>(), "the two operations"),
        Method::PthreadTrylock => (size_of::<libc::pthread_mutex_t>(), 0, ""),
        Method::SemTrywait => (size_of::<libc::sem_t>(), 0, ""),
    };
    Memory { lock, thread, of_thread }
}

/// The kernel functions that implement a method and little else (kernel/futex/pi.c, fs/eventfd.c, ipc/sem.c, kernel/rseq.c).
fn kernel_functions(method: Method) -> &'static [&'static str] {
    match method {
        Method::Rseq | Method::RseqCpu => &["__rseq_handle_notify_resume"],
        Method::FutexTrylockPi => &["futex_lock_pi", "futex_unlock_pi", "futex_lock_pi_atomic"],
        Method::Eventfd => &["eventfd_read", "eventfd_write"],
        Method::Semop => &["do_semtimedop", "__do_semtimedop"],
        _ => &[],
    }
}

fn kernel(method: Method, context: &mut Context) -> Result<Explained> {
    let wanted = kernel_functions(method);
    let known = context.shared("functions", |_| symbols().map(Rc::new))?;
    let found: Vec<&(String, u64)> =
        known.iter().filter(|(name, _)| wanted.contains(&name.as_str())).collect();
    if found.is_empty() {
        return Err(skip!("/proc/kallsyms names none of {}", wanted.join(", ")));
    }
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let bytes = found.iter().map(|(_, bytes)| bytes).sum();
    Ok((Amount(bytes), names.join(", ")))
}

fn symbols() -> Result<Vec<(String, u64)>> {
    lengths(BufReader::new(File::open("/proc/kallsyms").map_err(unreadable)?))
}

fn unreadable(error: io::Error) -> Refusal {
    skip!("/proc/kallsyms cannot be read: {}", tollgate_model::text::plainly(&error))
}

/// Returns the lengths of wanted functions from lines such as `ffffffff8143d210 T futex_lock_pi` (proc(5)). The lines are in
/// the order of addresses: a function ends where the next one begins.
fn lengths(symbols: impl BufRead) -> Result<Vec<(String, u64)>> {
    const MOST_BYTES: u64 = 64 << 20;
    let wanted: Vec<&str> = Method::LOCKS.into_iter().flat_map(kernel_functions).copied().collect();
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut open: Vec<(String, u64)> = Vec::new();
    for line in symbols.take(MOST_BYTES).lines() {
        let line = line.map_err(unreadable)?;
        let mut words = line.split_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        if address == 0 && matches!(kind, "t" | "T") {
            let why = "/proc/kallsyms hides its addresses (kernel.kptr_restrict; root can read them)";
            return Err(Refusal::Skip(why.to_owned()));
        }
        if open.first().is_some_and(|(_, start)| address > *start) {
            found.extend(open.drain(..).map(|(name, start)| (name, address - start)));
            // The other lines need not be read.
            if wanted.iter().all(|wanted| found.iter().any(|(name, _)| name == wanted)) {
                break;
            }
        }
        if wanted.contains(&name) {
            open.push((name.to_owned(), address));
        }
    }
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    Ok(found)
}

struct Amount(u64);

impl Runner for Amount {
    fn batch(&mut self, _: Clock, order: Order) -> Result<Batch> {
        let work = self.0 * order.all();
        Ok(Batch::new(work, 0, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_where_the_next_one_begins() {
        let text = "ffffffff81000000 T _text\nffffffff81000010 t eventfd_write\nffffffff81000010 T alias\n\
                    ffffffff81000110 t eventfd_read\nffffffff81000180 T futex_lock_pi\nnonsense\n";
        let found = lengths(text.as_bytes()).expect("addresses");
        assert_eq!(found, [("eventfd_read".to_owned(), 0x70), ("eventfd_write".to_owned(), 0x100)]);
        assert!(matches!(lengths("0000000000000000 T _text\n".as_bytes()), Err(Refusal::Skip(_))));
        assert_eq!(lengths("".as_bytes()), Ok(Vec::new()));
    }

    #[test]
    fn extents_match_the_code_and_the_data() {
        for method in Method::LOCKS {
            let extent = method.code().extent;
            for (from, to) in [extent.take, extent.release].into_iter().chain(extent.aside) {
                assert!(from <= to && to - from < 512, "{method:?}");
            }
            assert!(code(method).0.0 >= 7, "{method:?}");
            assert!(data(method).0.0 >= 4, "{method:?}");
        }
        // MOV r32,imm32; XCHG m32,r32; MOV m32,imm32. On arm64 three instructions too: MOV, SWPA, STLR.
        assert!([5 + 2 + 6, 3 * 4].contains(&code(Method::Xchg).0.0));
        let (from, to) = Method::Rseq.code().extent.data;
        assert_eq!(to - from, 32, "struct rseq_cs");
    }
}
