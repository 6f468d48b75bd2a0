//! Processor time, by which commands are compared in addition to real time.
//!
//! It is the time that all processes of an execution had a processor, in user mode and in the kernel, so it excludes what other
//! tasks take. It also excludes intended waiting, so commands that wait are not compared by it.
//!
//! Benches have none: a harness's figure comes from samples that other tasks seldom interrupt, and the time of its process
//! includes its start.

use super::index::Index;
use super::rounds::join;
use crate::measurement::{Case, Measured, Unit};
use crate::run::Run;
use crate::traced::TimesFrom;
use crate::versus::{REAL, SYS, USER};
use crate::{Traced, own, stats};

const MOST_WAITING: f64 = 0.5;

/// The processor times of a case in both runs, or why they are not compared. `None` if it is not a command, or if they are not
/// known.
pub(super) fn times(
    [base, other]: [&Index<'_>; 2],
    case: &Case,
    [of_base, of_other]: [&Measured; 2],
) -> Option<Result<[Measured; 2], String>> {
    let sides = [(base, of_base), (other, of_other)];
    let [Some(base), Some(other)] = sides.map(|(index, real)| of_case(index, case, real)) else {
        return None;
    };
    let both = [base, other];
    let waiting = sides.into_iter().zip(&both).filter_map(|((index, real), used)| waiting(index, real, used));
    let waiting = waiting.fold(0.0, f64::max);
    Some(match both.iter().find_map(too_coarse) {
        Some(why) => Err(why),
        None if waiting > MOST_WAITING => Err(format!(
            "processor time excludes waiting, which is {:.0} % of the real time",
            waiting * 100.0
        )),
        None => Ok(both),
    })
}

fn of_case(index: &Index<'_>, case: &Case, real: &Measured) -> Option<Measured> {
    let measured = |case: &Case| index.measured_case(case);
    let (like, samples): (&Measured, Vec<f64>) = match case.benchmark.as_str() {
        REAL => {
            let [user, sys] = [measured(&Case::plain(USER))?, measured(&Case::plain(SYS))?];
            // wait4(2) gave both or neither.
            (user.processes == sys.processes).then_some(())?;
            (user, user.samples.iter().zip(&sys.samples).map(|(user, sys)| user + sys).collect())
        }
        _ => {
            let is_known = |traced: &Traced| traced.times_from != TimesFrom::Unknown;
            (real.traced.len() == real.samples.len() && real.traced.iter().all(is_known)).then_some(())?;
            let used = |traced: &Traced| traced.user_ns.saturating_add(traced.sys_ns) as f64;
            (real, real.traced.iter().map(used).collect())
        }
    };
    Some(Measured {
        processes: like.processes.clone(),
        provenance: like.provenance,
        discarded: like.discarded,
        ..Measured::of_executions(&like.group, Unit::Nanoseconds, samples)
    })
}

/// Linux adds up the scheduler's times, to the nanosecond, and wait4(2) reports microseconds; other kernels count ticks.
fn too_coarse(used: &Measured) -> Option<String> {
    const STEPS: [f64; 4] = [10e6, 4e6, 1e6, 1e3];
    /// A difference of 1 % is one step.
    const FEWEST: f64 = 100.0;
    let is_step = |step: &f64| used.samples.iter().all(|sample| sample % step == 0.0);
    let step = STEPS.into_iter().find(is_step)?;
    let median = stats::median(&used.samples)?;
    let words =
        |ns: f64| if ns < 1e6 { format!("{:.0} µs", ns / 1e3) } else { format!("{:.0} ms", ns / 1e6) };
    (median < FEWEST * step).then(|| {
        format!("processor time has a resolution of {} here, too coarse for {}", words(step), words(median))
    })
}

/// The share of the real time that a command waits on purpose: asleep, or for a disk. `None` if that is not known.
fn waiting(index: &Index<'_>, real: &Measured, used: &Measured) -> Option<f64> {
    let traced = match real.divided() {
        [] => index.measured_case(&Case::plain(own::TRACED)).map_or(&[][..], |measured| &measured.traced),
        traced => traced,
    };
    // Sums, since there may be two executions, and a busy machine may have treated them differently.
    let sum = |of: fn(&Traced) -> Option<u64>| traced.iter().filter_map(of).map(|ns| ns as f64).sum::<f64>();
    let waited = sum(|traced| traced.idle.map(|idle| idle.disk_ns.saturating_add(idle.sleep_ns)));
    let ran = sum(|traced| traced.idle.map(|_| traced.user_ns.saturating_add(traced.sys_ns)));
    Some(waited / (waited + ran)).filter(|share| share.is_finite()).or_else(|| {
        // Time that the best execution did not use. On a busy machine others may have taken it.
        let shares =
            join(used, real).flatten().filter(|(_, real)| *real > 0.0).map(|(used, real)| used / real);
        let most = shares.reduce(f64::max).filter(|_| crowd(index.run).is_none())?;
        Some((1.0 - most).max(0.0))
    })
}

/// Other tasks that wanted the processors meanwhile, as a clause: `8 tasks for 2 processors`. `None` if there was room for them,
/// or if that is not known.
pub fn crowd(run: &Run) -> Option<String> {
    /// Share of the time in which some task waited.
    const STALLED: f64 = 0.25;
    let fact = |name: &str| run.facts.get(name)?.value()?.as_f64();
    let both = |name: &str| Some([fact(&format!("{name}.before"))?, fact(&format!("{name}.after"))?]);
    // One of them read that file.
    let tasks = both("running").map(|[before, after]| before.min(after) - 1.0);
    let processors = fact("cpu.online").or_else(|| fact("cpu.allowed"));
    if let (Some(tasks), Some(processors)) = (tasks, processors)
        && tasks >= processors
    {
        let number = |count: f64, of: &str| format!("{count} {of}{}", if count == 1.0 { "" } else { "s" });
        return Some(format!("{} for {}", number(tasks, "task"), number(processors, "processor")));
    }
    let [before, after] = both("stalled.cpu")?;
    let share = ((after - before) / 1e6 / run.seconds()?.max(1.0)).min(1.0);
    (share > STALLED).then(|| format!("tasks waited for a processor {:.0} % of the time", share * 100.0))
}
