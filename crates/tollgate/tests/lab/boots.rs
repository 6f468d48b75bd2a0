//! `tollgate lab --image`: machines of QEMU boot each form by their BIOS or by GRUB; the table is read from the memory of the screen, and the
//! records from the serial port.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_os::process::Program;

use super::common::{Home, one_line, wait_for};
use super::{experiments, has_qemu, named};

/// The memory of a VGA's text screen, of 25 lines with 80 characters and their attributes.
const TEXT: (u32, usize) = (0xb_8000, 25 * 80 * 2);
/// The line between columns, and what the serial port has in its place.
const LINE: (u8, char) = (0xb3, '|');
/// The end of the last line.
const LAST: &str = "tollgate lab --from FILE";

/// A home with an image in it; none where there is no QEMU.
fn home_with(image: &str) -> Option<Home> {
    if !has_qemu() {
        return None;
    }
    let home = Home::new();
    home.output(["lab", "--image", image]);
    Some(home)
}

/// The clock of a machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// Instructions are counted, so that the figures are known.
    Instructions,
    /// Time goes on, which takes less of it.
    Time,
}

/// Starts a machine with this disk or CD, waits until the table is on the serial port, and checks both.
fn check(home: &Home, clock: Clock, disk: &[&str]) {
    let serial = run(home, clock, disk, &format!("pmemsave {:#x} {} screen", TEXT.0, TEXT.1));
    let screen = lines(&std::fs::read(home.path().join("screen")).expect("the screen's memory"));
    is_table(&screen, clock);
    assert!(serial.ends_with(&format!("\n\n{}\n", screen.join("\n"))), "{serial}");
    is_read(home, clock);
}

/// What the serial port has written when the table is on it. Then the monitor is given a command.
fn run(home: &Home, clock: Clock, arguments: &[&str], order: &str) -> String {
    let (mut machine, serial) = started(home, clock, arguments);
    let mut monitor = machine.0.stdin.take().expect("a pipe");
    write!(monitor, "{order}\nquit\n").expect("a monitor");
    wait_for("the end of QEMU", || machine.0.try_wait().expect("a child"));
    serial
}

/// A machine, and what its serial port has written when the table is on it.
fn started(home: &Home, clock: Clock, arguments: &[&str]) -> (Program, String) {
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-nodefaults", "-display", "none", "-vga", "std", "-no-reboot", "-m", "128"]);
    command.args([
        "-accel",
        "tcg",
        "-cpu",
        "Haswell,check=off",
        "-serial",
        "file:serial.txt",
        "-monitor",
        "stdio",
    ]);
    if clock == Clock::Instructions {
        command.args(["-icount", "shift=0,sleep=off"]);
    }
    command.args(arguments);
    command.current_dir(home.path()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut machine = Program(command.spawn().expect("started"));
    let serial = wait_for("a table on the serial port", || {
        assert_eq!(machine.0.try_wait().expect("a child"), None, "QEMU ended");
        let bytes = std::fs::read(home.path().join("serial.txt")).unwrap_or_default();
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| text.ends_with(&format!("{LAST}\n")))
    });
    (machine, serial)
}

/// The screen's lines.
fn lines(memory: &[u8]) -> Vec<String> {
    assert_eq!(memory.len(), TEXT.1);
    let character = |cell: &[u8; 2]| if cell[0] == LINE.0 { LINE.1 } else { char::from(cell[0]) };
    let text = |line: &[[u8; 2]]| line.iter().map(character).collect::<String>().trim_end().to_owned();
    memory.as_chunks::<2>().0.chunks(80).map(text).collect()
}

/// Title, processor, the figures, and how they are read back.
fn is_table(screen: &[String], clock: Clock) {
    let all = screen.join("\n");
    assert!(screen[0].starts_with(" tollgate lab: ") && screen[0].ends_with(" done"), "{all}");
    assert!(screen[1].contains("Haswell") && screen[1].ends_with("in a guest of TCGTCGTCGTCG"), "{all}");
    assert!(screen[24].ends_with(LAST), "{all}");
    let cells: Vec<Vec<&str>> = screen
        .iter()
        .flat_map(|line| line.split(LINE.1))
        .map(|cell| cell.split_whitespace().collect())
        .collect();
    for row in [
        ["int", "3.0", "3.0"],
        ["syscall", "3.0", "3.0"],
        ["sysenter", "6.0", "6.0"],
        ["ud1", "30.0", "30.0"],
        ["general-protection", "5.0", "5.0"],
        ["frame", "30.0", "30.0"],
        ["iopl-halt", "202.0", "202.0"],
    ] {
        let found = cells.iter().find(|cell| cell.first() == row.first()).expect("a row");
        match clock {
            Clock::Instructions => assert_eq!(found, &row, "{all}"),
            Clock::Time => {
                assert!(found.len() == 3 && found[1..].iter().all(|it| it.parse::<f64>().is_ok()), "{all}")
            }
        }
    }
    assert!(cells.contains(&vec!["crossings"]) && cells.contains(&vec!["cr3-pcid", "lacking"]), "{all}");
}

/// What the serial port wrote is a result like any other.
fn is_read(home: &Home, clock: Clock) {
    let document = home.json(["lab", "--from", "serial.txt", "--format", "json"]);
    assert_eq!(experiments(&document).len(), 31);
    let ticks = named(&document, "int")["per_operation"].as_f64().expect("a figure");
    assert!(ticks == 3.0 || clock == Clock::Time && ticks > 3.0, "{ticks}");
    assert_eq!(document["remarks"], serde_json::json!([]), "nothing is lost, and the table is no record");
}

