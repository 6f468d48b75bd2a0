//! The visible hypervisors below this kernel. Each adds to the latency of the operations that it intercepts. A hypervisor that
//! hides, or that another one hides, is not visible.

use tollgate_kconfig::parameters;
use tollgate_model::Unknown;

use crate::leaves::{Bit, Register};
use crate::machine::{Answer, Machine, found};
use crate::processor::{cpuid, cpuinfo, flags};
use crate::{firmware, kernel::command_line_text, software, text::kernel_bool, uname::release_text};

const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
const PRODUCT: &str = "/sys/class/dmi/id/product_name";
/// The device tree, which machines without DMI have.
const DEVICE_TREE: &str = "/sys/firmware/devicetree/base/compatible";
const XEN: &str = "/sys/hypervisor/type";

/// Intel and AMD reserve this bit for hypervisors.
const PRESENT: Bit = Bit { leaf: 1, subleaf: 0, register: Register::Ecx, number: 31 };
/// Nested in another Hyper-V (TLFS, "Implementation recommendations"). The bit has this meaning only with Hyper-V's signature.
const HYPERV_NESTED: u32 = 12;
const HYPERV: &str = "Microsoft Hv";

/// The layer around the visible ones, if evidence shows that they are in a virtual machine themselves.
pub const OUTER: &str = "an outer hypervisor";
const UNNAMED: &str = "unnamed";

/// Returns whether a layer of `hypervisor.layers` is a name.
pub fn is_named(layer: &str) -> bool {
    ![OUTER, UNNAMED].contains(&layer)
}

/// If CPUID was not captured, the kernel's flags show the same bit. arm64 has no such bit: only a layer with a mark shows one.
pub(crate) fn is_present(machine: &Machine) -> Answer<bool> {
    if machine.is_arm64() {
        return Ok(layers(machine)?.map(|_| true));
    }
    cpuid(machine, &PRESENT.to_string(), |leaves| leaves.bit(PRESENT)).or_else(|_| {
        let has_it = |flags: String| flags.split_whitespace().any(|flag| flag == "hypervisor");
        flags(machine).map(|flags| flags.map(has_it))
    })
}

/// The signatures in CPUID, outermost disguise first: Hyper-V's interface in front of KVM's.
pub(crate) fn signatures(machine: &Machine) -> Answer<Vec<String>> {
    let all = machine.leaves()?.hypervisors().map(|(_, signature)| signature);
    let present = is_present(machine).is_ok_and(|present| present.value);
    // Without the bit, registers that happen to spell something are not a signature.
    let signatures: Vec<String> =
        all.filter(|signature| present || by_signature(signature).is_some()).collect();
    if signatures.is_empty() {
        return Err(Unknown::Absent("CPUID.40000000h has no signature".into()));
    }
    found(signatures, "CPUID.40000000h and every 100h above")
}

pub(crate) fn is_translator(machine: &Machine) -> bool {
    signatures(machine).is_ok_and(|found| found.value.iter().any(|signature| signature == "TCGTCGTCGTCG"))
        || translated_processor(machine).is_some()
}

/// The processor's name in /proc/cpuinfo, if it is one that only QEMU's translator has, whether CPUID names a hypervisor or not: the
/// brand of most x86 models under TCG (target/i386/cpu.c), and arm64's `-cpu max`, whose MIDR_EL1 has the implementer 0, reserved for
/// software, and the part `Q` (target/arm/tcg/cpu64.c).
fn translated_processor(machine: &Machine) -> Option<String> {
    let field = |key| cpuinfo(machine, key).ok().map(|found| found.value);
    let brand = field("model name").filter(|name| name.starts_with("QEMU TCG CPU"));
    brand.or_else(|| {
        let identity = field("CPU implementer")? + " " + &field("CPU part")?;
        (identity == "0x00 0x051").then_some(identity)
    })
}

pub(crate) fn kvm_bit(machine: &Machine, bit: u32) -> Option<bool> {
    let (_, [eax, ..]) = kvm_leaf(machine)?;
    Some(eax >> bit & 1 == 1)
}

fn kvm_leaf(machine: &Machine) -> Option<(u32, [u32; 4])> {
    let leaves = machine.leaves().ok()?;
    let (first, _) = leaves.hypervisors().find(|(_, signature)| by_signature(signature) == Some("KVM"))?;
    Some((first + 1, leaves.leaf(first + 1, 0)?))
}

