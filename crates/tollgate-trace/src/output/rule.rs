//! Compares the published wait rule with the measured waiting.

use tollgate_model::Traced;
use tollgate_model::traced::TimesFrom;

use super::text;

const BLIND: &str = "The rule does not see a thread that waits while another works, as for a processor, and with several cores it counts cores that a serial part leaves idle.";

pub(crate) fn in_words(traced: &Traced) -> String {
    let of = |cores: u32| text::signed(traced.wait_by_rule_ns(cores));
    let by_rule = match traced.processors {
        0 | 1 => of(1),
        cores => format!("{} with one core and {} with {cores}", of(1), of(cores)),
    };
    if traced.times_from == TimesFrom::Unknown || traced.wall_ns == 0 {
        return "The rule of 2017 for waiting, real - (user + sys) / cores, needs user and sys, which are not known here.".to_owned();
    }
    let measured = match traced.idle {
        Some(idle) => format!("measured {}", text::time(idle.total_ns())),
        None => "this backend cannot measure it".to_owned(),
    };
    format!("Waiting by the rule of 2017, real - (user + sys) / cores: {by_rule}; {measured}. {BLIND}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::examples;

    /// Satoru Takeuchi, "WSL vs VM for development work", 2017: git checkout, one core; the tag file and the build, eight.
    #[test]
    fn the_published_decomposition_has_its_figures() {
        for (seconds, cores, waiting) in [
            ([254.0, 4.70, 95.1], 1, ": 154 s; "),
            ([5.35, 3.59, 1.78], 1, ": -20.0 ms; "),
            ([95.2, 48.7, 60.5], 8, "81.5 s with 8;"),
            ([39.9, 48.3, 12.2], 8, "32.3 s with 8;"),
            ([281.0, 604.0, 905.0], 8, "92.4 s with 8;"),
            ([97.6, 605.0, 51.6], 8, "15.5 s with 8;"),
        ] {
            let [wall_ns, user_ns, sys_ns] = seconds.map(|seconds: f64| (seconds * 1e9).round() as u64);
            let mut traced = Traced { wall_ns, user_ns, sys_ns, processors: cores, ..examples::checkout() };
            traced.idle = None;
            let shown = in_words(&traced);
            assert!(shown.contains(waiting), "{waiting}: {shown}");
            assert!(shown.contains("cannot measure it"), "{shown}");
        }
    }
}
