//! The rules about one row, or about three and more.

use tollgate_model::{Case, ParamValue, Unit};
use tollgate_output::figures;

use super::row::{Known, Row, Times, amount, digits, known, rounded, row, row_of};
use super::sharing::sharing;
use super::{Expense, Finding};
use crate::facts;
use crate::summary::{BASELINE, Summary};

pub(super) const EXPENSES: &[fn(&Summary) -> Option<Expense>] = &[system_call, clock, fork];

pub(super) const FINDINGS: &[fn(&Summary) -> Vec<Finding>] = &[
    |summary| counts(summary).into_iter().chain(rings(summary)).collect(),
    sharing,
    levels,
    |summary| three_calls(summary).into_iter().chain(trade(summary)).collect(),
    |summary| fork_grows(summary).into_iter().chain(fork_or_spawn(summary)).collect(),
    |summary| page_cache(summary).into_iter().chain(direct_against_first(summary)).collect(),
    |summary| ["small", "large"].into_iter().filter_map(|size| cold(summary, size)).collect(),
];

fn cases<'a>(rows: impl IntoIterator<Item = Row<'a>>) -> Vec<Case> {
    rows.into_iter().map(|row| row.case.clone()).collect()
}

/// A system call takes about 100 to 400 cycles of the TSC on x86-64 without page-table isolation: SYSCALL and SYSRET with the
/// kernel's entry code. PTI adds two writes of CR3, some 200 cycles each (Documentation/arch/x86/pti.rst).
const USUAL_CYCLES: f64 = 400.0;
const USUAL_CYCLES_WITH_PTI: f64 = 900.0;

/// Whether a system call is slow for an x86-64 machine, or how fast it is. The first in rank, since everything is compared with
/// it.
fn system_call(summary: &Summary) -> Option<Expense> {
    let call = known(summary, BASELINE)?;
    let facts = &summary.run.facts;
    if facts::is_arm64(facts) {
        return burdened(summary, call);
    }
    let hz = facts::number(facts, facts::CLOCK_HZ).filter(|_| facts::clock_is_tsc(facts))?;
    let has_pti = facts::flag(facts, "mitigation.pti") == Some(true);
    let limit = if has_pti { USUAL_CYCLES_WITH_PTI } else { USUAL_CYCLES };
    let cycles = |ns: f64| ns * hz / 1e9;
    let is_slow = cycles(call.interval.low) > limit;
    let is_fast = cycles(call.interval.high) <= limit;
    let shown = rounded(cycles(call.median()), digits(call.half_width()));
    let cause = match (is_slow, is_fast) {
        (_, true) => "not slow".to_owned(),
        (true, _) => format!("slow; usual: up to {limit}"),
        _ => format!("usual: up to {limit}"),
    };
    // Only a program with many operations at once can use it, and only if its calls are slow.
    let batch = known(summary, "entry/io-uring-nop{batch=64}").filter(|_| is_slow);
    let faster = batch.filter(|batch| batch.interval.high < call.interval.low);
    let expense = Expense {
        what: format!("System call {}, {shown} cycles", call.in_words()),
        cause,
        action: faster
            .map(|batch| format!("many at once by io_uring {} each", batch.in_words()))
            .unwrap_or_default(),
        benchmark: BASELINE,
        from: cases([call].into_iter().chain(faster).map(|known| known.row)),
        facts: Vec::new(),
        rank: f64::INFINITY,
    };
    Some(if is_fast { expense } else { expense.caused_by(summary, call.row.case, "") })
}

/// A system call of a processor whose counter ticks at another rate than its cycles, if a fact makes it slow.
fn burdened(summary: &Summary, call: Known) -> Option<Expense> {
    let expense = Expense {
        what: format!("System call {}", call.in_words()),
        cause: String::new(),
        action: String::new(),
        benchmark: BASELINE,
        from: cases([call.row]),
        facts: Vec::new(),
        rank: f64::INFINITY,
    };
    Some(expense.caused_by(summary, call.row.case, "")).filter(|expense| !expense.cause.is_empty())
}

