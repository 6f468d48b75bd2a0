//! Finds what ended the sleeps of threads: the maps, and how they are read.

use std::collections::{BTreeMap, HashMap};
use std::io;

use tollgate_model::text::{commands_a_reader, plainly};
use tollgate_model::traced::{Blocked, MOST_ENTRIES, WokenBy};

use super::kernel;
use super::layout::{Asleep, BlockKey, BlockRecord, NO_CALL, Plain};
use super::names;
use super::programs::blocked::Blocked as ForPrograms;
use super::sys::{Map, MapKind};
use crate::request::Request;
use crate::symbols::{Images, Kernel};

/// Limits: frames of a stack (`kernel.perf_event_max_stack`), stacks, and distinct sleeps.
const FRAMES: usize = 127;
const MOST_STACKS: u32 = 16_384;
/// The innermost frames tell what wakes a thread. There are many such stacks, since an interrupt can occur anywhere.
const WAKING_FRAMES: usize = 24;
const MOST_WAKING: u32 = 65_536;
const MOST_BLOCKS: u32 = 65_536;

/// Stacks, and how long threads slept with each, see [`Trace::stacks`](crate::Trace::stacks).
type Folded = Vec<(String, u64)>;

pub(super) struct Blocks {
    asleep: Map,
    stacks: Map,
    wakings: Map,
    blocks: Map,
    offsets: kernel::WakingOffsets,
    with_users: bool,
}

impl Blocks {
    pub fn new(request: &Request) -> Result<Option<Self>, String> {
        if !request.blocked && !request.stacks {
            return Ok(None);
        }
        let map = |kind, name, key, value, entries| {
            Map::new(kind, name, key, value, entries)
                .map_err(|error| format!("the kernel refused a BPF map: {}", plainly(&error)))
        };
        let (key, record) = (size_of::<BlockKey>(), size_of::<BlockRecord>());
        Ok(Some(Self {
            asleep: map(MapKind::TaskStorage, "tollgate_asleep", 4, size_of::<Asleep>(), 0)?,
            stacks: map(MapKind::StackTrace, "tollgate_stacks", 4, 8 * FRAMES, MOST_STACKS)?,
            wakings: map(MapKind::StackTrace, "tollgate_waking", 4, 8 * WAKING_FRAMES, MOST_WAKING)?,
            blocks: map(MapKind::Hash, "tollgate_blocks", key, record, MOST_BLOCKS)?,
            offsets: kernel::waking_offsets()?,
            with_users: request.stacks,
        }))
    }

    pub fn for_programs(&self) -> ForPrograms {
        ForPrograms {
            offsets: self.offsets,
            asleep: self.asleep.raw(),
            stacks: self.stacks.raw(),
            wakings: self.wakings.raw(),
            blocks: self.blocks.raw(),
            with_users: self.with_users,
        }
    }

    pub fn clear(&self) -> io::Result<()> {
        self.blocks.clear()
    }

    /// Reads what ended sleeps, and the stacks with which threads went to sleep, each list longest first.
    pub fn read(&self, images: &mut Images) -> io::Result<(Vec<Blocked>, Folded)> {
        let mut records = Vec::new();
        self.blocks.entries(MOST_BLOCKS as usize, |key, record| {
            records.extend(BlockKey::read(key).zip(BlockRecord::read(record)));
        })?;
        let mut reader = Reader { blocks: self, kernel: Kernel::here(), known: HashMap::new() };
        let mut sums: BTreeMap<Cause, BlockRecord> = BTreeMap::new();
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        for (key, record) in &records {
            let sum = sums.entry(reader.cause(key)).or_default();
            sum.count += record.count;
            sum.total += record.total;
            if self.with_users {
                *folded.entry(reader.line(key, images)).or_default() += record.total;
            }
        }
        let mut blocked: Vec<Blocked> = sums.into_iter().map(|(cause, sum)| cause.with(sum)).collect();
        blocked.sort_by_key(|one| std::cmp::Reverse(one.total_ns));
        blocked.truncate(MOST_ENTRIES);
        let mut folded: Vec<(String, u64)> = folded.into_iter().collect();
        folded.sort_by_key(|line| std::cmp::Reverse(line.1));
        Ok((blocked, folded))
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    call: Option<String>,
    channel: Option<String>,
    by: WokenBy,
    name: String,
    thread: u32,
}

impl Cause {
    fn with(self, sum: BlockRecord) -> Blocked {
        let Self { call, channel, by, name, thread } = self;
        Blocked { call, channel, by, name, thread, count: sum.count, total_ns: sum.total }
    }
}

struct Reader<'a> {
    blocks: &'a Blocks,
    kernel: Kernel,
    /// Function names by stack id; the flag says which of the two maps.
    known: HashMap<(bool, i32), Vec<String>>,
}