#[test]
fn a_disk_boots() {
    if let Some(home) = home_with("lab.img") {
        check(&home, Clock::Instructions, &["-drive", "file=lab.img,format=raw"]);
    }
}

#[test]
fn a_cd_boots() {
    if let Some(home) = home_with("lab.iso") {
        check(&home, Clock::Instructions, &["-cdrom", "lab.iso"]);
    }
}

#[test]
fn a_cd_s_image_boots_as_a_disk() {
    if let Some(home) = home_with("lab.iso") {
        check(&home, Clock::Time, &["-drive", "file=lab.iso,format=raw"]);
    }
}

/// The firmware takes longer than the guest, and it is the one that machines have.
#[test]
fn uefi_boots_a_disk() {
    const FIRMWARE: [&str; 3] =
        ["/usr/share/ovmf/OVMF.fd", "/usr/share/edk2/x64/OVMF.fd", "/usr/share/qemu/OVMF.fd"];
    let Some(firmware) = FIRMWARE.iter().find(|path| Path::new(path).exists()) else {
        return println!("skipped: there is no firmware of UEFI for QEMU (ovmf)");
    };
    let Some(home) = home_with("lab.img") else { return };
    let arguments = ["-bios", firmware, "-drive", "file=lab.img,format=raw"];
    let serial = run(&home, Clock::Time, &arguments, "screendump screen.ppm");
    let table = serial.rsplit_once("\n\n").expect("a table").1;
    is_table(&table.lines().map(str::to_owned).collect::<Vec<_>>(), Clock::Time);
    is_read(&home, Clock::Time);
    // It is drawn: the first and the last line are blue, each a 25th of 80 times 25 cells.
    let picture = std::fs::read(home.path().join("screen.ppm")).expect("a picture");
    let blue = picture.windows(3).filter(|pixel| *pixel == [0, 0, 0xaa]).count();
    assert!(blue > 2 * 80 * 6 * 10 / 2, "{blue} blue pixels");
}

#[test]
fn grub_boots_it() {
    let Some(home) = home_with("lab.elf") else { return };
    let directory = home.path().join("cd/boot/grub");
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::rename(home.path().join("lab.elf"), directory.join("lab.elf")).expect("the image");
    std::fs::write(directory.join("grub.cfg"), configuration()).expect("a file");
    match Command::new("grub-mkrescue").args(["-o", "grub.iso", "cd"]).current_dir(home.path()).output() {
        Err(why) => println!("skipped: grub-mkrescue cannot be started: {why}"),
        Ok(output) if !output.status.success() => {
            println!("skipped: grub-mkrescue makes no image: {}", one_line(&output.stderr));
        }
        Ok(_) => check(&home, Clock::Time, &["-cdrom", "grub.iso"]),
    }
}

/// The documented configuration, which is the one block of docs/lab.md that has a line with `multiboot`, without the menu's delay.
fn configuration() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut blocks = page.split("```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains("    multiboot ")).expect("a configuration of GRUB");
    format!("set timeout=0\n{}", block.trim_start())
}

/// A program that is none of ours reads the code from the screen, and its text is a result like the serial port's.
#[test]
fn the_picture_code_has_the_figures_of_the_serial_port() {
    if Command::new("zbarimg").arg("--version").output().is_err() {
        return println!("skipped: there is no reader of picture codes (zbar-tools)");
    }
    let Some(home) = home_with("lab.img") else { return };
    let (mut machine, _) = started(&home, Clock::Time, &["-drive", "file=lab.img,format=raw"]);
    let mut monitor = machine.0.stdin.take().expect("a pipe");
    let code = wait_for("the code on the screen", || {
        writeln!(monitor, "screendump screen.ppm").expect("a monitor");
        std::thread::sleep(std::time::Duration::from_secs(1));
        let read =
            Command::new("zbarimg").args(["-q", "--raw", "screen.ppm"]).current_dir(home.path()).output();
        Some(read.expect("it reads").stdout).filter(|text| !text.is_empty())
    });
    drop(machine);
    let code = home.file("code", code);
    let [of_code, of_serial] =
        [code.as_str(), "serial.txt"].map(|file| home.json(["lab", "--from", file, "--format", "json"]));
    assert_eq!(of_code["maker"], of_serial["maker"]);
    let [all, others] = [&of_code, &of_serial].map(|document| experiments(document).to_vec());
    assert_eq!((all.len(), others.len()), (31, 31));
    for (one, other) in all.iter().zip(&others) {
        assert_eq!(one["name"], other["name"]);
        let [found, wanted] = [one, other].map(|row| row["per_operation"].as_f64());
        // Tenths with 12 bits of the same median.
        let is_near = |found: f64, wanted: f64| (found - wanted).abs() <= 0.1 + wanted / 2048.0;
        match (found, wanted) {
            (Some(found), Some(wanted)) => assert!(is_near(found, wanted), "{one} for {other}"),
            _ => assert_eq!(found, wanted, "{one} for {other}"),
        }
    }
    home.output(["lab", "--from", &code, "--on", "hardware", "--label", "photographed"]);
    assert!(home.refusal(["lab", "--from", &home.file("cut", "TGQ1000")]).contains("154 characters"));
}