fn clock(summary: &Summary) -> Option<Expense> {
    let (clock, call) = (known(summary, "entry/vdso-clock")?, known(summary, BASELINE)?);
    let sources = if facts::is_arm64(&summary.run.facts) { "arch_sys_counter" } else { "TSC, kvm-clock" };
    // A reading in user mode takes less than a call, one in the kernel at least as long.
    let expense = (clock.interval.low >= call.interval.low).then(|| Expense {
        what: format!("clock_gettime {}", clock.in_words()),
        cause: "no vDSO answer".to_owned(),
        action: format!("use a clock source that the vDSO reads ({sources})"),
        benchmark: "entry/vdso-clock",
        from: cases([clock.row, call.row]),
        facts: Vec::new(),
        rank: 20.0,
    });
    Some(expense?.caused_by(summary, clock.row.case, ""))
}

const FORK: &str = "processes/fork{dirty_mib=0, until=exited}";

fn fork(summary: &Summary) -> Option<Expense> {
    const SLOW: f64 = 1.5;
    let forked = known(summary, FORK)?;
    let a_thread = || {
        let thread = row(summary, "processes/thread{dirty_mib=0, until=exited}")?;
        let gain = Times::of(forked.row, thread).filter(|gain| gain.least >= SLOW)?;
        let action = format!("{} a thread; to start a program use posix_spawn", gain.in_words());
        Some((gain.times, vec![forked.row, thread], action))
    };
    let (gain, rows, action) = spawned(summary).or_else(a_thread)?;
    let each = [256, 64].into_iter().find_map(|mib| for_each_mib(summary, forked, mib, "4k"));
    let (each, grown) = each.unzip();
    let each = each.map(|each| format!(" + {each} per MiB written")).unwrap_or_default();
    let expense = Expense {
        what: format!("fork {}{each}", forked.in_words()),
        cause: "copies page tables".to_owned(),
        action,
        benchmark: "processes/fork",
        from: cases([forked.row].into_iter().chain(grown).chain(rows)),
        facts: Vec::new(),
        rank: gain / 3.0,
    };
    Some(expense.caused_by(summary, forked.row.case, ""))
}

/// posix_spawn over fork and exec: for a usual program, and for one without libc started by a process that has written 64 MiB.
/// The larger gain ranks.
fn spawned<'a>(summary: &'a Summary) -> Option<(f64, Vec<Row<'a>>, String)> {
    let started = |params: &str| {
        let forked = row(summary, &format!("processes/fork-exec{params}"))?;
        let spawned = row(summary, &format!("processes/posix-spawn{params}"))?;
        Some((Times::of(forked, spawned).filter(|gain| gain.least >= 1.0)?, [forked, spawned]))
    };
    let usual = started("{dirty_mib=0, image=dynamic, until=exited}");
    let large = started("{dirty_mib=64, image=bare, page=4k, until=exited}");
    let words = |gain: &(Times, _)| gain.0.in_words();
    let action = match (usual.as_ref().map(words), large.as_ref().map(words)) {
        (None, None) => return None,
        (Some(usual), None) => format!("posix_spawn is {usual} faster than fork + exec"),
        (None, Some(large)) => format!(
            "with 64 MiB written posix_spawn of a program without libc is {large} faster than fork + exec"
        ),
        (Some(usual), Some(large)) => format!(
            "posix_spawn is {usual} faster than fork + exec; with 64 MiB written, of a program without libc, {large}"
        ),
    };
    let found = || usual.iter().chain(&large);
    let largest = found().map(|(gain, _)| gain.times).fold(0.0, f64::max);
    Some((largest, found().flat_map(|(_, rows)| *rows).collect(), action))
}

/// The additional time of fork for each MiB that its caller has written in pages of this size, if there is one.
fn for_each_mib<'a>(summary: &'a Summary, forked: Known, mib: u32, page: &str) -> Option<(String, Row<'a>)> {
    let pattern = format!("processes/fork{{dirty_mib={mib}, page={page}, until=exited}}");
    let grown = known(summary, &pattern)?;
    let of = |grown: f64, none: f64| (grown - none) / f64::from(mib);
    let each = of(grown.median(), forked.median());
    let least = of(grown.interval.low, forked.interval.high);
    let half_width = (of(grown.interval.high, forked.interval.low) - least) / 2.0 / each;
    (least > 0.0).then(|| (amount(each, half_width, Unit::Nanoseconds), grown.row))
}

