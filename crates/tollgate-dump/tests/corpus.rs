//! A small text of each form that debuggers, emulators and kernels print, and what must be shown of it. The texts are
//! handwritten after public ones, with the same forms and kinds of values.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use tollgate_dump::output::{DecodedText, Entry, Options, render};
use tollgate_dump::{Session, join, read};

/// A text, and what its screen must and must not contain, with single spaces.
struct Sample {
    name: &'static str,
    text: &'static str,
    shown: &'static [&'static str],
    absent: &'static [&'static str],
}

macro_rules! samples {
    ($($file:literal: [$($shown:literal),* $(,)?] [$($absent:literal),* $(,)?];)+) => {
        const SAMPLES: &[Sample] = &[$(Sample {
            name: $file,
            text: include_str!(concat!("corpus/", $file, ".txt")),
            shown: &[$($shown),*],
            absent: &[$($absent),*],
        },)+];
    };
}

samples! {
    "qemu-reset": [
        "The processor is in real mode: CR0.PE is clear (line 15).",
        "cs f000 base ffff0000, from a reset or another mode: 16 × f000 is 000f0000, last offset ffff",
        "ds 0000 base 00000000, last offset ffff",
        "tr 0000 not used in real mode",
        "gdtr 00000000 limit ffff not used in real mode",
        "idtr 00000000 limit ffff 256 vectors of 4 bytes",
        "rip 0000fff0",
    ] ["entry 7680", "256 gates", "null", "32-bit protected mode", "TSS has a limit"];
    "qemu-bios": [
        "The processor is in real mode",
        "cs f000 base 000f0000, last offset ffff",
        "ds 9fc0 base 0009fc00, last offset ffffffff",
        "idtr 00000000 limit 3ff 256 vectors of 4 bytes",
        "int 10 c000:5606 vector of real mode",
        "int 13 f000:e739 vector of real mode",
    ] ["entry ", "GDTR's limit", "gate"];
    "qemu-smm": [
        "The processor is in real mode: CR0.PE is clear (line 15).",
        "The processor is in system-management mode: the tool says SMM=1 (line 4).",
        "cs 3000 base 00030000, last offset ffffffff",
        "idtr 00000000 limit 0 0 vectors of 4 bytes",
    ] ["entry ", "GDTR's limit"];
    "qemu-v86": [
        "The processor is in virtual-8086 mode, in ring 3: EFLAGS.VM is set (line 5).",
        "The tables are those of 32-bit protected mode",
        "cs 0202 base 00002020, last offset ffff",
        "ds 0001 base 00000010, last offset ffff",
        "tr 0028 entry 5 of the GDT, RPL 0, base 00110000",
        "idtr 002e4fa0 limit 7ff 256 gates",
    ] ["entry 64 of", "null,", "GDTR's limit is 2f"];
    "kvm-entry-failed": [
        "The tables are those of 32-bit protected mode",
        "cs 07c0 still as real mode loaded it: base 00007c00, last offset ffff",
        "ss 0000 still as real mode loaded it: base 00000000, last offset ffff",
        "tr 0000 null",
    ] ["entry 248", "GDTR's limit"];
    "qemu-triple-fault": [
        "The tables are those of long mode",
        "cs 0008 entry 1 of the GDT, RPL 0, base 0000000000000000, last offset 0, 64-bit code, execute only",
        "tr 0000 null",
        "cr2 00000000deadb000",
        "rip 0000000000101a3c",
    ] ["TSS has a limit", "real mode"];
    "qemu-no-tss": [
        "0008 00000000 ffffffff 0 32-bit code, readable",
        "tr 0000 null",
    ] ["TSS has a limit", "the TSS is at"];
    "bochs-info-gdt": [
        "0008 00000000 ffffffff ? 32-bit code, execute only, accessed; whether it is present is not known",
        "0018 c00b8000 00007fff ? data, writable, accessed; whether it is present is not known",
        "0020 c0007320 0000006b ? 32-bit TSS, busy; whether it is present is not known",
        "0028 not known not known 3 32-bit call gate, leads to 0008:c0001a40; whether it is present is not known",
        "ldtr not known base 00000000c0009000, last offset f",
        "000c 00010000 00000fff ? data, read only; whether it is present is not known",
        "int 80 0008:c0001c00 3 32-bit interrupt gate",
    ] [];
    "bochs-real": [
        "The processor is in real mode",
        "cs 07c0 base 00007c00, last offset ffff",
        "int 10 c000:0155 vector of real mode",
        "int 12 f000:f841 vector of real mode",
        "gdtr 000f9ad7 limit 30 not used in real mode",
        "cr2 0badf00d",
    ] ["entry ", "null"];
    "bochs-tss": [
        "tr 0060 entry 12 of the GDT, RPL 0, base c02161dc",
        "4 esp0 c0218000",
        "8 ss0 0018",
        "66 iomap 8000",
    ] [];
    "bochs-log-32": [
        "CPU0, lines 3 to 19",
        "The tables are those of 32-bit protected mode",
        "cs 0008 entry 1 of the GDT, RPL 0, base 00000000, last offset ffffffff",
        "gs 0043 entry 8 of the GDT, RPL 3, base 000b8000, last offset ffff",
        "cr0 60000011 PE ET NW CD",
        "cr3 00102ad0",
        "rflags 00010082 FIXED SF RF",
        "rip 00000003",
        "c0000080 EFER 0000000000000000",
    ] [];
    "bochs-log-long": [
        "The tables are those of long mode",
        "cs 0008 entry 1 of the GDT, RPL 0, base 00000000, last offset 0",
        "cr0 00000000e0000011 PE ET NW CD PG",
        "cr3 0000000000101000",
        "cr4 0000000000000020 PAE",
        "rflags 0000000000010286",
        "rip ffff800000104051",
        "c0000080 EFER 0000000000000500",
        "c0000100 FS_BASE 0000000000000000",
        "c0000101 GS_BASE ffff80000000e050",
    ] [];
    "bochs-log-real": [
        "The processor is in real mode",
        "cs 07c0 base 00007c00, last offset ffff",
        "rflags 00000206 FIXED PF IF",
        "rip 00000012",
    ] ["entry "];
    "kd-pcr-32": [
        "gdtr 8003f000 limit not known",
        "idtr 8003f400 limit not known",
        "tr not known base 80042000",
        "0008 00000000 ffffffff 0 32-bit code, readable, accessed",
        "0020 00000000 ffffffff 3 data, writable, accessed",
        "int 2e 0008:808655cd 3 32-bit interrupt gate",
        "4 esp0 8087f3c0",
        "8 ss0 0010",
    ] ["Bytes at"];
    "kd-pcr-64": [
        "gdtr fffff80000b95000 limit not known",
        "tr not known base fffff80000b96080",
        "WinDbg's !pcr prints GdtBase as NtTib.ExceptionList",
    ] ["idtr", "gdtr 0000"];
    "windbg-idt-64": [
        "idtr fffff80000b95080 limit not known",
        "int 02 fffff80002c7d440 nt!KiNmiInterrupt, on the stack fffff80000b9a000",
        "int 08 fffff80002c7d880 nt!KiDoubleFaultAbort, on the stack fffff80000b9c000",
        "int 51 fffffa8004c4b1d0 serial!SerialCIsrSw",
        "USBPORT!USBPORT_InterruptService",
        "0030 00000000 00000000 3 64-bit code, readable, accessed",
        "cs 0010 entry 2 of the GDT",
        "rip fffff80002c76f60",
    ] [];
    "gdb-real": [
        "The processor is in real mode",
        "ds 0040 base 00000400",
        "rip 00007c00",
    ] ["null", "entry "];
    "gdb-long": [
        "The tables are those of long mode",
        "rip ffffffff81e0a3ce default_idle+14",
        "rsp ffffffff82a03e20 init_stack+15904",
        "c0000101 GS_BASE ffff88803ec00000",
    ] [];
    "oops-i386-2.6.18": [
        "cs 0060 entry 12 of the GDT",
        "ss 0068 entry 13 of the GDT",
        "ds 007b entry 15 of the GDT, RPL 3",
        "rip d0a6c01e example_init+0x1e/0x40",
        "rflags 00010286 FIXED PF SF IF RF",
        "rsp cb6f1f8c",
    ] ["Bytes", "real mode"];
    "oops-i386-2.6.32": [
        "cs 0060 entry 12 of the GDT",
        "gs 0033 entry 6 of the GDT, RPL 3",
        "rip c02d1f3a strlen+0xa/0x20",
        "cr2 6b6b6b6b",
    ] ["Bytes"];
    "oops-i386-5.10": [
        "The tables are those of 32-bit protected mode",
        "rip not known example_ioctl+0x2a/0x60",
        "ss 0068 entry 13 of the GDT",
        "cr0 80050033 PE MP ET NE WP AM PG",
        "cr4 000006d0",
    ] [];
    "oops-x86-64-2.6.32": [
        "The tables are those of long mode",
        "cs 0010 entry 2 of the GDT",
        "ds 0000 null",
        "es 0000 null",
        "rip ffffffff811a8d5c sysfs_open_file+0x4c/0x2a0",
        "cr0 0000000080050033 PE MP ET NE WP AM PG",
        "c0000101 GS_BASE ffff880001800000",
    ] ["Bytes"];
    "oops-x86-64-6.8": [
        "The tables are those of long mode",
        "rip not known example_write+0x31/0x70",
        "ss 0018 entry 3 of the GDT",
        "cr4 0000000000750ef0",
        "c0000100 FS_BASE 00007f3c5d5f9740",
    ] [];
}

