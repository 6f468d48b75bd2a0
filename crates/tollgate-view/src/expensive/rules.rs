//! The rules: a row, an alternative, and the least ratio that is worth a sentence.

use tollgate_model::{Case, Unit};

use super::{Expense, Known, Times, times};
use crate::facts;
use crate::summary::{BASELINE, Figures, Summary};

pub(super) fn all(summary: &Summary) -> Vec<Expense> {
    let rules = [
        system_call,
        clock,
        interrupt,
        vm_exit,
        fresh_memory,
        fork,
        wake_up,
        storage,
        flush,
        shared_line,
        small_pages,
    ];
    rules.iter().filter_map(|rule| rule(summary)).collect()
}

/// The row of a benchmark with these parameters, which are named as in the registry's headlines; the first if several have them.
fn row<'a>(
    summary: &'a Summary,
    benchmark: &str,
    params: &[(&str, &str)],
) -> Option<(&'a Case, &'a Figures<'a>)> {
    let has = |case: &Case, name: &str, value: &str| {
        case.params.get(name).is_some_and(|own| own.to_string() == value)
    };
    summary.measured().find(|(case, figures)| {
        case.benchmark == benchmark
            && figures.is_estimate()
            && !figures.is_count()
            && params.iter().all(|(name, value)| has(case, name, value))
    })
}

fn known<'a>(summary: &'a Summary, benchmark: &str, params: &[(&str, &str)]) -> Option<Known<'a>> {
    let (case, figures) = row(summary, benchmark, params).filter(|(_, figures)| figures.below.is_none())?;
    Some(Known { case, figures, interval: figures.estimate.interval? })
}

/// A slow row and a fast one, and their ratio if it is decided and at least `least`.
fn pair<'a>(
    slow: &Known<'a>,
    (case, figures): (&'a Case, &'a Figures<'a>),
    least: f64,
) -> Option<(Times, Vec<Case>)> {
    let times = times(slow, figures).filter(|times| times.least >= least)?;
    Some((times, vec![slow.case.clone(), case.clone()]))
}

/// `usual` is the ratio on a machine without a hypervisor and with a local SSD: the further above it, the earlier it is shown.
fn expense(benchmark: &'static str, times: f64, usual: f64, from: Vec<Case>, texts: [String; 3]) -> Expense {
    let [what, cause, action] = texts;
    Expense { what, cause, action, benchmark, from, facts: Vec::new(), rank: times / usual }
}

/// A system call takes about 100 to 400 cycles of the TSC on x86-64 without page-table isolation: SYSCALL and SYSRET with the
/// kernel's entry code. PTI adds two writes of CR3, some 200 cycles each (Documentation/arch/x86/pti.rst).
const USUAL_CYCLES: f64 = 400.0;
const USUAL_CYCLES_WITH_PTI: f64 = 900.0;

/// Whether a system call is slow for an x86-64 machine, or how fast it is. The first in rank, since everything is compared with
/// it.
fn system_call(summary: &Summary) -> Option<Expense> {
    let call = known(summary, BASELINE, &[])?;
    let facts = &summary.run.facts;
    let hz = facts::number(facts, facts::CLOCK_HZ).filter(|_| facts::clock_is_tsc(facts))?;
    let has_pti = facts::flag(facts, "mitigation.pti") == Some(true);
    let limit = if has_pti { USUAL_CYCLES_WITH_PTI } else { USUAL_CYCLES };
    let cycles = |ns: f64| ns * hz / 1e9;
    let is_slow = match (cycles(call.interval.low) > limit, cycles(call.interval.high) <= limit) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let half_width = super::half_width(call.interval, call.median());
    let shown = super::rounded(cycles(call.median()), super::digits(half_width));
    let what = format!("System call {}, {shown} cycles", call.in_words());
    let verdict = match is_slow {
        Some(false) => "not slow".to_owned(),
        Some(true) => format!("slow; usual: up to {limit}"),
        None => format!("usual: up to {limit}"),
    };
    // Only a program with many operations at once can use it, and only if its calls are slow.
    let batch = known(summary, "entry/io-uring-nop", &[("batch", "64")]).filter(|_| is_slow == Some(true));
    let faster = batch.filter(|batch| batch.interval.high < call.interval.low);
    let action = faster
        .as_ref()
        .map(|batch| format!("many at once by io_uring {} each", batch.in_words()))
        .unwrap_or_default();
    let from = std::iter::once(&call).chain(&faster).map(|known| known.case.clone()).collect();
    let case = call.case;
    let found = expense(BASELINE, f64::INFINITY, 1.0, from, [what, verdict, action]);
    Some(if is_slow == Some(false) { found } else { found.caused_by(summary, case, "") })
}

