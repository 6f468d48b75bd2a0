use crate::sessions::{host, runs};
use tollgate_view::findings;
use tollgate_view::summary::Summary;

fn sentences(latencies: &[(&str, f64)]) -> Vec<String> {
    let run = runs(&[host()], latencies).remove(0);
    findings::of(&Summary::of(&run)).into_iter().map(|finding| finding.sentence).collect()
}

fn reads(direct: f64, first: f64, cached: f64) -> String {
    let all = [
        ("files/direct-read{buffer=aligned,block=4k}", direct),
        ("files/read{state=uncached,block=4k}", first),
        ("files/read{state=cached,block=4k}", cached),
    ];
    sentences(&all).join("\n")
}

#[test]
fn a_direct_read_that_is_faster_than_the_first_buffered_one_has_its_cause() {
    let said = reads(40_000.0, 60_000.0, 1_000.0);
    for part in
        ["slower through the page cache than with O_DIRECT", " for the lookup and the copy", "allocated"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = [reads(60_000.0, 40_000.0, 1_000.0), reads(40_000.0, 60_000.0, 30_000.0)];
    assert!(said.iter().all(|said| !said.contains("O_DIRECT")), "{said:?}");
}