/// The features by which KVM saves exits, in the manual's words.
pub(crate) fn kvm_features(machine: &Machine) -> Answer<Vec<String>> {
    /// Documentation/virt/kvm/x86/cpuid.rst, without the features that affect no latency.
    const FEATURES: [(u32, &str); 11] = [
        (3, "clocksource2"),
        (4, "async_pf"),
        (5, "steal_time"),
        (6, "pv_eoi"),
        (7, "pv_unhalt"),
        (9, "pv_tlb_flush"),
        (11, "pv_send_ipi"),
        (12, "poll_control"),
        (13, "pv_sched_yield"),
        (14, "async_pf_int"),
        (24, "clocksource_stable"),
    ];
    match kvm_leaf(machine) {
        Some((leaf, [eax, ..])) => {
            let offered = FEATURES.into_iter().filter(|(bit, _)| eax >> bit & 1 == 1);
            let offered: Vec<String> = offered.map(|(_, name)| name.to_owned()).collect();
            found(offered, format!("CPUID.{leaf:x}h:EAX"))
        }
        None => Err(machine.leaves().err().unwrap_or_else(|| {
            Unknown::Absent("CPUID has no KVM signature, or KVM offers no feature leaf".to_owned())
        })),
    }
}

/// Evidence that the hypervisor itself is in a virtual machine. An empty list means no evidence, not that there is no nesting:
/// only the latency of exits shows that.
pub(crate) fn nesting(machine: &Machine) -> Answer<Vec<String>> {
    let hints = nesting_hints(machine);
    match command_line_text(machine) {
        Err(why) if hints.is_empty() => Err(why),
        _ if machine.is_arm64() => found(hints, "/proc/cmdline nested_*="),
        _ => found(hints, "/proc/cmdline nested_*=, CPUID.40000004h:EAX[12]"),
    }
}

fn nesting_hints(machine: &Machine) -> Vec<String> {
    let mut hints = Vec::new();
    if let Ok(line) = command_line_text(machine) {
        let nested = parameters(&line.value).filter(|(name, value)| {
            name.starts_with("nested_") && value.is_none_or(|value| kernel_bool(value) != Some(false))
        });
        hints.extend(nested.map(|(name, _)| format!("{name} on the kernel command line")));
    }
    if let Ok(leaves) = machine.leaves()
        && let Some((leaf, _)) = leaves.hypervisors().find(|(_, signature)| signature == HYPERV)
        && let Some([eax, ..]) = leaves.leaf(leaf + 4, 0)
        && eax >> HYPERV_NESTED & 1 == 1
    {
        hints.push("Hyper-V says that it is nested".to_owned());
    }
    hints
}

/// Every layer with a mark, each once, with the marks as the source.
pub(crate) fn layers(machine: &Machine) -> Answer<Vec<String>> {
    let mut layers = Layers::default();
    for signature in signatures(machine).map(|found| found.value).unwrap_or_default() {
        let name = by_signature(&signature).unwrap_or(&signature);
        layers.add(name, &format!("CPUID.40000000h {signature:?}"));
    }
    if let Some(processor) = translated_processor(machine) {
        layers.add("QEMU TCG", &format!("/proc/cpuinfo {processor:?}"));
    }
    if let Some(evidence) = software::evidence(machine) {
        layers.add("QEMU TCG", &evidence);
    }
    // Intel TDX module specification: the signature of a trust domain, in EBX, EDX, ECX.
    let domain = cpuid(machine, "CPUID.21h", |leaves| leaves.leaf(0x21, 0));
    if let Ok(Some(signature)) = domain.map(|found| crate::leaves::spelled(&reorder(found.value)))
        && signature == "IntelTDX"
    {
        layers.add("TDX", "CPUID.21h \"IntelTDX\"");
    }
    let dmi = [VENDOR, PRODUCT].map(|path| machine.line(path).map(|found| found.value).unwrap_or_default());
    if let Some(name) = by_dmi(&dmi[0], &dmi[1]) {
        layers.add(name, &format!("{VENDOR} {:?}, {PRODUCT} {:?}", dmi[0], dmi[1]));
    }
    if let Ok(maker) = firmware::table_maker(machine)
        && let Some(name) = firmware::hypervisor_of(&maker.value)
    {
        layers.add(name, &format!("{} {:?}", maker.source, maker.value));
    }
    if let Ok(kind) = machine.line(XEN)
        && kind.value == "xen"
    {
        layers.add("Xen", XEN);
    }
    if let Ok(release) = release_text(machine)
        && release.value.contains("microsoft-standard")
    {
        layers.add("WSL 2", &format!("{} {:?}", release.source, release.value));
    }
    let hints = nesting_hints(machine);
    if !hints.is_empty() {
        layers.add(OUTER, &hints.join(", "));
    }
    // QEMU, Firecracker and others give this name to a machine whose devices no hardware has (Documentation/devicetree/bindings/arm).
    if layers.names.is_empty()
        && let Ok(kinds) = machine.text(DEVICE_TREE)
        && kinds.value.split('\0').any(|kind| kind == "linux,dummy-virt")
    {
        layers.add(UNNAMED, &format!("{DEVICE_TREE} linux,dummy-virt"));
    }
    if machine.is_arm64() {
        return match layers.names.is_empty() {
            true => {
                Err(Unknown::Absent("arm64 has no bit for a hypervisor, and no file names one".to_owned()))
            }
            false => found(layers.names, layers.marks.join("; ")),
        };
    }
    match is_present(machine) {
        Ok(present) if present.value && layers.names.is_empty() => {
            layers.add(UNNAMED, &present.source);
        }
        Ok(present) if layers.names.is_empty() => {
            layers.marks.push(format!("{} is not set, DMI names none", present.source));
        }
        Err(why) if layers.names.is_empty() => return Err(why),
        _ => {}
    }
    found(layers.names, layers.marks.join("; "))
}

