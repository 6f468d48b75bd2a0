//! Environments as programs see them: what starts, and that nothing is left however a session ends.
//!
//! The program of these tests is also started as the agent of an environment (`agent …`) and as the command that has
//! environments (`command …`), so it has its own main: `program`. Its tests are functions, and it takes cargo test's options
//! for choosing tests.

#![allow(clippy::panic, clippy::unwrap_used)] // A test may stop at the first surprise, and so may its helpers.

mod leftovers;
mod program;
mod starting;
mod teardown;

use std::panic::catch_unwind;

/// A test: its name, whether it takes long, and its function.
type Test = (&'static str, bool, fn());

const TESTS: [Test; 7] = [
    ("the_host_has_its_settings", false, starting::the_host_has_its_settings),
    ("settings_that_cannot_be_had_are_named", false, starting::settings_that_cannot_be_had_are_named),
    ("a_prefix_is_reached_in_three_ways", false, starting::a_prefix_is_reached_in_three_ways),
    ("another_machine_gets_a_copy", false, starting::another_machine_gets_a_copy),
    ("containers_start", false, starting::containers_start),
    ("nothing_is_left_by_some_kills", false, teardown::nothing_is_left_by_some_kills),
    ("nothing_is_left_by_many_kills", true, teardown::nothing_is_left_by_many_kills),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("agent") => std::process::exit(program::agent(&words[1..])),
        Some("command") => std::process::exit(program::command(&words[1..])),
        // Runtimes are tried with it.
        Some("--help") => return println!("agent, command, or names of tests"),
        _ => {}
    }
    std::process::exit(run(&words));
}

/// Runs the tests that the words choose, and reports like libtest, since .ci/again parses that. Returns the exit status.
fn run(words: &[String]) -> i32 {
    let has = |option: &str| words.iter().any(|word| word == option);
    let names: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let is_meant = |name: &str| {
        names.is_empty()
            || names.iter().any(|word| if has("--exact") { name == *word } else { name.contains(*word) })
    };
    let (chosen, others): (Vec<&Test>, Vec<&Test>) = TESTS.iter().partition(|(name, ..)| is_meant(name));
    if has("--list") {
        chosen.iter().for_each(|(name, ..)| println!("{name}: test"));
        return 0;
    }
    let (mut passed, mut ignored, mut failed) = (0, 0, Vec::new());
    for (name, is_slow, test) in chosen {
        if !has("--include-ignored") && *is_slow != has("--ignored") {
            ignored += 1;
            println!(
                "test {name} ... ignored, {}",
                if *is_slow { "slow: .ci/run runs it" } else { "not asked for" }
            );
        } else if catch_unwind(test).is_ok() {
            passed += 1;
            println!("test {name} ... ok");
        } else {
            failed.push(name);
            println!("test {name} ... FAILED");
        }
    }
    if !failed.is_empty() {
        println!("\nfailures:");
        failed.iter().for_each(|name| println!("    {name}"));
    }
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {ignored} ignored; 0 measured; {} filtered out\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len(),
        others.len()
    );
    if failed.is_empty() { 0 } else { 101 }
}