fn clock(summary: &Summary) -> Option<Expense> {
    let clock = known(summary, "entry/vdso-clock", &[])?;
    let call = known(summary, BASELINE, &[])?;
    // A reading in user mode takes less than a call, one in the kernel at least as long.
    if clock.interval.low < call.interval.low {
        return None;
    }
    let what = format!("clock_gettime {}", clock.in_words());
    let from = vec![clock.case.clone(), call.case.clone()];
    let action = "use a clock source that the vDSO reads (TSC, kvm-clock)";
    let found = expense("entry/vdso-clock", 20.0, 1.0, from, [what, "no vDSO answer".into(), action.into()]);
    Some(found.caused_by(summary, clock.case, ""))
}

/// INT 80h over SYSCALL. It does not describe other gates: its handler reads the local APIC since Linux 6.7, in a guest a VM
/// exit.
fn interrupt(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 2.5;
    let gate = known(summary, "entry/int80", &[])?;
    let (times, from) = pair(&gate, row(summary, BASELINE, &[])?, SLOW)?;
    let what = format!("INT 80h {} a call", times.in_words);
    let action = "use SYSCALL".to_owned();
    let found = expense("entry/int80", times.times, 1.5, from, [what, String::new(), action]);
    Some(found.caused_by(summary, gate.case, "gate, stack switch and IRET"))
}

fn vm_exit(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 5.0;
    let exit = known(summary, "entry/vm-exit", &[])?;
    let (times, from) = pair(&exit, row(summary, BASELINE, &[])?, SLOW)?;
    let what = format!("VM exit {}, {} a call", exit.in_words(), times.in_words);
    let action = "fewer timers, IPIs and device writes".to_owned();
    let found = expense("entry/vm-exit", times.times, 20.0, from, [what, String::new(), action]);
    Some(found.caused_by(summary, exit.case, "the hypervisor handles it"))
}

fn fresh_memory(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 1.5;
    let fault = known(summary, "traps/minor-fault", &[("page", "4k")])?;
    let fresh = |by: &str| known(summary, "traps/fresh-page", &[("by", by)]);
    let huge = row(summary, "traps/fresh-page", &[("by", "huge")])?;
    let (times, mut from) = pair(&fault, huge, SLOW)?;
    let what = format!("Page fault {}", fault.in_words());
    let in_huge = match huge.1.below {
        None => fresh("huge").map(|huge| huge.in_words()),
        Some(_) => Some(times.in_words.clone() + " less"),
    }?;
    let mut action = format!("in huge pages {in_huge}");
    if let Some(populated) =
        fresh("populate").filter(|populated| populated.interval.high < fault.interval.low)
    {
        action.push_str(&format!(", MAP_POPULATE {}", populated.in_words()));
        from.push(populated.case.clone());
    }
    let found = expense("traps/minor-fault", times.times, 4.0, from, [what, String::new(), action]);
    Some(found.caused_by(summary, fault.case, "one fault a page"))
}

fn fork(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 1.5;
    const NONE: [(&str, &str); 2] = [("dirty_mib", "0"), ("until", "exited")];
    let forked = known(summary, "processes/fork", &NONE)?;
    let (gain, of_gain, action) = match spawned(summary) {
        Some(found) => found,
        None => {
            let (gain, from) = pair(&forked, row(summary, "processes/thread", &NONE)?, SLOW)?;
            let action = format!("{} a thread; to start a program use posix_spawn", gain.in_words);
            (gain, from, action)
        }
    };
    let mut what = format!("fork {}", forked.in_words());
    let mut from = vec![forked.case.clone()];
    if let Some((each, grown)) = ["256", "64"].iter().find_map(|mib| for_each_mib(summary, &forked, mib)) {
        what.push_str(&format!(" + {each} per MiB written"));
        from.push(grown);
    }
    from.extend(of_gain);
    let texts = [what, "copies page tables".to_owned(), action];
    Some(expense("processes/fork", gain.times, 3.0, from, texts).caused_by(summary, forked.case, ""))
}

/// posix_spawn over fork and exec: for a usual program, and for one without libc started by a process that has written 64 MiB.
/// The larger gain ranks.
fn spawned(summary: &Summary) -> Option<(Times, Vec<Case>, String)> {
    let started = |params: &[(&str, &str)]| {
        let forked = known(summary, "processes/fork-exec", params)?;
        pair(&forked, row(summary, "processes/posix-spawn", params)?, 1.0)
    };
    let usual = started(&[("dirty_mib", "0"), ("image", "dynamic"), ("until", "exited")]);
    let large = started(&[("dirty_mib", "64"), ("image", "bare"), ("page", "4k"), ("until", "exited")]);
    let times = |gain: &Option<(Times, Vec<Case>)>| gain.as_ref().map(|(gain, _)| gain.in_words.clone());
    let action = match (times(&usual), times(&large)) {
        (None, None) => return None,
        (Some(usual), None) => format!("posix_spawn is {usual} faster than fork + exec"),
        (None, Some(large)) => {
            format!(
                "with 64 MiB written posix_spawn of a program without libc is {large} faster than fork + exec"
            )
        }
        (Some(usual), Some(large)) => format!(
            "posix_spawn is {usual} faster than fork + exec; with 64 MiB written, of a program without libc, {large}"
        ),
    };
    let found: Vec<_> = usual.into_iter().chain(large).collect();
    let from = found.iter().flat_map(|(_, from)| from.clone()).collect();
    let largest =
        found.into_iter().map(|(gain, _)| gain).max_by(|one, other| one.times.total_cmp(&other.times));
    largest.map(|gain| (gain, from, action))
}

