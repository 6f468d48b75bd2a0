//! Shows what woke sleeping threads. Wakers of one name share a line, such as `sleep ×15`: a shell's loop creates many.

use std::collections::BTreeMap;

use tollgate_model::Traced;
use tollgate_model::traced::{Blocked, WokenBy};
use tollgate_output::table::{Look, Table, paragraph};

use super::text;

const LONGEST: usize = 28;

pub(crate) fn text(traced: &Traced, top: usize, width: usize) -> String {
    let header = ["call", "wait channel", "woken by", "times", "total"];
    let mut table = Table::new(&header).with_words(&["wait channel", "woken by"]);
    let groups = groups(&traced.blocked);
    for group in groups.iter().take(top) {
        let one = group.first;
        let cells = [
            one.call.as_deref().map_or_else(|| "outside calls".to_owned(), |name| text::cut(name, LONGEST)),
            one.channel.as_deref().map_or_else(|| "unknown".to_owned(), |name| text::cut(name, LONGEST)),
            waker(group),
            text::grouped(group.count),
            text::time(group.total_ns),
        ];
        table.row(Look::Plain, &cells, &[]);
    }
    if let Some(others) = groups.get(top..).filter(|others| !others.is_empty()) {
        let sum = |of: fn(&Group) -> u64| others.iter().map(of).fold(0, u64::saturating_add);
        let cells = [
            text::counted(others.len() as u64, "other", "others"),
            String::new(),
            String::new(),
            text::grouped(sum(|group| group.count)),
            text::time(sum(|group| group.total_ns)),
        ];
        table.row(Look::Faint, &cells, &[]);
    }
    let legend = "wait channel: the kernel function that a thread slept in; total: time until it was woken by that thread (its name and number, or how many have that name), a timer, or a device's interrupt (its handler); in: woken by that thread, or by an interrupt during it.";
    format!("{}{}", table.render(width), paragraph(legend, width, ""))
}

/// Sleeps in the same call and function that were ended by threads with one name.
struct Group<'a> {
    first: &'a Blocked,
    wakers: u64,
    count: u64,
    total_ns: u64,
}

fn groups(blocked: &[Blocked]) -> Vec<Group<'_>> {
    let mut groups = BTreeMap::new();
    for one in blocked {
        let key = (one.call.as_deref(), one.channel.as_deref(), one.by, one.name.as_str());
        let group = groups.entry(key).or_insert(Group { first: one, wakers: 0, count: 0, total_ns: 0 });
        group.wakers += 1;
        group.count = group.count.saturating_add(one.count);
        group.total_ns = group.total_ns.saturating_add(one.total_ns);
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.total_ns));
    groups
}

fn waker(group: &Group) -> String {
    let one = group.first;
    let name = text::cut(&one.name, LONGEST);
    let named = |what: &str| if name.is_empty() { what.to_owned() } else { format!("{what} {name}") };
    let thread = || match group.wakers {
        1 => format!("{name} ({})", one.thread),
        several => format!("{name} ×{}", text::grouped(several)),
    };
    match one.by {
        WokenBy::Thread => thread(),
        WokenBy::Timer => "timer".to_owned(),
        WokenBy::Device => named("device"),
        WokenBy::Interrupt => named("interrupt"),
        WokenBy::Unknown => format!("in {}", thread()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::examples;

    #[test]
    fn a_waker_is_named() {
        let one = |by, name: &str, thread| Blocked {
            call: Some("read".to_owned()),
            channel: Some("pipe_read".to_owned()),
            by,
            name: name.to_owned(),
            thread,
            count: 3,
            total_ns: 5_000_000,
        };
        let blocked = vec![
            one(WokenBy::Thread, "cat", 17),
            one(WokenBy::Timer, "", 0),
            one(WokenBy::Device, "vring_interrupt", 0),
        ];
        let traced = Traced { blocked, ..examples::checkout() };
        let all = anstream::adapter::strip_str(&text(&traced, 9, 100)).to_string();
        for part in ["cat (17)", "timer", "device vring_interrupt", "pipe_read", "5.00 ms"] {
            assert!(all.contains(part), "{part}: {all}");
        }
        let one = anstream::adapter::strip_str(&text(&traced, 1, 100)).to_string();
        assert!(one.contains("2 others") && one.contains("10.0 ms"), "{one}");
    }

    #[test]
    fn wakers_of_one_name_are_one_line() {
        let by = |name: &str, thread| Blocked {
            call: Some("wait4".to_owned()),
            channel: Some("do_wait".to_owned()),
            by: WokenBy::Thread,
            name: name.to_owned(),
            thread,
            count: 2,
            total_ns: 4_000_000,
        };
        let blocked = vec![by("ls", 20), by("sleep", 21), by("sleep", 22), by("sleep", 23)];
        let traced = Traced { blocked, ..examples::checkout() };
        let shown = anstream::adapter::strip_str(&text(&traced, 9, 100)).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(
            lines[1].contains("sleep ×3 ") && lines[1].contains(" 6 ") && lines[1].contains("12.0 ms"),
            "{shown}"
        );
        assert!(lines[2].contains("ls (20)"), "{shown}");
    }
}
