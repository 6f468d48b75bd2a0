//! The examples that each verb's help and manual page show.

type Examples = &'static [(&'static str, &'static str)];

pub fn of(verb: &str) -> Examples {
    match verb {
        "tollgate" => &[
            ("tollgate run", "Measure this machine for one minute and keep the run"),
            ("tollgate compare first last", "Compare the newest run with the one labelled `first`"),
            ("tollgate help compare", "Show the help of one verb"),
        ],
        "run" => &[
            ("tollgate run entry --quick", "Measure kernel entry for 10 seconds"),
            ("tollgate run --label before", "Measure everything but workloads, name the run `before`"),
            (
                "tollgate run entry traps --in host --in container --in gvisor",
                "Measure in three environments in turns, and compare the others with the first",
            ),
        ],
        "list" => &[
            ("tollgate list", "Show every benchmark with its cases"),
            ("tollgate list 'memory/*'", "Show the benchmarks of one suite"),
        ],
        "runs" => &[
            ("tollgate runs", "List the kept runs"),
            ("tollgate runs rename last before", "Label the newest run `before`"),
            ("tollgate runs delete before 20261121-0154", "Delete two runs, by label and by id"),
        ],
        "show" => &[
            ("tollgate show", "Show the summary of the newest run"),
            (
                "tollgate show before files --sort latency",
                "Show the files of the run labelled `before`, the slowest first",
            ),
            ("tollgate show last --by file", "Show the newest traced command's time by file"),
        ],
        "explain" => &[
            (
                "tollgate explain entry/int80",
                "Explain what the benchmark measures, and why it takes so long here",
            ),
            (
                "tollgate explain entry/syscall --in vm:exact",
                "Show which functions of the kernel one system call executes, with the instructions in each",
            ),
            (
                "tollgate explain divan/ops::work mine",
                "Show which system calls and page faults a bench makes in the builds of the session `mine`",
            ),
        ],
        "compare" => &[
            ("tollgate compare before after", "Compare the run `after` with the baseline `before`"),
            ("tollgate compare before last --fail-on slower", "Exit with status 1 if a benchmark got slower"),
            (
                "tollgate compare host.json vm.json --all --threshold 5%",
                "Show every row; differences up to 5 % count as the same",
            ),
        ],
        "versus" => &[
            (
                "tollgate versus 'sort a' 'sort -S1M a'",
                "Compare two commands, and show where the difference comes from",
            ),
            (
                "tollgate versus --in host --in container 'git status'",
                "Compare a command in two environments",
            ),
            (
                "tollgate versus --rev main '{dir}/target/release/tool file'",
                "Compare a command built from the branch main with the working tree",
            ),
            (
                "tollgate versus --bench old/bench new/bench sort",
                "Compare the benches of two builds (criterion, divan, Go, Google Benchmark) that have sort in their names",
            ),
        ],
        "trace" => &[
            ("tollgate trace -- make -j4", "Show which system calls a build spends its time in"),
            (
                "tollgate trace -p 1234 --for 10s --blocked",
                "Show what a running process does for 10 s, and what its threads wait for",
            ),
            (
                "tollgate trace --from strace.log",
                "Show the calls in a log of `strace -f -T -tt -o strace.log`",
            ),
        ],
        "ram" => &[
            (
                "tollgate ram -- sh -c 'cd $TOLLGATE_RAM && git clone /srv/repo'",
                "Run a command on a fresh ext4 in memory",
            ),
            (
                "tollgate ram --fs none --size 1G -- sh -c 'mkfs.xfs $TOLLGATE_RAM'",
                "Lend a block device of 1 GiB without a file system",
            ),
        ],
        "schedules" => &[
            ("tollgate schedules", "Check every lock and show a table"),
            ("tollgate schedules figure-11 --preempt all", "Preempt it before each instruction in turn"),
            ("tollgate schedules sb.litmus", "Answer a litmus test of herd7, with its final states"),
        ],
        "inspect" => &[
            ("tollgate inspect --only 'mitigation.*'", "Show the facts about mitigations"),
            ("tollgate inspect config --area entry", "Show the kernel options that affect kernel entry"),
            ("tollgate inspect --capture tree", "Copy the files that the facts are read from into tree/"),
        ],
        "decode" => &[
            ("tollgate decode ffff0000009bcf00 --explain", "Decode one descriptor and explain its bits"),
            ("tollgate decode session.txt --walk int:80", "Decode a debugger's text and walk int 0x80"),
            ("tollgate decode --live", "Decode this machine's own tables"),
        ],
        "lab" => &[
            ("tollgate lab", "Run every experiment of the lab's own kernel"),
            (
                "tollgate lab --explain boot int",
                "Explain what the kernel sets up and why, and follow one experiment instruction by instruction",
            ),
            ("tollgate lab --program hello.s", "Run a program in ring 3 under the lab's kernel"),
        ],
        "report" => &[
            ("tollgate report last --out run.html", "Make a page of the newest run"),
            ("tollgate report before after --out both.html", "Make a page that compares two runs"),
            (
                "tollgate report before after --format md --fail-on slower >> $GITHUB_STEP_SUMMARY",
                "Add a summary to a CI job, and fail if a benchmark got slower",
            ),
        ],
        "export" => &[
            ("tollgate export last --format csv", "Print the newest run as CSV"),
            ("tollgate export last --format openmetrics --out tollgate.prom", "Write gauges for Prometheus"),
        ],
        "store" => &[
            ("tollgate store list /srv/runs", "List the stored runs"),
            ("tollgate store add /srv/runs before after", "Store two runs that were kept"),
        ],
        "doctor" => &[
            ("tollgate doctor", "Show what disturbs measurements here, and what would help"),
            ("tollgate doctor --fail-on poor", "Exit with status 1 if figures would be unreliable"),
        ],
        "bill" => &[
            ("tollgate bill", "List what is on, and how the cost of each can be known"),
            (
                "tollgate bill --yes",
                "Measure what commands or kernel parameters take away; switching takes root",
            ),
        ],
        "claims" => &[
            ("tollgate claims", "Show every published experiment beside the figures of the newest runs"),
            (
                "tollgate claims ryzen-cache-thrashing-2017 --check",
                "Measure what one experiment needs, and judge its claims",
            ),
            (
                "tollgate claims ryzen-cache-thrashing-2017 --as-published",
                "Execute its program as it was published, and with each correction",
            ),
        ],
        "environments" => &[
            ("tollgate environments", "Show which environments work here, and what the others need"),
            (
                "tollgate environments --time",
                "Also show how long each takes to start, and the size of the package or file that makes it",
            ),
            ("tollgate environments --format json", "Print what works as JSON"),
        ],
        "config" => &[
            ("tollgate config", "Show the values that count here, and the files that they come from"),
            ("tollgate config --config ci.toml --format json", "Check a file, and show its values as JSON"),
        ],
        "completions" => &[
            ("tollgate completions bash >> ~/.bashrc", "Complete in bash"),
            ("tollgate completions zsh >> ~/.zshrc", "Complete in zsh"),
            ("tollgate completions fish > ~/.config/fish/completions/tollgate.fish", "Complete in fish"),
        ],
        "man" => &[
            ("tollgate man | man -l -", "Read the manual page"),
            ("tollgate man /usr/local/share/man/man1", "Write the manual pages of all verbs"),
        ],
        _ => &[],
    }
}

pub fn help(verb: &str, rest: &str) -> String {
    let mut text = "Examples:".to_owned();
    for (line, purpose) in of(verb) {
        text.push_str(&format!("\n  {line}\n      {purpose}"));
    }
    if !rest.is_empty() {
        text.push_str("\n\n");
        text.push_str(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, command};

    #[test]
    fn every_verb_has_two_to_four_examples_that_parse() {
        let command = command();
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| verb.get_name());
        for verb in verbs.chain(["tollgate"]) {
            let examples = of(verb);
            assert!((2..=4).contains(&examples.len()), "{verb}");
            for (line, _) in examples {
                // The rest is the shell's.
                let line = line.split(['|', '>']).next().unwrap_or(line);
                let words = tollgate_os::words::split(line).expect("quotes are closed");
                let parsed = Arguments::try_parse_from(&words);
                let is_help = words.get(1).is_some_and(|word| word == "help");
                assert!(is_help || parsed.is_ok(), "{line}: {:?}", parsed.err().map(|e| e.to_string()));
                assert!(verb == "tollgate" || words[1] == verb, "{line}");
            }
        }
    }
}
