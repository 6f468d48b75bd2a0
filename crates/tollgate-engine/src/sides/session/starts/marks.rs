//! The phases of a guest's start, found by the streams on which the guest shows their ends.

use std::fs::File;
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::cases::aspect::Phase;
use crate::refusal::Refusal;
use crate::sides::session::life::Mark;

/// The streams of a start. A thread reads each until it ends, together with the guest.
pub struct Marks(Receiver<(Phase, Instant)>);

impl Marks {
    /// Follows them from now on.
    pub fn follow(marks: Vec<Mark>) -> Self {
        let (seen, seeing) = channel();
        for mark in marks {
            let seen = seen.clone();
            // If no thread can be created, the phase has no end, and says so.
            let _ = thread::Builder::new().spawn(move || {
                let Mark { from, ends } = mark;
                let bytes: Vec<&[u8]> = ends.iter().map(|(_, bytes)| *bytes).collect();
                let mut tell = |end: usize| {
                    let _ = seen.send((ends[end].0, Instant::now()));
                };
                read(&mut File::from(from), &bytes, &mut tell);
            });
        }
        Self(seeing)
    }

    /// Returns the time of each phase of a start, from `began` to the agent's first message.
    pub fn phases(
        &self,
        began: Instant,
        greeted: Instant,
        is_guest: bool,
    ) -> Vec<(Phase, Result<Duration, Refusal>)> {
        if !is_guest {
            let none = || Err(skip!("it is not a guest: no firmware and no kernel start in it"));
            return Phase::ALL.map(|phase| (phase, none())).into();
        }
        let mut ends: Vec<(Phase, Instant)> = self.0.try_iter().collect();
        ends.push((Phase::Init, greeted));
        of_ends(began, &ends)
    }
}

/// Returns the phases between these ends.
fn of_ends(began: Instant, ends: &[(Phase, Instant)]) -> Vec<(Phase, Result<Duration, Refusal>)> {
    let end = |of: Phase| ends.iter().find(|(phase, _)| *phase == of).map(|(_, end)| *end);
    let mut last = Some(began);
    let phase = |phase: Phase| {
        let from = std::mem::replace(&mut last, end(phase));
        let took = from.zip(last).and_then(|(from, to)| to.checked_duration_since(from));
        let none = || skip!("the guest did not show where its {} begins or ends", phase.name());
        (phase, took.ok_or_else(none))
    };
    Phase::ALL.into_iter().map(phase).collect()
}

/// Reads a stream to its end. Calls `seen` with the index of each of these byte strings when it has come, in their order.
fn read(from: &mut impl Read, bytes: &[&[u8]], seen: &mut dyn FnMut(usize)) {
    let mut buffer = [0; 4096];
    // The last bytes read, in which the next byte string may have begun.
    let mut tail: Vec<u8> = Vec::new();
    let mut next = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        tail.extend_from_slice(&buffer[..read]);
        while let Some(awaited) = bytes.get(next) {
            let found = match awaited.len() {
                0 => Some(0),
                length => tail.windows(length).position(|window| window == *awaited),
            };
            let Some(at) = found else { break };
            seen(next);
            next += 1;
            tail.drain(..at + awaited.len());
        }
        let kept = bytes.get(next).map_or(0, |awaited| awaited.len());
        tail.drain(..tail.len().saturating_sub(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_wherever_the_stream_is_cut_and_once() {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                let read = self.1.min(self.0.len());
                to[..read].copy_from_slice(&self.0[..read]);
                self.0 = &self.0[read..];
                Ok(read)
            }
        }
        let times = |stream: &[u8], bytes: &[&[u8]], piece| {
            let mut found = Vec::new();
            read(&mut Pieces(stream, piece), bytes, &mut |at| found.push(at));
            found.len()
        };
        for piece in 1..40 {
            assert_eq!(times(b"boot: init begins init begins", &[b"init begins"], piece), 1);
            assert_eq!(times(b"boot: init begins", &[b"", b"init begins"], piece), 2);
            assert_eq!(times(b"init begin", &[b"", b"init begins"], piece), 1);
            assert_eq!(times(b"ab ab", &[b"ab", b"ab", b"ab"], piece), 2);
            assert_eq!((times(b"x", &[b""], piece), times(b"", &[b""], piece)), (1, 0));
        }
    }

    #[test]
    fn phases_follow_one_another_and_one_without_an_end_has_no_time() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let ends = [
            (Phase::Kernel, at(90)),
            (Phase::Monitor, at(10)),
            (Phase::Firmware, at(30)),
            (Phase::Init, at(100)),
        ];
        let took = |ends: &[(Phase, Instant)]| -> Vec<Option<u128>> {
            of_ends(began, ends).into_iter().map(|(_, took)| took.ok().map(|took| took.as_millis())).collect()
        };
        assert_eq!(took(&ends), [Some(10), Some(20), Some(60), Some(10)]);
        assert_eq!(took(&ends[1..]), [Some(10), Some(20), None, None]);
        // A stream that is read late must not put an end before an earlier one.
        assert_eq!(took(&[(Phase::Monitor, at(10)), (Phase::Firmware, at(5))])[1], None);
    }
}