fn fork_grows(summary: &Summary) -> Option<Finding> {
    const MIB: u32 = 256;
    let none = known(summary, FORK)?;
    let (each, grown) = for_each_mib(summary, none, MIB, "4k")?;
    let mut sentence =
        format!("fork takes {each} more for each MiB that its caller has written in small pages");
    let huge = for_each_mib(summary, none, MIB, "thp");
    if let Some((each, _)) = &huge {
        sentence.push_str(&format!(", {each} in huge ones"));
    }
    let mapped = row(summary, &format!("processes/fork{{mapped_mib={MIB}, until=exited}}"));
    if let Some(mapped) = mapped {
        let adds = match Times::of(mapped, none.row) {
            Some(more) => format!("{} for {MIB} MiB", figures::percent((more.times - 1.0).max(0.0))),
            None => "no significant difference".to_owned(),
        };
        sentence.push_str(&format!("; memory that is only mapped adds {adds}"));
    }
    let rows = [none.row, grown].into_iter().chain(huge.map(|(_, row)| row)).chain(mapped);
    Some(Finding { sentence: sentence + ".", from: cases(rows) })
}

/// The amount of written memory from which on posix_spawn is faster.
fn fork_or_spawn(summary: &Summary) -> Option<Finding> {
    let started = |mib: u32, how: &str| {
        let page = if mib > 0 { "page=4k, " } else { "" };
        known(summary, &format!("processes/{how}{{dirty_mib={mib}, image=bare, {page}until=exited}}"))
    };
    let point = |mib: u32| Some((f64::from(mib), [started(mib, "fork-exec")?, started(mib, "posix-spawn")?]));
    let points = [point(0)?, point(64)?, point(256)?];
    let [(_, [first_fork, first_spawn]), _, (most, [last_fork, last_spawn])] = points;
    if !last_fork.is_apart(&last_spawn) {
        return None;
    }
    let of = points.map(|(mib, [fork, spawn])| (mib, fork.median() - spawn.median()));
    let from = cases(points.iter().flat_map(|(_, sides)| sides).map(|known| known.row));
    let sentence = if of[2].1 < 0.0 {
        format!(
            "To start a bare program, fork and exec is not slower than posix_spawn here up to {most} MiB of written memory."
        )
    } else {
        let when = match break_even(&of)? {
            _ if of[0].1 > 0.0 && first_fork.is_apart(&first_spawn) => format!(
                "with any amount of written memory: by {} with none",
                figures::percent(1.0 - first_spawn.median() / first_fork.median())
            ),
            little if little < 1.0 => "from less than 1 MiB of written memory on".to_owned(),
            mib => format!("from about {} MiB of written memory on", figures::significant(mib, 2)),
        };
        let times = figures::significant(last_fork.median() / last_spawn.median(), 3);
        format!(
            "To start a bare program, posix_spawn is faster than fork and exec here {when}; with {most} MiB it is {times} × faster."
        )
    };
    Some(Finding { sentence, from })
}

/// The amount from which on a gain is above zero, by linear interpolation between points of an amount and its gain.
fn break_even(points: &[(f64, f64)]) -> Option<f64> {
    let first = points.first().filter(|(_, gain)| *gain > 0.0).map(|(amount, _)| *amount);
    let crossing = || {
        points.windows(2).find_map(|pair| {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            (before <= 0.0 && after > 0.0).then(|| from - before / (after - before) * (to - from))
        })
    };
    first.or_else(crossing)
}

/// The opcodes of the experiment, as parameters. QEMU's translator executes the published one; then the other replaces it.
const OPCODES: [&str; 2] = ["", "opcode=ud1"];

fn counted<'a>(summary: &'a Summary, by: &str, opcode: &str) -> Option<Row<'a>> {
    let params = [by, opcode].into_iter().filter(|param| !param.is_empty()).collect::<Vec<_>>().join(", ");
    let params = if params.is_empty() { params } else { format!("{{{params}}}") };
    row_of(summary, &format!("traps/invalid-opcode{params}"), |figures| {
        figures.measured.unit == Unit::Instructions
    })
}

fn counts(summary: &Summary) -> Option<Finding> {
    let instruction = row_of(summary, "traps/imul", |figures| figures.measured.unit == Unit::Instructions)?;
    OPCODES.into_iter().find_map(|opcode| {
        let (signal, module) =
            (counted(summary, "", opcode)?, counted(summary, "by=module-ring3", opcode)?);
        let sentence = format!(
            "An invalid opcode takes {} where a signal handler emulates it, {} where a kernel module does, and a multiplication {}, each with its operands loaded.",
            figures::estimate(signal.median(), Unit::Instructions),
            whole(module.median()),
            whole(instruction.median())
        );
        Some(Finding { sentence, from: cases([signal, module, instruction]) })
    })
}

