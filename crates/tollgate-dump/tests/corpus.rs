//! Relations of the forms that debuggers, emulators and kernels print. The screen of each text of corpus/ is a case of
//! `tollgate decode`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use tollgate_dump::output::{DecodedText, Entry, Options, render};
use tollgate_dump::{join, read};

fn options() -> Options {
    Options { walk: vec![Entry::None], cpl: 3, vendor: None, explain: false }
}

/// Returns the screen with single spaces.
fn shown(text: &[u8]) -> String {
    let dump = read(text, None);
    assert_eq!(dump.complaints, []);
    let session = join(&dump, None);
    let screen = render(&dump, &session, &options(), 400);
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
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
    let plain = shown(LINES.join("\n").as_bytes());
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
        assert_eq!(shown(text.as_bytes()), plain, "{before}");
    }
}

/// JSON contains everything that the screen shows.
#[test]
fn nothing_that_is_read_is_left_out_of_json() {
    let json = |name: &str| {
        let file = format!("{}/tests/corpus/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let dump = read(&std::fs::read(file).unwrap(), None);
        assert_eq!(dump.complaints, []);
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