fn for_each_mib(summary: &Summary, forked: &Known, mib: &str) -> Option<(String, Case)> {
    let params = [("dirty_mib", mib), ("page", "4k"), ("until", "exited")];
    let grown = known(summary, "processes/fork", &params)?;
    let of = |grown: f64, none: f64| (grown - none) / mib.parse::<f64>().unwrap_or(f64::NAN);
    let each = of(grown.median(), forked.median());
    let least = of(grown.interval.low, forked.interval.high);
    let half_width = (of(grown.interval.high, forked.interval.low) - least) / 2.0 / each;
    (least > 0.0).then(|| (super::amount(each, half_width, Unit::Nanoseconds), grown.case.clone()))
}

fn wake_up(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 1.5;
    let switch = |placement| [("by", "futex"), ("placement", placement)];
    let other = known(summary, "processes/switch", &switch("other-cpu"))?;
    let (times, from) = pair(&other, row(summary, "processes/switch", &switch("same-cpu"))?, SLOW)?;
    let what = format!("Wake-up on another CPU {}, {} the same", other.in_words(), times.in_words);
    let cause = "IPI and idle exit".to_owned();
    let action = "keep threads that talk together".to_owned();
    let found = expense("processes/switch", times.times, 2.0, from, [what, cause, action]);
    Some(found.caused_by(summary, other.case, ""))
}

fn storage(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 3.0;
    let read = |state| [("block", "4k"), ("state", state)];
    let uncached = known(summary, "files/read", &read("uncached"))?;
    let (times, from) = pair(&uncached, row(summary, "files/read", &read("cached"))?, SLOW)?;
    let what = format!("Uncached 4 KiB read {}, {} a cached one", uncached.in_words(), times.in_words);
    let action = "read ahead, or many at once by io_uring".to_owned();
    let found = expense("files/read", times.times, 100.0, from, [what, device(summary, "waits for"), action]);
    Some(found.caused_by(summary, uncached.case, ""))
}

fn flush(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 10.0;
    let fsync = known(summary, "files/fsync", &[])?;
    let (times, from) = pair(&fsync, row(summary, "files/open", &[])?, SLOW)?;
    let what = format!("fsync {}, {} an open", fsync.in_words(), times.in_words);
    let action = "group writes, one fsync for many".to_owned();
    let found = expense("files/fsync", times.times, 50.0, from, [what, device(summary, "flushes"), action]);
    Some(found.caused_by(summary, fsync.case, ""))
}

/// `waits for vda`, by the device that the file system is on.
fn device(summary: &Summary, does: &str) -> String {
    format!("{does} {}", facts::text(&summary.run.facts, "files.device").unwrap_or("the device"))
}

fn shared_line(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 2.0;
    let word = |distance| row(summary, "memory/neighbour", &[("distance", distance)]);
    if let Some((times, from)) = known(summary, "memory/neighbour", &[("distance", "8")])
        .zip(word("128"))
        .and_then(|(near, far)| pair(&near, far, SLOW))
    {
        let what = format!("False sharing: stores in one line {} slower", times.in_words);
        let texts = [what, "the line moves between cores".into(), "keep them 128 bytes apart".into()];
        return Some(expense("memory/neighbour", times.times, 8.0, from, texts));
    }
    let op = |threads| [("op", "add"), ("threads", threads)];
    let moved = known(summary, "memory/pingpong", &[("protocol", "store")])?;
    let own = row(summary, "memory/latency", &[("kib", "16"), ("page", "4k")])?;
    let (times, mut from) = pair(&moved, own, SLOW)?;
    from.extend(row(summary, "memory/atomic", &op("2")).map(|(case, _)| case.clone()));
    let what = format!("A line from another core {}, {} an L1 hit", moved.in_words(), times.in_words);
    let texts = [what, "the line moves between cores".into(), "keep data per CPU, no shared counters".into()];
    Some(expense("memory/pingpong", times.times, 50.0, from, texts))
}

/// Loads from a large working set with small pages over those with huge ones.
fn small_pages(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 1.2;
    let load = |page| [("kib", "131072"), ("page", page)];
    let small = known(summary, "memory/latency", &load("4k"))?;
    let huge = known(summary, "memory/latency", &load("2m"))?;
    let (times, from) = pair(&small, (huge.case, huge.figures), SLOW)?;
    let what = format!("Random loads in 128 MiB take {}", small.in_words());
    let action = format!("huge pages {} (madvise)", huge.in_words());
    let found = expense("memory/latency", times.times, 1.5, from, [what, "TLB misses".to_owned(), action]);
    Some(found.caused_by(summary, small.case, ""))
}
