//! What sleeping threads were woken by.

use tollgate_model::Traced;
use tollgate_model::traced::{Blocked, WokenBy};

use super::text;
use crate::table::{Look, Table, paragraph};

const LONGEST: usize = 28;

/// The table with so many rows.
pub(crate) fn text(traced: &Traced, top: usize, width: usize) -> String {
    let header = ["call", "wait channel", "woken by", "times", "total"];
    let mut table = Table::new(&header).with_words(&["wait channel", "woken by"]);
    for one in traced.blocked.iter().take(top) {
        let cells = [
            one.call.as_deref().map_or_else(|| "outside calls".to_owned(), |name| text::cut(name, LONGEST)),
            one.channel.as_deref().map_or_else(|| "unknown".to_owned(), |name| text::cut(name, LONGEST)),
            waker(one),
            text::grouped(one.count),
            text::time(one.total_ns),
        ];
        table.row(Look::Plain, &cells, &[]);
    }
    if let Some(others) = traced.blocked.get(top..).filter(|others| !others.is_empty()) {
        let sum = |of: fn(&Blocked) -> u64| others.iter().map(of).fold(0, u64::saturating_add);
        let cells = [
            text::counted(others.len() as u64, "other", "others"),
            String::new(),
            String::new(),
            text::grouped(sum(|one| one.count)),
            text::time(sum(|one| one.total_ns)),
        ];
        table.row(Look::Faint, &cells, &[]);
    }
    let legend = "wait channel: the kernel's function that a thread slept in; total: until it was woken, by that thread (its name and \
                  number), a timer, or a device's interrupt (its handler); in: by that thread, or by an interrupt in the middle of it.";
    format!("{}{}", table.render(width), paragraph(legend, width, ""))
}

fn waker(one: &Blocked) -> String {
    let name = text::cut(&one.name, LONGEST);
    let named = |what: &str| if name.is_empty() { what.to_owned() } else { format!("{what} {name}") };
    match one.by {
        WokenBy::Thread => format!("{name} ({})", one.thread),
        WokenBy::Timer => "timer".to_owned(),
        WokenBy::Device => named("device"),
        WokenBy::Interrupt => named("interrupt"),
        WokenBy::Unknown => format!("in {name} ({})", one.thread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::examples;

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
}
