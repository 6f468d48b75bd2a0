use crate::sessions::{host, runs};
use tollgate_model::{Fact, ParamValue};
use tollgate_view::rules;
use tollgate_view::summary::Summary;

fn sentences(latencies: &[(&str, f64)]) -> String {
    let mut run = runs(&[host()], latencies).remove(0);
    for value in run.measurements.iter_mut().flat_map(|measurement| measurement.case.params.values_mut()) {
        let word = value.to_string();
        *value = match (word.parse::<u64>(), word.parse::<bool>()) {
            (Ok(number), _) => ParamValue::Number(number),
            (_, Ok(flag)) => ParamValue::Flag(flag),
            _ => ParamValue::Word(word),
        };
    }
    run.facts.insert("cache.l1d".to_owned(), Fact::known(48 << 10, "test"));
    run.facts.insert("cache.l2".to_owned(), Fact::known(82 << 10, "test"));
    let summary = Summary::of(&run);
    let expenses = rules::expenses(&summary).into_iter().map(|expense| expense.sentence());
    let findings = rules::findings(&summary).into_iter().map(|finding| finding.sentence);
    expenses.chain(findings).collect::<Vec<String>>().join("\n")
}

#[test]
fn rows_and_the_sentences_that_they_make() {
    let reads = |direct: f64, first: f64, cached: f64| {
        sentences(&[
            ("files/direct-read{buffer=aligned,block=4k}", direct),
            ("files/read{state=uncached,block=4k}", first),
            ("files/read{state=cached,block=4k}", cached),
        ])
    };
    let all = [
        ("a direct read that is faster", reads(40_000.0, 60_000.0, 1_000.0)),
        ("a direct read that is slower", reads(60_000.0, 40_000.0, 1_000.0)),
        ("a copy that takes longer than the difference", reads(40_000.0, 60_000.0, 30_000.0)),
        (
            "levels of caches",
            sentences(&[
                ("memory/latency{kib=16,page=2m}", 1.4),
                ("memory/latency{kib=32,page=2m}", 1.4),
                ("memory/latency{kib=64,page=2m}", 4.2),
                ("memory/latency{kib=128,page=2m}", 4.2),
            ]),
        ),
        (
            "sharing by size",
            sentences(&[
                ("memory/thrash{kib=8,order=random,page=2m,pair=llc,shared=false}", 0.66),
                ("memory/thrash{kib=8,order=random,page=2m,pair=llc,shared=true}", 13.2),
                ("memory/thrash{kib=16384,order=random,page=2m,pair=llc,shared=false}", 9.1),
                ("memory/thrash{kib=16384,order=random,page=2m,pair=llc,shared=true}", 9.1),
            ]),
        ),
        (
            "false sharing",
            sentences(&[
                ("memory/neighbour{distance=8}", 60.0),
                ("memory/neighbour{distance=64}", 9.0),
                ("memory/neighbour{distance=128}", 6.0),
            ]),
        ),
        (
            "fork and its alternatives",
            sentences(&[
                ("processes/fork{dirty_mib=0,until=exited}", 90_000.0),
                ("processes/fork{dirty_mib=256,page=4k,until=exited}", 10_330_000.0),
                ("processes/fork{dirty_mib=256,page=thp,until=exited}", 346_000.0),
                ("processes/fork{mapped_mib=256,until=exited}", 135_000.0),
                ("processes/fork-exec{dirty_mib=0,image=bare,until=exited}", 150_000.0),
                ("processes/fork-exec{dirty_mib=64,image=bare,page=4k,until=exited}", 3_000_000.0),
                ("processes/fork-exec{dirty_mib=256,image=bare,page=4k,until=exited}", 10_500_000.0),
                ("processes/posix-spawn{dirty_mib=0,image=bare,until=exited}", 250_000.0),
                ("processes/posix-spawn{dirty_mib=64,image=bare,page=4k,until=exited}", 130_000.0),
                ("processes/posix-spawn{dirty_mib=256,image=bare,page=4k,until=exited}", 130_000.0),
            ]),
        ),
        (
            "locks",
            sentences(&[
                ("locks/uncontended{by=futex-trylock-pi}", 120.0),
                ("locks/uncontended{by=rseq}", 3.0),
                ("locks/uncontended{by=sem-trywait}", 12.0),
                ("locks/uncontended{by=pthread-trylock}", 13.0),
                ("locks/producer-consumer{by=futex-trylock-pi,cpus=one,threads=2}", 900.0),
                ("locks/producer-consumer{by=futex-trylock-pi,cpus=one,threads=4}", 800.0),
                ("locks/producer-consumer{by=rseq,cpus=one,threads=2}", 200.0),
                ("locks/producer-consumer{by=rseq,cpus=one,threads=4}", 300.0),
            ]),
        ),
        (
            "workloads",
            sentences(&[
                ("workloads/build{cache=warm,jobs=1,size=small}", 4e9),
                ("workloads/build{cache=warm,jobs=all,size=small}", 2e9),
                ("workloads/build{cache=cold,jobs=1,size=small}", 6e9),
            ]),
        ),
        (
            "traps",
            sentences(&[
                ("traps/invalid-opcode", 2_500.0),
                ("traps/imul", 1.0),
                ("traps/invalid-opcode{by=module-ring0}", 1_000.0),
                ("traps/invalid-opcode{by=module-ring3}", 1_200.0),
            ]),
        ),
    ];
    let texts = all.map(|(name, said)| format!("{name}:\n{said}"));
    insta::assert_snapshot!(texts.join("\n\n"));
}