/// Why a trap taken in ring 0 is hardly faster, which the source leaves open, from the counts of both paths.
fn rings(summary: &Summary) -> Option<Finding> {
    OPCODES.into_iter().find_map(|opcode| {
        let rows = [counted(summary, "by=module-ring0", opcode)?, counted(summary, "by=module-ring3", opcode)?];
        let [kernel, program] = rows.map(|row| row.median());
        let has_pti = facts::flag(&summary.run.facts, "mitigation.pti") == Some(true);
        let tables = if has_pti { " and of page tables" } else { "" };
        let sentence = if kernel < program {
            format!(
                "Emulated by a kernel module, a trap taken in ring 0 still executes {} of the {} instructions of one taken in \
                 ring 3 ({}): both save and restore all registers, call the notifiers, and read and emulate the opcode. Ring 0 avoids the change of stack{tables} and the checks around user memory and the return to it, {} instructions; delivery through the gate and IRET, one step of the processor each, remain.",
                whole(kernel),
                whole(program),
                figures::percent(kernel / program),
                whole(program - kernel)
            )
        } else {
            format!(
                "Emulated by a kernel module, a trap taken in ring 0 executes {} instructions, no fewer than one taken in ring 3 with {}.",
                whole(kernel),
                whole(program)
            )
        };
        Some(Finding { sentence, from: cases(rows) })
    })
}

fn whole(count: f64) -> String {
    figures::thousands(&format!("{count:.0}"))
}

/// The latencies on both sides of a cache's size, at some distance from it: a buffer that is nearly as large lies partly beyond.
fn levels(summary: &Summary) -> Vec<Finding> {
    let of = |page: &str| -> Vec<(f64, Known)> {
        let rows = summary.of_benchmark("memory/latency").filter(|(case, _)| case.word("page") == Some(page));
        let point = |(case, figures)| Some((case, Row { case, figures }.known()?));
        let points =
            rows.filter_map(point).filter_map(|(case, known)| Some((case.number("kib")? as f64, known)));
        let mut points: Vec<(f64, Known)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    // TLB misses on small pages add to the latency.
    let huge = of("2m");
    let (page, points) = if huge.is_empty() { ("4 KiB", of("4k")) } else { ("2 MiB", huge) };
    let level = |(fact, name): (&str, &str)| {
        let end = facts::number(&summary.run.facts, fact)? / 1024.0;
        let (small, within) = points.iter().rfind(|(kib, _)| *kib <= end * 0.8)?;
        let (large, beyond) = points.iter().find(|(kib, _)| *kib >= end * 1.3)?;
        let how = match Times::of(beyond.row, within.row).filter(|times| times.times > 1.0) {
            Some(times) => format!("a load is {}", times.compared()),
            None => "the latency shows no significant rise".to_owned(),
        };
        let sentence = format!(
            "Beyond {name} ({} KiB as the kernel reports it) {how}: from {} at {small} KiB to {} at {large} KiB ({page} pages).",
            figures::significant(end, 3),
            within.row.figures.in_words(),
            beyond.row.figures.in_words()
        );
        Some(Finding { sentence, from: cases([within.row, beyond.row]) })
    };
    [("cache.l1d", "L1d"), ("cache.l2", "L2"), ("cache.l3", "L3")].into_iter().filter_map(level).collect()
}

fn three_calls(summary: &Summary) -> Option<Finding> {
    let call = |(published, by): (&str, &str)| {
        let row = row(summary, &format!("locks/uncontended{{by={by}}}"))?;
        Some((format!("{published} {} (by {by})", row.figures.in_words()), row))
    };
    let calls =
        [("sem_wait()", "sem-trywait"), ("pthread_mutex_trylock()", "pthread-trylock"), ("tst()", "rseq")];
    let (words, rows): (Vec<String>, Vec<Row>) =
        calls.into_iter().map(call).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let words = words.join(", ");
    let sentence = format!("The three calls of the published comparison, each with its release: {words}.");
    Some(Finding { sentence, from: cases(rows) })
}

/// A restartable sequence compared with a system call, by the number of threads.
fn trade(summary: &Summary) -> Option<Finding> {
    let point = |threads: u32| {
        let by = |by: &str| {
            row(summary, &format!("locks/producer-consumer{{by={by}, cpus=one, threads={threads}}}"))
        };
        Some((threads, [by("futex-trylock-pi")?, by("rseq")?]))
    };
    let points: Vec<(u32, [Row; 2])> = (1..=6).filter_map(|power| point(1 << power)).collect();
    let gain = |(_, [call, sequence]): &(u32, [Row; 2])| call.median() / sequence.median();
    let least = points.iter().min_by(|one, other| gain(one).total_cmp(&gain(other)))?;
    (gain(least).is_finite() && gain(least) > 0.0 && points.len() > 1).then(|| Finding {
        sentence: format!(
            "On one processor, producers and consumers hand over at least {} × as many items with a restartable sequence as with the system call; of {} numbers of threads, {} of each gave the least.",
            figures::significant(gain(least), 2),
            points.len(),
            least.0
        ),
        from: cases(points.iter().flat_map(|(_, rows)| *rows)),
    })
}

fn page_cache(summary: &Summary) -> Option<Finding> {
    let part = |block: &str| {
        let read = |state: &str| row(summary, &format!("files/read{{block={block}, state={state}}}"));
        let (cached, uncached) = (read("cached")?, read("uncached")?);
        let times = figures::significant(Times::of(uncached, cached)?.times, 2);
        Some((format!("{times} × for {block}"), [cached, uncached]))
    };
    let parts = ["4k", "128k", "1m"].into_iter().filter_map(part);
    of_parts("A read from storage takes longer than one from the page cache: ", parts)
}

fn of_parts<'a>(begin: &str, parts: impl Iterator<Item = (String, [Row<'a>; 2])>) -> Option<Finding> {
    let (parts, rows): (Vec<String>, Vec<[Row; 2]>) = parts.unzip();
    let sentence = format!("{begin}{}.", parts.join(", "));
    (!parts.is_empty()).then(|| Finding { sentence, from: cases(rows.concat()) })
}