fn reorder([_, ebx, ecx, edx]: [u32; 4]) -> [u32; 3] {
    [ebx, edx, ecx]
}

#[derive(Default)]
struct Layers {
    names: Vec<String>,
    marks: Vec<String>,
}

impl Layers {
    fn add(&mut self, name: &str, mark: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        self.marks.push(mark.to_owned());
    }
}

fn by_signature(signature: &str) -> Option<&'static str> {
    Some(match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        HYPERV => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "VBoxVBoxVBox" => "VirtualBox",
        "bhyve bhyve" => "bhyve",
        "ACRNACRNACRN" => "ACRN",
        "Jailhouse" => "Jailhouse",
        "QNXQVMBSQG" => "QNX",
        "prl hyperv" | "lrpepyh  vr" | "lrpepyh vr" => "Parallels",
        "OpenBSDVMM58" => "OpenBSD VMM",
        "___ NVMM ___" => "NVMM",
        "HAXMHAXMHAXM" => "HAXM",
        "SRESRESRESRE" => "LMHS",
        "EVMMEVMMEVMM" => "Intel KGT",
        "UnisysSpar64" => "Unisys s-Par",
        "VirtualApple" => "Rosetta",
        _ => return None,
    })
}

/// Names for the vendors of firmware tables. Clouds that also rent out bare metal under the same name do not count.
fn by_dmi(vendor: &str, product: &str) -> Option<&'static str> {
    const PREFIXES: [(&str, &str); 13] = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("KubeVirt", "KubeVirt"),
        ("OpenStack", "OpenStack"),
        ("Firecracker", "Firecracker"),
        ("Cloud Hypervisor", "Cloud Hypervisor"),
        ("VMware", "VMware"),
        ("VMW", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("Bochs", "Bochs"),
        ("Parallels", "Parallels"),
        ("BHYVE", "bhyve"),
        ("Apple Virtualization", "Apple Virtualization"),
    ];
    match (vendor, product) {
        ("Microsoft Corporation", "Virtual Machine") => return Some("Hyper-V"),
        ("innotek GmbH", _) => return Some("VirtualBox"),
        ("Xen", _) => return Some("Xen"),
        ("Amazon EC2", product) if product.contains('.') && !product.contains(".metal") => {
            return Some("Nitro");
        }
        _ => {}
    }
    let signed = |prefix: &str| vendor.starts_with(prefix) || product.starts_with(prefix);
    PREFIXES.into_iter().find(|(prefix, _)| signed(prefix)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaves::{Leaves, Registers};
    use crate::testing::write;

    fn hypervisor(first: u32, signature: &[u8; 12]) -> ((u32, u32), Registers) {
        let (parts, _) = signature.as_chunks::<4>();
        let [ebx, ecx, edx] = [parts[0], parts[1], parts[2]].map(u32::from_le_bytes);
        ((first, 0), [first + 4, ebx, ecx, edx])
    }

    fn machine(leaves: Vec<((u32, u32), Registers)>) -> (tempfile::TempDir, Machine) {
        let tree = tempfile::tempdir().unwrap();
        let machine = Machine::captured(tree.path()).with_leaves(Leaves::from_iter(leaves));
        (tree, machine)
    }

    fn names(machine: &Machine) -> Option<Vec<String>> {
        layers(machine).ok().map(|found| found.value)
    }

    const BIT: ((u32, u32), Registers) = ((1, 0), [0, 0, 1 << 31, 0]);
    const NO_BIT: ((u32, u32), Registers) = ((1, 0), [0; 4]);

    #[test]
    fn each_layer_is_named_once() {
        let hyperv = hypervisor(0x4000_0000, b"Microsoft Hv");
        let kvm = hypervisor(0x4000_0100, b"KVMKVMKVM\0\0\0");
        let (tree, machine) = machine(vec![BIT, hyperv, kvm]);
        assert_eq!(names(&machine), Some(vec!["Hyper-V".into(), "KVM".into()]));
        write(tree.path(), "sys/class/dmi/id/sys_vendor", "QEMU\n");
        write(tree.path(), "proc/cmdline", "quiet nested_pvm=1\n");
        let all = ["Hyper-V", "KVM", "QEMU", "an outer hypervisor"].map(str::to_owned);
        assert_eq!(names(&machine), Some(all.to_vec()));
        write(tree.path(), "proc/cmdline", "quiet nested_pvm=0\n");
        assert_eq!(names(&machine), Some(all[..3].to_vec()));
    }

    #[test]
    fn hyperv_tells_of_nesting() {
        let hyperv = hypervisor(0x4000_0000, b"Microsoft Hv");
        let (_tree, machine) = machine(vec![BIT, hyperv, ((0x4000_0004, 0), [1 << 12, 0, 0, 0])]);
        assert_eq!(names(&machine), Some(vec!["Hyper-V".into(), "an outer hypervisor".into()]));
    }

    #[test]
    fn a_hidden_hypervisor_is_seen_by_its_signature() {
        let (_tree, hidden) = machine(vec![NO_BIT, hypervisor(0x4000_0000, b"KVMKVMKVM\0\0\0")]);
        assert_eq!(names(&hidden), Some(vec!["KVM".into()]));
        let (_tree, chance) = machine(vec![NO_BIT, hypervisor(0x4000_0000, b"ABCDEFGHIJKL")]);
        assert_eq!(names(&chance), Some(vec![]), "registers of a processor without one may spell something");
        let (_tree, unnamed) = machine(vec![BIT]);
        assert_eq!(names(&unnamed), Some(vec!["unnamed".into()]));
        let (_tree, unheard_of) = machine(vec![BIT, hypervisor(0x4000_0000, b"ABCDEFGHIJKL")]);
        assert_eq!(names(&unheard_of), Some(vec!["ABCDEFGHIJKL".into()]));
    }

    #[test]
    fn the_translator_is_seen_without_cpuid() {
        let (tree, x86) = machine(vec![NO_BIT]);
        write(tree.path(), "proc/cpuinfo", "model name\t: QEMU TCG CPU version 2.5+\n");
        assert_eq!((names(&x86), is_translator(&x86)), (Some(vec!["QEMU TCG".into()]), true));
        let tree = tempfile::tempdir().unwrap();
        for (implementer, part, is) in
            [("0x00", "0x051", true), ("0x41", "0x051", false), ("0x41", "0xd0c", false)]
        {
            let text = format!("processor\t: 0\nCPU implementer\t: {implementer}\nCPU part\t: {part}\n");
            write(tree.path(), "proc/cpuinfo", &text);
            assert_eq!(is_translator(&Machine::captured(tree.path())), is, "{text}");
        }
    }

    #[test]
    fn without_cpuid_the_times_of_instructions_and_the_device_tree_show_it() {
        let named = |is_software: bool, kinds: &str| {
            let tree = tempfile::tempdir().unwrap();
            let calls = serde_json::json!({(software::CALL): {"value": is_software}});
            let record = serde_json::json!({"format": 1, "directory": "/", "calls": calls, "errors": {}});
            write(tree.path(), "tollgate.json", record.to_string());
            write(tree.path(), "sys/firmware/devicetree/base/compatible", kinds);
            names(&Machine::open(tree.path()).unwrap())
        };
        assert_eq!(named(true, "raspberrypi,4-model-b\0brcm,bcm2711\0"), Some(vec!["QEMU TCG".into()]));
        assert_eq!(named(false, "linux,dummy-virt\0"), Some(vec!["unnamed".into()]));
        assert_eq!(named(false, "raspberrypi,4-model-b\0brcm,bcm2711\0"), None);
    }

    #[test]
    fn without_cpuid_and_cpuinfo_nothing_is_claimed() {
        let tree = tempfile::tempdir().unwrap();
        assert!(layers(&Machine::captured(tree.path())).is_err());
    }

    #[test]
    fn clouds_are_not_layers() {
        assert_eq!(by_dmi("Amazon EC2", "c5.metal"), None);
        assert_eq!(by_dmi("Amazon EC2", "c7g.metal-48xl"), None);
        assert_eq!(by_dmi("Amazon EC2", "c7g.large"), Some("Nitro"));
        assert_eq!(by_dmi("Google", "Google Compute Engine"), None);
        assert_eq!(by_dmi("Microsoft Corporation", "Surface"), None);
        assert_eq!(by_dmi("Microsoft Corporation", "Virtual Machine"), Some("Hyper-V"));
        assert_eq!(by_dmi("", ""), None);
    }
}