fn options() -> Options {
    Options { walk: vec![Entry::None], cpl: 3, vendor: None, explain: false }
}

/// Returns the screen with single spaces, and the states.
fn shown(text: &[u8]) -> (String, Session) {
    let dump = read(text, None);
    assert_eq!(dump.complaints, []);
    let session = join(&dump, None);
    let screen = render(&dump, &session, &options(), 400);
    (screen.split_whitespace().collect::<Vec<_>>().join(" "), session)
}

#[test]
fn every_form_is_read_and_shown() {
    let mut wrong = Vec::new();
    for Sample { name, text, shown: wanted, absent } in SAMPLES {
        let (screen, session) = shown(text.as_bytes());
        assert_eq!(session.states.len(), 1, "{name}: {screen}");
        assert_eq!(session.states[0].contradictions, [], "{name}");
        let missing = wanted.iter().filter(|wanted| !screen.contains(**wanted));
        wrong.extend(missing.map(|missing| format!("{name}: no {missing:?} in {screen}")));
        let there = absent.iter().filter(|absent| screen.contains(**absent));
        wrong.extend(there.map(|there| format!("{name}: {there:?} in {screen}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The lines of a report have the same meaning after any prefix of a log.
#[test]
fn what_a_log_has_before_a_line_changes_nothing() {
    const LINES: [&str; 4] = [
        "RIP: 0010:example_write+0x31/0x70 [example]",
        "RSP: 0018:ffffb0f58074bd90 EFLAGS: 00010246",
        "FS:  00007f3c5d5f9740(0000) GS:ffff9bb43dd00000(0000) knlGS:0000000000000000",
        "CS:  0010 DS: 0000 ES: 0000 CR0: 0000000080050033",
    ];
    let (plain, _) = shown(LINES.join("\n").as_bytes());
    for before in [
        "[ 2150.391559] ",
        "[ 2150.391559][   T28] ",
        "<4>[ 2150.391559] ",
        "Nov 28 11:00:00 host kernel: ",
        "Nov 28 11:00:00 host kernel: [ 2150.391559] ",
        "2026-11-28T11:00:00+0000 host kernel: ",
        "[Sat Nov 28 11:00:00 2026] ",
        "2026-11-28T11:00:00,123456+00:00 ",
        "kern  :warn  : [ 2150.391559] ",
        "4,1234,5678901,-;",
        "[2026-11-28 11:00:00] [ 2150.391559] ",
    ] {
        let text: String = LINES.iter().map(|line| format!("{before}{line}\r\n")).collect();
        assert_eq!(shown(text.as_bytes()).0, plain, "{before}");
    }
}

/// JSON contains everything that the screen shows.
#[test]
fn nothing_that_is_read_is_left_out_of_json() {
    let json = |name: &str| {
        let sample = SAMPLES.iter().find(|sample| sample.name == name).unwrap();
        let dump = read(sample.text.as_bytes(), None);
        let session = join(&dump, None);
        serde_json::to_value(DecodedText::new(&dump, &session, &options())).unwrap()["systems"][0].clone()
    };
    assert_eq!(json("qemu-reset")["segmentation"], "real");
    assert_eq!(json("qemu-v86")["segmentation"], "virtual-8086");
    assert_eq!(json("qemu-no-tss")["segmentation"], "protected");
    assert_eq!(json("kd-pcr-32")["bases"]["tr"]["base"]["value"], "0x80042000");
    assert_eq!(json("oops-x86-64-6.8")["symbols"]["rip"], "example_write+0x31/0x70");
    let idt = json("windbg-idt-64");
    let handlers = idt["readings"][0]["handlers"].as_array().unwrap();
    assert_eq!(handlers[1]["stack"], "0xfffff80000b9a000");
    let gdt = json("bochs-info-gdt");
    let items = gdt["readings"][0]["items"].as_array().unwrap();
    let row =
        |selector: &str| items.iter().find(|item| item["selector"] == selector).unwrap()["decoded"].clone();
    assert_eq!((&row("0x18")["base"], &row("0x18")["eff"]), (&"0xc00b8000".into(), &"0x7fff".into()));
    assert_eq!(row("0x18").get("p"), None, "Bochs does not print it");
    assert_eq!((&row("0x28")["dpl"], &row("0x28")["off"]), (&3.into(), &"0xc0001a40".into()));
}
