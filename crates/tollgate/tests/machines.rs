//! The program on simulated machines: with a captured tree, and with other files under /sys.

use std::path::Path;
use std::process::Command;

use crate::common;
use common::machines::{MACHINES, Tree};
use common::{Home, program};
use serde_json::{Value, json};
use tollgate_engine::Topology;
use tollgate_suites::SUITES;

#[test]
fn each_is_inspected_on_one_screen() {
    let home = Home::new();
    for machine in &MACHINES {
        let tree = Tree::of(machine);
        let from = tree.path().to_str().expect("text");
        let text = home.output(["inspect", "--from", from]);
        assert!(text.lines().count() <= 43, "{}\n{text}", machine.name);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{}\n{text}", machine.name);
        let facts = &home.json(["inspect", "--from", from, "--format", "json"])["facts"];
        assert_eq!(facts["cpu.online"]["value"], json!(machine.processors), "{}", machine.name);
        assert_eq!(facts["cpu.architecture"]["value"], json!(machine.architecture));
        if !machine.vendor.is_empty() {
            assert_eq!(facts["cpu.vendor"]["value"], json!(machine.vendor), "{}", machine.name);
            assert_eq!(facts["hypervisor.present"]["value"], json!(machine.hypervisor.is_some()));
        }
    }
}

/// Other caches and memory nodes, mounted over those of this machine.
fn seeing(tree: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--dev-bind", "/", "/"]);
    for directory in ["/sys/devices/system/cpu", "/sys/devices/system/node"] {
        command.arg("--bind").arg(tree.join(&directory[1..])).arg(directory);
    }
    command.arg(program());
    command
}

#[test]
fn the_program_lists_the_cases_of_what_the_kernel_shows_it() {
    for machine in &MACHINES {
        let tree = Tree::of(machine);
        let output = match seeing(tree.path()).args(["list", "--format=json"]).output() {
            Ok(output) if output.status.success() => output,
            Ok(output) => return println!("skipped: bwrap: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => return println!("skipped: no bwrap: {error}"),
        };
        let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        // The architecture, the allowed processors, the default one, and the quota are still this machine's.
        let Topology { architecture, processors, home, quota, .. } = Topology::here();
        let expected = Topology { architecture, home, quota, ..Topology::below(tree.path(), processors) };
        if expected.caches().is_empty() {
            continue; // This machine's CPUID says then what the kernel does not.
        }
        let benchmarks = SUITES.iter().flat_map(|suite| suite.benchmarks);
        for (record, benchmark) in listed["benchmarks"].as_array().expect("benchmarks").iter().zip(benchmarks)
        {
            let cases = [(benchmark.cases)(&expected), (benchmark.thorough_cases)(&expected)];
            assert_eq!(
                json!([record["params"], record["thorough_params"]]),
                json!(cases),
                "{}",
                machine.name
            );
        }
    }
}
