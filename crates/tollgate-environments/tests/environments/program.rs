//! The test program as an agent, and as a command with environments.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use tollgate_engine::agent::MAGIC;
use tollgate_engine::interrupt;
use tollgate_environments::{Cleanup, Environment, KnobSetting, Spec};
use tollgate_os::{group, process};

/// Variable by which the processes of a test are recognised.
pub const MARK: &str = "TOLLGATE_TEST_MARK";
/// The variable that names a setting to alternate.
pub const KNOB: &str = "TOLLGATE_TEST_KNOB";

/// Greets, reports what it is, has a child as an agent has one that measures, and ends with its input.
pub fn agent(words: &[String]) -> i32 {
    if let Some(at) = words.iter().position(|word| word == "--as") {
        let Some(applied) = words[at + 1].parse::<Spec>().unwrap().apply() else { return 2 };
        if let Err(error) = applied {
            eprintln!("{error}");
            return 2;
        }
    }
    let mut out = io::stdout();
    out.write_all(&MAGIC).unwrap();
    let bench = process::fork_bound(|| {
        group::lead();
        loop {
            std::thread::park();
        }
    });
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let seccomp = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).unwrap_or("?").trim();
    let stat = read("/proc/self/stat");
    let rest: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let (nice, policy) = (rest.get(16).unwrap_or(&"?"), rest.get(38).unwrap_or(&"?"));
    let variable = std::env::var("TOLLGATE_TEST_X").unwrap_or_default();
    let words: Vec<String> = std::env::args().skip(2).collect();
    let file = fs::read_link("/proc/self/exe").unwrap();
    let file = if file.to_string_lossy().ends_with(" (deleted)") { "gone" } else { "there" };
    writeln!(
        out,
        "file {file} nice {nice} policy {policy} seccomp {seccomp} x {variable} words {}",
        words.join(" ")
    )
    .unwrap();
    writeln!(out, "personality {}", read("/proc/self/personality").trim()).unwrap();
    out.flush().unwrap();
    let _ = io::stdin().read_to_end(&mut Vec::new());
    drop(bench);
    0
}

/// Reads what an agent of these tests sends after its greeting: two lines.
pub fn heard(from: &mut impl Read) -> io::Result<String> {
    let mut greeting = [0; MAGIC.len()];
    from.read_exact(&mut greeting)?;
    assert_eq!(greeting, MAGIC);
    let mut text = Vec::new();
    let mut byte = [0];
    while text.iter().filter(|byte| **byte == b'\n').count() < 2 {
        from.read_exact(&mut byte)?;
        text.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Prepares and starts these environments, says so, and holds them until it is asked to stop.
pub fn command(specs: &[String]) -> i32 {
    interrupt::install();
    let mut knob = std::env::var(KNOB).ok().map(|knob| KnobSetting::claim(&knob).unwrap());
    let cleanup = Cleanup::holding(knob.as_ref().map(KnobSetting::lock).as_slice()).unwrap();
    let stop = || interrupt::requested().is_some();
    if let Some(knob) = &mut knob {
        knob.promise(&cleanup).unwrap();
    }
    let mut environments = Vec::new();
    for spec in specs {
        match Environment::prepare(&spec.parse().unwrap(), &cleanup, &stop) {
            Ok(environment) => environments.push(environment),
            Err(error) => println!("without {spec}: {error}"),
        }
    }
    let mut links = Vec::new();
    for environment in &mut environments {
        match environment.start() {
            Ok(link) => links.push(link),
            Err(error) => println!("not started: {error}"),
        }
    }
    println!("ready {}", links.len());
    let mut is_on = false;
    while !stop() {
        is_on = !is_on;
        if let Some(knob) = &mut knob {
            knob.switch(is_on).unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(links);
    0
}

/// The program of these tests.
pub fn own() -> &'static Path {
    Path::new("/proc/self/exe")
}
