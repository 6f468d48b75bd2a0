use std::ops::ControlFlow;

use tollgate_lab::{Interpreter, Moment, Output, Window};
use tollgate_x86::Vendor;
use tollgate_x86::walk::Exception;

use super::{BASE, HEADER, crossings, machine, run};

const ALL: Window = Window { from: None, after: 0, until: None, at_most: u64::MAX };

fn watch(window: Window) -> (Vec<Moment>, Output) {
    let mut moments = Vec::new();
    let mut observe = |moment: &Moment| {
        moments.push(moment.clone());
        ControlFlow::Continue(())
    };
    let machine = machine(Vendor::Intel);
    let output =
        Interpreter.watch(crossings::image(), BASE, BASE + HEADER, machine, window, &mut observe).unwrap();
    (moments, output)
}

#[test]
fn watching_changes_nothing() {
    let (moments, output) = watch(ALL);
    assert_eq!(output, run(crossings::image(), machine(Vendor::Intel)));
    // Each instruction begins where the one before it ended.
    assert!(moments.windows(2).all(|pair| pair[0].after == pair[1].before));
    assert_eq!(moments[0].text, "cld");
    assert!(moments.iter().all(|moment| !moment.bytes.is_empty() && !moment.text.is_empty()));
}

#[test]
fn a_crossing_has_its_steps() {
    let (moments, _) = watch(ALL);
    let int = moments.iter().find(|moment| moment.text == "int 80h").unwrap();
    assert_eq!((int.before.cpl, int.after.cpl), (3, 0));
    let changed: Vec<&str> =
        int.before.changes(&int.after).into_iter().map(|change| change.register).collect();
    assert_eq!(changed, ["rip", "rsp", "rflags", "cs", "ss"]);
    let steps: Vec<String> = int.steps.iter().map(ToString::to_string).collect();
    assert!(steps[0].starts_with("int 80"), "{steps:?}");
    assert_eq!(steps.iter().filter(|step| step.starts_with("push ")).count(), 5, "{steps:#?}");
    let lock = moments.iter().find(|moment| moment.bytes == [0xf0, 0x89, 0xc8]).unwrap();
    assert_eq!(lock.exception.unwrap().exception, Exception::INVALID_OPCODE);
    assert_eq!(lock.after.cpl, 0);
    // A move does not cross.
    let quiet = moments.iter().find(|moment| moment.text.starts_with("mov ecx")).unwrap();
    assert!(quiet.steps.is_empty() && quiet.exception.is_none());
}

#[test]
fn it_begins_and_stops_where_asked() {
    let (all, _) = watch(ALL);
    let syscall = all.iter().position(|moment| moment.text == "syscall").unwrap();
    let from = all[syscall].before.rip;
    let until = all[syscall + 4].before.rip;
    let (part, output) = watch(Window { from: Some(from), until: Some(until), ..ALL });
    assert_eq!(part, all[syscall..syscall + 4]);
    assert_eq!(output.cut_short.unwrap(), format!("stopped as asked, at {until:x}"));
    // The handler of int 80h runs twice.
    let int = all.iter().position(|moment| moment.text == "int 80h").unwrap();
    let handler = all[int].after.rip;
    let (second, _) = watch(Window { from: Some(handler), after: 1, at_most: 2, ..ALL });
    assert_eq!(second.len(), 2);
    assert!(second[0].number > all[int].number + 100 && second[0].before.rip == handler);
}
