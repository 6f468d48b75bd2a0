//! The page on the classic suites names cases that exist, and every program of those suites.

#[path = "../../../tests/machines.rs"]
mod machines;

use tollgate_suites::{Extent, SUITES, matches};

const PAGE: &str = include_str!("../../../docs/classic-suites.md");

/// Returns the cells of each row of a table below this heading, without the head.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).expect("a section");
    let cells = |line: &'static str| line.trim_matches('|').split(" | ").map(str::trim).collect();
    let lines = section.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    lines.skip(1).map(cells).collect()
}

/// Returns the texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_case_that_is_named_exists() {
    let is_case =
        |quoted: &&str| quoted.contains('/') && !quoted.contains(' ') && !quoted.starts_with("tests/");
    let cases: Vec<&str> = quoted(PAGE).filter(is_case).collect();
    let machine = machines::MACHINES[0].topology();
    let benchmarks = SUITES.iter().flat_map(|suite| suite.benchmarks);
    let known: Vec<_> = benchmarks
        .flat_map(|benchmark| {
            benchmark.cases_in(Extent::Thorough, &machine).into_iter().map(|params| benchmark.case(params))
        })
        .collect();
    let exists = |named: &str| known.iter().any(|case| matches(named, case));
    let absent: Vec<&&str> = cases.iter().filter(|case| !exists(case)).collect();
    assert!(absent.is_empty(), "{absent:?}");
    assert!(cases.len() > 100, "{}", cases.len());
}

#[test]
fn every_program_of_the_suites_has_a_row() {
    let programs = [
        (
            "lmbench",
            "bw_file_rd bw_mem bw_mmap_rd bw_pipe bw_tcp bw_udp bw_unix cache disk enough lat_cmd lat_connect lat_ctx \
             lat_dram_page lat_fcntl lat_fifo lat_fs lat_http lat_mem_rd lat_mmap lat_ops lat_pagefault lat_pipe lat_pmake \
             lat_rand lat_rpc lat_select lat_sem lat_tcp lat_udp lat_unix lat_unix_connect lat_usleep line lmdd memsize \
             mhz par_mem par_ops seek stream tlb",
        ),
        (
            "perf bench",
            "messaging pipe seccomp-notify basic getpgid fork execve memcpy memset mmap find_bit mem hash wake wake-parallel requeue lock-pi wait ctl thread \
             enable uprobe internals",
        ),
        (
            "will-it-scale",
            "access brk context_switch dup eventfd fallocate fstat futex getppid lock lseek malloc mmap open page_fault \
             pipe poll posix_semaphore pread pthread_mutex pwrite read readseek sched_yield signal stat threadspawn \
             tlb_flush unix unlink write writeseek",
        ),
    ];
    for (heading, programs) in programs {
        let rows = rows(heading);
        for program in programs.split_whitespace() {
            let mut names = rows.iter().flat_map(|row| row[0].split([',', ' ']));
            assert!(names.any(|name| name == program), "{heading}: {program}");
        }
    }
    for call in [
        "null",
        "read",
        "write",
        "stat",
        "fstat",
        "open",
        "install",
        "catch",
        "prot",
        "procedure",
        "fork",
        "exec",
    ] {
        assert!(
            rows("lmbench").iter().any(|row| row[0].ends_with(call) || row[0].contains(&format!("{call},"))),
            "{call}"
        );
    }
}

#[test]
fn a_row_has_a_case_or_a_reason() {
    for heading in ["lmbench", "perf bench", "will-it-scale", "fio's basic jobs"] {
        let rows = rows(heading);
        let tables = rows.iter().filter(|row| row.len() == 3);
        for row in tables.filter(|row| quoted(row[1]).next().is_none()) {
            assert_eq!(row[1], "not measured", "{row:?}");
            assert!(row[2].len() > 8, "{row:?} has no reason");
        }
    }
}
