//! Tests every channel, and batches whose peer does not do its part.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::cases::{PROCESSES, SAME, THREADS, of_round_trips, of_throughput};
use super::channel::{self, End, Ends, Order as ChannelOrder, Side};
use super::message::Outcome;
use super::peer::{MOST, Part, PeerKind};
use super::talk::Talk;
use crate::prelude::*;
use crate::processes::raw::tests::in_a_process_of_its_own;
use crate::testing::{Directory, patiently, pinned, preferred, ready};

fn context(directory: &Directory) -> Context {
    let found = tollgate_os::workdir::Workdir::find(&directory.0).expect("a directory");
    let context =
        Context::here().with_storage(Storage { directory: found, limit: 1 << 20, by: String::new() });
    pinned();
    context
}

/// Runs each of these cases in both directions of the channel.
fn every(cases: Vec<Params>, part: Part, times: u64, check: impl Fn(&Params, &mut Talk)) {
    let directory = Directory::new();
    in_a_process_of_its_own(|| {
        let mut context = context(&directory);
        for case in cases {
            let made = Talk::of_case(&case, part, times, &mut context);
            let Some((mut talk, _)) = ready(&case, made) else { continue };
            // Each message arrives, however long both ends wait for a processor.
            talk.patience = MOST;
            check(&case, &mut talk);
        }
    });
    let left = std::fs::read_dir(&directory.0).expect("the directory").count();
    assert_eq!(left, 0, "paths of sockets are left");
}

fn both((usual, others): (Vec<Params>, Vec<Params>)) -> Vec<Params> {
    usual.into_iter().chain(others).collect()
}

#[test]
fn every_round_trip_is_made_by_threads_and_by_processes() {
    every(both(of_round_trips(&Topology::here())), Part::Answer, 8, |case, talk| {
        for _ in 0..2 {
            let batch = talk.batch(Clock::Kernel, Order::new(1));
            assert!(batch.as_ref().is_ok_and(|batch| batch.work > 0), "{case:?}: {batch:?}");
        }
    });
}

#[test]
fn every_message_that_is_not_answered_arrives() {
    every(both(of_throughput(&Topology::here())), Part::Take, 40, |case, talk| {
        for _ in 0..2 {
            let batch = talk.batch(Clock::Kernel, Order::new(1));
            assert!(batch.as_ref().is_ok_and(|batch| batch.work > 0), "{case:?}: {batch:?}");
        }
    });
}