impl Reader<'_> {
    /// Returns the names of a stack's kernel functions, innermost first, without those of tracing and the scheduler.
    fn functions(&mut self, is_waking: bool, id: i32) -> &[String] {
        let Self { blocks, kernel, known } = self;
        known.entry((is_waking, id)).or_insert_with(|| {
            let (map, frames) =
                if is_waking { (&blocks.wakings, WAKING_FRAMES) } else { (&blocks.stacks, FRAMES) };
            kernel.functions(&stack(map, frames, id))
        })
    }

    fn cause(&mut self, key: &BlockKey) -> Cause {
        let channel = self.functions(false, key.stacks[0]).first().cloned();
        let functions = self.functions(true, key.waking);
        let (by, name) = match interrupt(functions) {
            Some(interrupt) => interrupt,
            None if functions.is_empty() => (WokenBy::Unknown, text(key.waker_name)),
            None => (WokenBy::Thread, text(key.waker_name)),
        };
        let is_thread = matches!(by, WokenBy::Thread | WokenBy::Unknown);
        Cause { call: call(key), channel, by, name, thread: if is_thread { key.waker } else { 0 } }
    }

    fn line(&mut self, key: &BlockKey, images: &mut Images) -> String {
        let mut frames = vec![clean(&text(key.name))];
        let users = stack(&self.blocks.stacks, FRAMES, key.stacks[1]);
        frames.extend(images.frames(key.process, &users).iter().rev().map(|name| clean(name)));
        frames.extend(self.functions(false, key.stacks[0]).iter().rev().map(|name| clean(name)));
        // bpf_get_stackid keeps one stack of those with equal low bits of their hashes (kernel/bpf/stackmap.c).
        if key.stacks.contains(&-libc::EEXIST) {
            frames.push("[lost]".to_owned());
        }
        frames.join(";")
    }
}

/// Returns the addresses of a stack, innermost first. Without frame pointers, addresses of user code may be meaningless.
fn stack(map: &Map, frames: usize, id: i32) -> Vec<u64> {
    let mut bytes = vec![0u8; 8 * frames];
    if id < 0 || map.lookup(&id.to_ne_bytes(), &mut bytes).is_err() {
        return Vec::new();
    }
    let words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
    words.take_while(|address| *address != 0 && is_canonical(*address)).collect()
}

/// Returns whether an address can be valid with four or five levels of page tables.
fn is_canonical(address: u64) -> bool {
    matches!(address >> 56, 0 | 0xff)
}

/// Finds the interrupt that these functions, innermost first, serve: a timer, or a device by its handler. `None` if a thread
/// acts, even if it runs softirqs that were deferred until it enabled them, as when it sends over loopback: it raised them
/// itself.
fn interrupt(functions: &[String]) -> Option<(WokenBy, String)> {
    let is_entry = |name: &&String| {
        let entries = ["common_interrupt", "run_ksoftirqd", "exc_nmi", "irq_thread", "__irq_exit_rcu"];
        name.starts_with("sysvec_") || name.starts_with("__sysvec_") || entries.contains(&name.as_str())
    };
    let entry = functions.iter().find(is_entry)?;
    let is_timer = |name: &String| {
        name.contains("hrtimer") || name.contains("run_timer_softirq") || name.contains("call_timer_fn")
    };
    if functions.iter().any(is_timer) {
        return Some((WokenBy::Timer, String::new()));
    }
    // The function that the kernel's dispatcher called.
    let is_dispatcher = |name: &String| {
        let dispatchers = ["__handle_irq_event_percpu", "handle_softirqs", "__do_softirq", "irq_thread_fn"];
        dispatchers.contains(&name.as_str())
    };
    let handler = functions.iter().position(is_dispatcher).and_then(|at| functions.get(at.checked_sub(1)?));
    Some(match handler {
        Some(handler) => (WokenBy::Device, handler.clone()),
        None => (WokenBy::Interrupt, entry.clone()),
    })
}

fn call(key: &BlockKey) -> Option<String> {
    (key.call != NO_CALL).then(|| names::shown(key.call as usize))
}

fn text(name: [u64; 2]) -> String {
    let bytes: Vec<u8> =
        name.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Replaces the characters that separate frames and lines in the name of a frame.
fn clean(name: &str) -> String {
    name.chars()
        .map(|c| if c == ';' || c.is_whitespace() || commands_a_reader(c) { '_' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_interrupt_is_named_by_its_handler() {
        let of = |names: &str| interrupt(&functions(names));
        let timer = "hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt sysvec_apic_timer_interrupt";
        assert_eq!(of(timer), Some((WokenBy::Timer, String::new())));
        let disk = "virtblk_done vring_interrupt __handle_irq_event_percpu handle_irq_event common_interrupt";
        assert_eq!(of(disk), Some((WokenBy::Device, "vring_interrupt".to_owned())));
        let net = of("sock_def_readable net_rx_action handle_softirqs __irq_exit_rcu common_interrupt");
        assert_eq!(net.map(|(_, name)| name).as_deref(), Some("net_rx_action"));
        assert_eq!(of("irq_work_run sysvec_irq_work").map(|(by, _)| by), Some(WokenBy::Interrupt));
        assert_eq!(
            of("sock_def_readable net_rx_action handle_softirqs __local_bh_enable_ip tcp_sendmsg"),
            None
        );
        assert_eq!((of("__wake_up_sync_key pipe_write vfs_write"), interrupt(&[])), (None, None));
    }

    #[test]
    fn a_frame_divides_nothing() {
        assert_eq!(clean("a b;c\n"), "a_b_c_");
    }
}
