//! Machines that are simulated: their `/sys`, `/proc` and CPUID as a captured tree, made where a test asks for it. What depends on
//! the machine is read of them as it is of this one, so that no test depends on where it runs.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tollgate_engine::{HERE, Topology};

/// Level, kind, KiB, and the processors that share it.
type Cache = (u8, &'static str, u64, Vec<usize>);

/// A machine. What a processor shares is the list of the processors that share it, itself among them.
pub struct Machine {
    /// What is special about it.
    pub name: &'static str,
    /// As uname(2) spells it.
    pub architecture: &'static str,
    /// As CPUID spells it; empty on arm64, which has no CPUID.
    pub vendor: &'static str,
    /// The brand.
    pub model: &'static str,
    pub processors: usize,
    /// The hardware threads of a processor's core.
    pub core: fn(usize) -> Vec<usize>,
    /// Those that a processor uses.
    pub caches: fn(usize) -> Vec<Cache>,
    /// The package and the memory node of a processor.
    pub package: fn(usize) -> usize,
    pub node: fn(usize) -> usize,
    /// The fast ones, where not all are alike.
    pub fast: Option<&'static str>,
    /// The signature in CPUID.
    pub hypervisor: Option<&'static str>,
}

/// The processors `n` is one of, in blocks of so many.
fn block(n: usize, of: usize) -> Vec<usize> {
    (n / of * of..n / of * of + of).collect()
}

/// One, two and many processors, of Intel, AMD and Arm, with and without a hypervisor; with caches of three levels, of two, and unknown.
pub const MACHINES: [Machine; 7] = [
    Machine {
        name: "a virtual machine of two processors",
        architecture: "x86_64",
        vendor: "AuthenticAMD",
        model: "AMD EPYC 9R14 96-Core Processor",
        processors: 2,
        core: |n| vec![n],
        caches: |n| {
            let own = |level, kind, kib| (level, kind, kib, vec![n]);
            vec![
                own(1, "Data", 32),
                own(1, "Instruction", 32),
                own(2, "Unified", 1024),
                (3, "Unified", 32 << 10, vec![0, 1]),
            ]
        },
        package: |_| 0,
        node: |_| 0,
        fast: None,
        hypervisor: Some("KVMKVMKVM\0\0\0"),
    },
    Machine {
        name: "a laptop with two kinds of cores",
        architecture: "x86_64",
        vendor: "GenuineIntel",
        model: "13th Gen Intel(R) Core(TM) i7-1360P",
        processors: 12,
        core: |n| if n < 8 { block(n, 2) } else { vec![n] },
        caches: |n| {
            let (core, second, l1, l2) =
                if n < 8 { (block(n, 2), block(n, 2), 48, 2048) } else { (vec![n], block(n, 4), 32, 4096) };
            vec![
                (1, "Data", l1, core.clone()),
                (1, "Instruction", 32, core),
                (2, "Unified", l2, second),
                (3, "Unified", 36 << 10, (0..12).collect()),
            ]
        },
        package: |_| 0,
        node: |_| 0,
        fast: Some("0-7"),
        hypervisor: None,
    },
    Machine {
        name: "two packages with 64 processors and four memory nodes",
        architecture: "x86_64",
        vendor: "AuthenticAMD",
        model: "AMD EPYC 7313 16-Core Processor",
        processors: 64,
        core: |n| vec![n % 32, n % 32 + 32],
        caches: |n| {
            let core = vec![n % 32, n % 32 + 32];
            let complex = block(n % 32, 4).into_iter().flat_map(|core| [core, core + 32]).collect();
            vec![
                (1, "Data", 32, core.clone()),
                (1, "Instruction", 32, core.clone()),
                (2, "Unified", 512, core),
                (3, "Unified", 32 << 10, complex),
            ]
        },
        package: |n| n % 32 / 16,
        node: |n| n % 32 / 8,
        fast: None,
        hypervisor: None,
    },
    Machine {
        name: "one processor",
        architecture: "x86_64",
        vendor: "GenuineIntel",
        model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz",
        processors: 1,
        core: |_| vec![0],
        caches: |_| {
            vec![(1, "Data", 48, vec![0]), (2, "Unified", 1280, vec![0]), (3, "Unified", 48 << 10, vec![0])]
        },
        package: |_| 0,
        node: |_| 0,
        fast: None,
        hypervisor: Some("Microsoft Hv"),
    },
    Machine {
        name: "no third level of caches",
        architecture: "x86_64",
        vendor: "GenuineIntel",
        model: "Intel(R) Celeron(R) J4125 CPU @ 2.00GHz",
        processors: 4,
        core: |n| vec![n],
        caches: |n| {
            vec![
                (1, "Data", 24, vec![n]),
                (1, "Instruction", 32, vec![n]),
                (2, "Unified", 4096, (0..4).collect()),
            ]
        },
        package: |_| 0,
        node: |_| 0,
        fast: None,
        hypervisor: None,
    },
    Machine {
        name: "caches that the kernel does not list",
        architecture: "x86_64",
        vendor: "AuthenticAMD",
        model: "AMD EPYC",
        processors: 8,
        core: |_| Vec::new(),
        caches: |_| Vec::new(),
        package: |_| 0,
        node: |_| 0,
        fast: None,
        hypervisor: Some("TCGTCGTCGTCG"),
    },
    ARM64,
];

pub const ARM64: Machine = Machine {
    name: "a processor of arm64",
    architecture: "aarch64",
    vendor: "",
    model: "",
    processors: 64,
    core: |n| vec![n],
    caches: |n| {
        let own = |level, kind, kib| (level, kind, kib, vec![n]);
        vec![
            own(1, "Data", 64),
            own(1, "Instruction", 64),
            own(2, "Unified", 1024),
            (3, "Unified", 32 << 10, (0..64).collect()),
        ]
    },
    package: |_| 0,
    node: |_| 0,
    fast: None,
    hypervisor: None,
};

/// A machine of two processors, with the architecture for which the test is compiled.
pub fn here() -> Topology {
    Topology { architecture: HERE, ..MACHINES[0].topology() }
}

/// Its files, until this is dropped.
pub struct Tree(tempfile::TempDir);

impl Tree {
    pub fn of(machine: &Machine) -> Self {
        // In memory, where there is such a directory.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let tree = Self(directory.expect("a temporary directory"));
        tree.write_processors(machine);
        tree.write_nodes(machine);
        tree.write("proc/cpuinfo", &cpuinfo(machine));
        tree.write(
            "proc/self/status",
            &format!("Name:\ttollgate\nCpus_allowed_list:\t0-{}\n", machine.processors - 1),
        );
        tree.write("proc/cmdline", "quiet\n");
        tree.write("proc/sys/kernel/osrelease", "6.12.0\n");
        tree.write("proc/sys/kernel/arch", &format!("{}\n", machine.architecture));
        tree.write("tollgate.json", &record(machine));
        tree
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path: PathBuf = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("our own directory");
        fs::write(path, text).expect("our own file");
    }

    fn write_processors(&self, machine: &Machine) {
        const CPU: &str = "sys/devices/system/cpu";
        let all = list(0..machine.processors);
        for name in ["online", "possible", "present"] {
            self.write(&format!("{CPU}/{name}"), &all);
        }
        for name in ["isolated", "nohz_full"] {
            self.write(&format!("{CPU}/{name}"), "\n");
        }
        if let Some(fast) = machine.fast {
            self.write("sys/devices/cpu_core/cpus", fast);
        }
        for cpu in 0..machine.processors {
            let core = (machine.core)(cpu);
            if core.is_empty() {
                continue;
            }
            let topology = format!("{CPU}/cpu{cpu}/topology");
            self.write(&format!("{topology}/core_cpus_list"), &list(core));
            self.write(
                &format!("{topology}/package_cpus_list"),
                &list(machine.with(machine.package, (machine.package)(cpu))),
            );
            for (index, (level, kind, kib, shared)) in (machine.caches)(cpu).into_iter().enumerate() {
                let cache = format!("{CPU}/cpu{cpu}/cache/index{index}");
                self.write(&format!("{cache}/level"), &format!("{level}\n"));
                self.write(&format!("{cache}/type"), &format!("{kind}\n"));
                self.write(&format!("{cache}/size"), &format!("{kib}K\n"));
                self.write(&format!("{cache}/shared_cpu_list"), &list(shared));
            }
        }
    }

    fn write_nodes(&self, machine: &Machine) {
        const NODE: &str = "sys/devices/system/node";
        let nodes = (0..machine.processors).map(machine.node).max().map_or(0, |last| last + 1);
        for name in ["online", "has_memory"] {
            self.write(&format!("{NODE}/{name}"), &list(0..nodes));
        }
        for node in 0..nodes {
            let distance = |other| if other == node { "10" } else { "21" };
            let distances: Vec<&str> = (0..nodes).map(distance).collect();
            self.write(&format!("{NODE}/node{node}/distance"), &format!("{}\n", distances.join(" ")));
            self.write(&format!("{NODE}/node{node}/cpulist"), &list(machine.with(machine.node, node)));
        }
    }
}

impl Machine {
    /// The processors whose package or node has this number.
    fn with(&self, of: fn(usize) -> usize, number: usize) -> impl Iterator<Item = usize> {
        (0..self.processors).filter(move |&cpu| of(cpu) == number)
    }

    /// What its cases depend on, for a process that may use all processors.
    pub fn topology(&self) -> Topology {
        // A tree has up to two thousand files.
        static KNOWN: Mutex<BTreeMap<&str, Topology>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || Topology::below(Tree::of(self).path(), (0..self.processors).collect());
        known.entry(self.name).or_insert_with(read).clone()
    }
}

/// `0,2-3`, as the kernel writes it.
fn list(processors: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in processors {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    let ranges: Vec<String> = ranges.into_iter().map(range).collect();
    format!("{}\n", ranges.join(","))
}

fn cpuinfo(machine: &Machine) -> String {
    if machine.architecture == "aarch64" {
        let of = |cpu| {
            format!(
                "processor\t: {cpu}\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd atomics\nCPU implementer\t: 0x41\n\
                 CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd40\nCPU revision\t: 1\n\n"
            )
        };
        return (0..machine.processors).map(of).collect();
    }
    let Machine { vendor, model, .. } = machine;
    let flag = if machine.hypervisor.is_some() { " hypervisor" } else { "" };
    let of = |cpu| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: {vendor}\ncpu family\t: 6\nmodel\t\t: 1\nmodel name\t: {model}\n\
             flags\t\t: fpu tsc constant_tsc nonstop_tsc{flag}\nbugs\t\t: spectre_v1 spectre_v2\n\n"
        )
    };
    (0..machine.processors).map(of).collect()
}

/// The record of a captured tree, with the leaves of CPUID that spell the vendor and the hypervisor; arm64 has none.
fn record(machine: &Machine) -> String {
    let word = |text: &str, at: usize| {
        u32::from_le_bytes(text.as_bytes()[at..at + 4].try_into().expect("four bytes"))
    };
    let leaf = |leaf: u32, registers: [u32; 4]| serde_json::json!({"leaf": leaf, "subleaf": 0, "registers": registers});
    let vendor = machine.vendor;
    let mut leaves = match vendor {
        "" => vec![],
        _ => vec![
            leaf(0, [1, word(vendor, 0), word(vendor, 8), word(vendor, 4)]),
            leaf(1, [0, 0, u32::from(machine.hypervisor.is_some()) << 31, 0]),
            leaf(0x8000_0000, [0x8000_0000, 0, 0, 0]),
        ],
    };
    if let Some(name) = machine.hypervisor {
        leaves.push(leaf(0x4000_0000, [0x4000_0000, word(name, 0), word(name, 4), word(name, 8)]));
    }
    serde_json::json!({"format": 1, "directory": "/", "cpuid": leaves, "calls": {}, "errors": {}}).to_string()
}