#[test]
fn on_one_processor_each_message_is_a_switch() {
    // Few, so that some batch is not interrupted by other work, however much there is.
    const TRIPS: u64 = 2;
    let smallest = |case: &Params| {
        word(case, "cpus") == SAME
            && channel::means(case).is_some_and(|means| means.bytes.first() == Some(&number(case, "bytes")))
    };
    let cases = both(of_round_trips(&Topology::here())).into_iter().filter(smallest).collect();
    every(cases, Part::Answer, TRIPS, |case, talk| {
        preferred();
        patiently(&format!("{case:?}: two switches a round trip"), || {
            let batch = talk.batch(Clock::Kernel, Order::new(1)).expect("a batch");
            assert_eq!(batch.tally.switches(), batch.counters[0], "{case:?}");
            (batch.counters[0] == 2 * TRIPS).then_some(())
        });
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Doubles,
    Loses,
    Changes,
    Dies,
}

/// An end that mishandles the message of this number.
struct Faulty {
    end: Box<dyn Side>,
    at: u64,
    wrong: Wrong,
}

/// Passes one message at a time. It is answered and taken here, so that the peer's own check does not stop the wrong one.
impl Side for Faulty {
    fn begin(&mut self) {
        self.end.begin();
    }

    fn ask(&mut self, message: &mut super::message::Message, numbers: channel::Numbers) -> Outcome {
        self.end.ask(message, numbers)
    }

    fn give(&mut self, message: &mut super::message::Message, numbers: channel::Numbers) -> Outcome {
        self.end.give(message, numbers)
    }

    fn take(&mut self, message: &mut super::message::Message, numbers: channel::Numbers) -> Outcome {
        self.end.take(message, numbers)
    }

    fn answer(
        &mut self,
        message: &mut super::message::Message,
        numbers: channel::Numbers,
        at_last: &mut dyn FnMut(),
    ) -> Outcome {
        for first in numbers.first..numbers.first + numbers.count {
            let one = channel::Numbers { first, count: 1, ..numbers };
            if first != self.at {
                self.end.answer(message, one, &mut || ())?;
                continue;
            }
            match self.wrong {
                Wrong::Loses => self.end.take(message, one)?,
                Wrong::Dies => return Err(super::message::Fault::Closed),
                Wrong::Doubles => {
                    self.end.answer(message, one, &mut || ())?;
                    self.end.give(message, one)?;
                }
                Wrong::Changes => {
                    self.end.take(message, one)?;
                    let middle = message.bytes().len() / 2;
                    message.bytes_mut()[middle] ^= 1;
                    message.number(first);
                    self.end.give(message, one)?;
                }
            }
        }
        at_last();
        Ok(())
    }
}

fn faulty(by: &str, bytes: usize, (wrong, at): (Wrong, u64), context: &mut Context) -> Ends {
    let means = channel::ALL.iter().find(|means| means.name == by).expect("a channel");
    let mut order = ChannelOrder { bytes, is_private: false, context };
    let (home, peer) = (means.ends)(&mut order).expect("a channel");
    (home, Box::new(Faulty { end: peer, at, wrong }))
}

/// Returns why batches of 32 round trips with such a peer fail.
fn refused(by: &str, bytes: usize, kind: PeerKind, wrong: (Wrong, u64)) -> String {
    let mut context = Context::here();
    let ends = faulty(by, bytes, wrong, &mut context);
    let mut talk = Talk::new(ends, kind, bytes, (Part::Answer, 32), None, &context).expect("a peer");
    for _ in 0..2 {
        if let Err(refusal) = talk.batch(Clock::Kernel, Order::new(1)) {
            let again = talk.batch(Clock::Kernel, Order::new(1));
            assert_eq!(again, Err(refusal.clone()), "no batch follows one that failed");
            assert!(matches!(refusal, Refusal::Fail(_)), "{refusal:?}");
            return refusal.why().to_owned();
        }
    }
    panic!("{by} {wrong:?}: no batch failed");
}

/// A batch has 2 messages of warm-up (1 and 2), 32 timed ones, and one at the end (35).
#[test]
fn a_message_that_is_lost_or_doubled_or_changed_fails_the_row() {
    in_a_process_of_its_own(|| {
        pinned();
        for kind in [PeerKind::Thread, PeerKind::Process] {
            let channels = [("pipe", 1), ("udp", 4096), ("shm-futex", 4096)];
            for (by, bytes) in channels {
                let why = refused(by, bytes, kind, (Wrong::Doubles, 7));
                assert!(why.contains("was lost or came twice"), "{by}: {why}");
            }
            // A changed body is noticed only where whole messages are compared: before and after the timed ones.
            for at in [1, 35] {
                let why = refused("pipe", 4096, kind, (Wrong::Changes, at));
                assert!(why.contains("other bytes than were sent"), "{why}");
            }
        }
        // One batch is enough, because it waits a second for the lost message.
        let why = refused("udp", 1, PeerKind::Process, (Wrong::Loses, 7));
        assert!(why.contains("no message came"), "{why}");
    });
}

/// Neither end has a descriptor whose close would tell the other.
#[test]
fn a_peer_that_falls_silent_does_not_stop_the_run() {
    in_a_process_of_its_own(|| {
        pinned();
        let began = Instant::now();
        let why = refused("futex", 4, PeerKind::Thread, (Wrong::Dies, 7));
        assert!(why.contains("the other end is closed"), "{why}");
        assert!(began.elapsed() < Duration::from_secs(300));
    });
}

#[test]
fn a_peer_that_is_killed_fails_the_row_at_once() {
    in_a_process_of_its_own(|| {
        pinned();
        let mut context = Context::here();
        for by in ["pipe", "tcp"] {
            let case = params(&[
                ("by", by.into()),
                ("bytes", 1.into()),
                ("between", PROCESSES.into()),
                ("cpus", SAME.into()),
            ]);
            let made = Talk::of_case(&case, Part::Answer, 8, &mut context);
            let Some((mut talk, _)) = ready(&case, made) else { continue };
            talk.batch(Clock::Kernel, Order::new(1)).expect("a batch");
            let [child] = talk.peers() else { panic!("a peer is one process") };
            child.kill(libc::SIGKILL);
            let why = talk.batch(Clock::Kernel, Order::new(1)).expect_err("no peer");
            assert!(why.why().contains("the other end is closed"), "{by}: {why:?}");
        }
    });
}

#[test]
fn no_queue_is_left_and_no_thread() {
    in_a_process_of_its_own(|| {
        pinned();
        let mut context = Context::here();
        let case = params(&[
            ("by", "mqueue".into()),
            ("bytes", 1.into()),
            ("between", THREADS.into()),
            ("cpus", SAME.into()),
        ]);
        let Some((talk, _)) = ready(&case, Talk::of_case(&case, Part::Answer, 8, &mut context)) else {
            return;
        };
        let own = format!("tollgate-{}-", std::process::id());
        match std::fs::read_dir("/dev/mqueue") {
            Ok(queues) => {
                let is_own = |name: std::ffi::OsString| name.to_string_lossy().starts_with(&own);
                assert!(!queues.flatten().any(|queue| is_own(queue.file_name())));
            }
            Err(_) => eprintln!("skipped: message queues are not mounted"),
        }
        drop(talk);
        crate::processes::raw::tests::comes_to_threads(1, "no peer");
    });
}

/// The receiver is not there yet: the sender has limited space, and waits.
#[test]
fn a_message_in_parts_is_put_together() {
    let (out, into) = std::io::pipe().expect("a pipe");
    // SAFETY: fcntl(2) takes numbers.
    unsafe { libc::fcntl(into.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    let (home_out, home_into) = std::io::pipe().expect("a pipe");
    let mut giver = channel::stream_of(into.into(), home_out.into());
    let mut taker = channel::stream_of(home_into.into(), out.into());
    let message: Vec<u8> = (0..64 << 10).map(|at| (at % 251) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| giver.send(&message).expect("all of it"));
        let mut came = vec![0; message.len()];
        taker.receive(&mut came).expect("all of it");
        assert!(came == message);
    });
}
