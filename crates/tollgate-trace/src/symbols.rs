//! Names of addresses: kernel functions from /proc/kallsyms, user code from the files that processes map ([`images`]).

mod functions;
mod image;
mod images;
mod source_name;
mod user;
mod watch;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

pub(crate) use images::Images;
pub use user::{UserCode, UserFunction};
pub(crate) use watch::Watch;

const MOST_BYTES: u64 = 128 << 20;

pub(crate) struct Kernel {
    functions: Vec<(u64, Box<str>)>,
    /// The scheduler's own functions (`in_sched_functions` of kernel/sched/core.c).
    scheduler: std::ops::Range<u64>,
}

impl Kernel {
    /// Reads the kernel's functions; none if /proc/kallsyms is not readable or has no addresses (kernel.kptr_restrict).
    pub fn here() -> Self {
        match File::open("/proc/kallsyms") {
            Ok(file) => Self::read(BufReader::with_capacity(1 << 18, file.take(MOST_BYTES))),
            Err(_) => Self { functions: Vec::new(), scheduler: 0..0 },
        }
    }

    fn read(table: impl BufRead) -> Self {
        let mut functions = Vec::new();
        let mut scheduler = 0..0;
        for line in table.lines().map_while(Result::ok) {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            match name {
                _ if address == 0 => {}
                "__sched_text_start" => scheduler.start = address,
                "__sched_text_end" => scheduler.end = address,
                _ if matches!(kind, "t" | "T" | "w" | "W") => functions.push((address, name.into())),
                _ => {}
            }
        }
        functions.sort_unstable_by_key(|(address, _)| *address);
        Self { functions, scheduler }
    }

    /// Returns the names of the functions at these addresses, without those of the scheduler and of tracing.
    pub fn functions(&self, addresses: &[u64]) -> Vec<String> {
        let others = addresses.iter().filter(|address| !self.scheduler.contains(*address));
        others.map(|address| self.name(*address)).filter(|name| !is_of_tracing(name)).collect()
    }

    fn name(&self, address: u64) -> String {
        let behind = self.functions.partition_point(|(begin, _)| *begin <= address);
        match behind.checked_sub(1).and_then(|at| self.functions.get(at)) {
            Some((_, name)) => name.to_string(),
            None => format!("{address:#x}"),
        }
    }
}

fn is_of_tracing(name: &str) -> bool {
    ["bpf_", "__bpf_", "__traceiter_", "__probestub_", "trace_event_raw_", "try_to_wake_up"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_function_that_is_not_the_schedulers_is_where_a_thread_waits() {
        let table = "\
ffffffff81000100 T __schedule
ffffffff81000200 T schedule
ffffffff81000000 T __sched_text_start
ffffffff81000300 T __sched_text_end
ffffffff81000300 t pipe_read
ffffffff81000400 T vfs_read
ffffffff81000500 d some_data
nonsense
";
        let kernel = Kernel::read(table.as_bytes());
        let functions = kernel.functions(&[
            0xffff_ffff_8100_0110,
            0xffff_ffff_8100_0204,
            0xffff_ffff_8100_0342,
            0xffff_ffff_8100_0401,
        ]);
        assert_eq!(functions, ["pipe_read", "vfs_read"]);
        assert_eq!(kernel.functions(&[0x10]), ["0x10"]);
    }
}