/// Why a direct read is faster than the first one through the page cache, if it is: the work of the page cache in addition to the
/// device.
fn direct_against_first(summary: &Summary) -> Option<Finding> {
    let rows = [
        row(summary, "files/read{block=4k, state=uncached}")?,
        row(summary, "files/direct-read{block=4k, buffer=aligned}")?,
        row(summary, "files/read{block=4k, state=cached}")?,
    ];
    let [first, direct, cached] = rows;
    let slower = Times::of(first, direct).filter(|times| times.times > 1.0)?;
    let (more, copy) = (first.median() - direct.median(), cached.median());
    let time = |value| figures::estimate(value, Unit::Nanoseconds);
    // A copy that takes longer than the whole difference explains nothing.
    (copy < more).then(|| Finding {
        sentence: format!(
            "The first read of 4 KiB of a file is {} through the page cache than with O_DIRECT, {} more: {} for the lookup and the copy, as a \
             cached read has them, and {} for pages that are allocated and put into the page cache; nothing is read ahead.",
            slower.compared(),
            time(more),
            time(copy),
            time(more - copy)
        ),
        from: cases(rows),
    })
}

fn cold(summary: &Summary, size: &str) -> Option<Finding> {
    const LEAST_RATIO: f64 = 1.05;
    let is_cold = |case: &Case| {
        case.suite() == "workloads" && case.word("size") == Some(size) && case.word("cache") == Some("cold")
    };
    let part = |(case, figures)| {
        let mut warm: Case = Case::clone(case);
        warm.params.insert("cache".to_owned(), ParamValue::from("warm"));
        let (cold, warm) = (Row { case, figures }, row(summary, &warm.to_string())?);
        let times = Times::of(cold, warm).filter(|times| times.times >= LEAST_RATIO)?;
        let name = case.benchmark.rsplit('/').next().unwrap_or_default();
        let jobs = case.params.get("jobs").map(|jobs| format!(" with jobs={jobs}")).unwrap_or_default();
        Some((format!("{name}{jobs} {}", times.compared()), [cold, warm]))
    };
    let parts = summary.measured().filter(|(case, figures)| is_cold(case) && figures.is_estimate());
    of_parts(&format!("With a cold page cache, on the {size} tree: "), parts.filter_map(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_break_even_is_where_the_lines_cross() {
        for (gains, even) in [
            ([20.0, 8900.0, 39_900.0], Some(0.0)),
            ([-50.0, 50.0, 450.0], Some(32.0)),
            ([-50.0, -20.0, -10.0], None),
        ] {
            let points: Vec<(f64, f64)> = [0.0, 64.0, 256.0].into_iter().zip(gains).collect();
            assert_eq!(break_even(&points), even);
        }
    }
}
