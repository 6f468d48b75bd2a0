//! Stored trees of machines, and the facts of each. `machines/README.md` says how each was made.

use std::path::Path;

use tollgate_inspect::{Machine, environment, facts, read_facts, storage};
use tollgate_model::{Environment, Fact, FactValue, Facts, Unknown};

fn machine(name: &str) -> Machine {
    let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    Machine::open(&trees.join(name)).expect("a tree")
}

/// Reads the facts and checks that each has an answer.
fn read(name: &str) -> Facts {
    let environment = read_facts(&machine(name));
    for spec in facts().filter(|spec| !spec.name.ends_with(".*")) {
        assert!(environment.contains_key(spec.name), "{name}: {}", spec.name);
    }
    for (fact, answer) in &environment {
        let is_unreadable = matches!(answer, Fact::Unknown { why: Unknown::Unreadable(_) });
        assert!(!is_unreadable, "{name}: {fact}: {answer:?}");
    }
    environment
}

fn shown(environment: &Facts, name: &str) -> String {
    match &environment[name] {
        Fact::Known { value, .. } => value.to_string(),
        Fact::Unknown { why } => why.to_string().split(':').next().unwrap_or_default().to_owned(),
    }
}

fn expect(environment: &Facts, facts: &[(&str, &str)]) {
    for (name, value) in facts {
        assert_eq!(shown(environment, name), *value, "{name}: {:?}", environment[*name]);
    }
}

#[test]
fn debian_on_an_amd_processor() {
    let facts = read("debian-zen3");
    assert_eq!(environment(&facts), Environment::Host);
    expect(
        &facts,
        &[
            ("kernel.release", "6.1.0-28-amd64"),
            ("cpu.vendor", "AuthenticAMD"),
            ("cpu.model", "AMD Ryzen 9 5900X 12-Core Processor"),
            ("cpu.cores", "12"),
            ("cpu.threads_per_core", "2"),
            ("cpu.threads_per_core.cpuid", "2"),
            ("cpu.per_package.cpuid", "24"),
            ("mitigation.pti", "no"),
            ("mitigation.meltdown", "Not affected"),
            ("mitigation.spec_rstack_overflow", "Mitigation: Safe RET"),
            ("mitigation.tsa", "absent"),
            ("hypervisor.present", "no"),
            ("hypervisor.layers", "none"),
            ("hypervisor.cpuid", "native"),
            ("container.layers", "none"),
            ("container.init", "refused"),
            ("audit.hints", "a login user is set, as pam_loginuid does, a session number is set"),
            ("allowed.perf_events", "nothing"),
            ("allowed.userfaultfd", "no"),
            ("kernel.lockdown", "none"),
            ("kernel.preemption", "refused"),
            ("clocksource.in_user_mode", "yes"),
            ("power.driver", "acpi-cpufreq"),
            ("cgroup.version", "2"),
        ],
    );
    let under: Facts = storage(&machine("debian-zen3"), Path::new("/home")).into_iter().collect();
    expect(
        &under,
        &[
            ("files.fs", "ext4"),
            ("files.device", "nvme0n1p2"),
            ("files.device.scheduler", "none"),
            ("files.device.write_cache", "write back"),
        ],
    );
}

#[test]
fn docker_on_ubuntu_in_hyperv() {
    let facts = read("ubuntu-hyperv-docker");
    assert_eq!(environment(&facts), Environment::Container);
    expect(
        &facts,
        &[
            ("hypervisor.layers", "Hyper-V"),
            ("hypervisor.cpuid", "exit"),
            ("container.layers", "docker"),
            ("container.mounts", "docker"),
            ("container.namespaces", "cgroup, ipc, pid, uts"),
            ("container.unshared", "none"),
            ("container.root", "overlay"),
            ("mitigation.pti", "yes"),
            ("mitigation.mds", "Mitigation: Clear CPU buffers; SMT Host state unknown"),
            ("seccomp.mode", "filter"),
            ("seccomp.filters", "1"),
            ("allowed.io_uring", "no"),
            ("allowed.perf_events", "nothing"),
            ("cgroup.cpu_max", "2"),
            ("cgroup.memory_max", "4294967296"),
            ("cgroup.io_max", "none"),
            ("clocksource.in_user_mode", "yes"),
            ("kernel.tick_rate", "1000"),
        ],
    );
}

#[test]
fn a_machine_in_a_nested_virtual_machine() {
    let facts = read("firecracker-nested");
    assert_eq!(environment(&facts), Environment::Vm);
    expect(
        &facts,
        &[
            ("hypervisor.layers", "KVM, an outer hypervisor"),
            ("hypervisor.cpuid", "slow exit"),
            ("machine.firmware", "refused"),
            ("container.init", "refused"),
            ("container.layers", "none"),
            ("mitigation.parameters", "mitigations=auto,no_guest_host,no_guest_guest"),
            ("cgroup.version", "1 and 2"),
            ("rseq.registered", "yes"),
            ("kernel.tick_rate", "250"),
        ],
    );
    let FactValue::List(features) = facts["hypervisor.kvm_features"].value().expect("known") else {
        panic!("no list")
    };
    assert!(features.iter().any(|feature| feature == "steal_time"), "{features:?}");
}

#[test]
fn a_sandbox_that_plays_linux() {
    let facts = read("gvisor");
    assert_eq!(environment(&facts), Environment::Sandbox);
    expect(
        &facts,
        &[
            ("sandbox.kernel", "gVisor"),
            ("kernel.preemption", "absent"),
            ("kernel.tick_rate", "absent"),
            ("allowed.io_uring", "absent"),
            ("rseq.registered", "absent"),
            ("container.root", "9p"),
            ("hypervisor.cpuid", "slow exit"),
        ],
    );
}
