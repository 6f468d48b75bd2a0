use tollgate_model::traced::Ended;
use tollgate_os::process::{Status, Wait};

use super::clocks::{Reading, Stretch};
use super::sums::Key;
use super::sys::{self, Info, On};
use super::thread::{Doing, Inside, Thread};
use super::{Tracer, cause, filter, privileges, tree};
use crate::{clock, launch::Child, outcome::Event};

const NO_NEW_PRIVILEGES: &str = "the command was run with no_new_privs, so that other calls pass without a stop: setuid programs gain no privileges";

impl Tracer {
    pub(super) fn heard(&mut self, wait: Wait, now: u64, child: &Child) {
        let pid = wait.pid;
        let (signal, event) = match wait.status {
            Status::Ended(ended) => return self.ended(pid, ended, now),
            Status::Stopped { signal, event } => (signal, event),
        };
        if event == libc::PTRACE_EVENT_EXEC {
            self.renumber(pid, now);
        } else if !self.threads.contains_key(&pid) {
            // A new thread stays stopped until its parent's event arrives.
            self.early.insert(pid, wait);
            return;
        }
        self.pass_time(&wait, now);
        let mut sends = 0;
        match event {
            0 if signal == sys::SYSCALL_STOP => self.at_call(pid, now, child),
            0 => sends = signal,
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.forked(pid, now)
            }
            libc::PTRACE_EVENT_EXEC => self.executed(pid),
            libc::PTRACE_EVENT_SECCOMP => {
                self.at_call(pid, now, child);
                // The command's own filter asks for a tracer, but without us there would be none.
                if sys::event_message(pid).is_ok_and(|data| data.cast_unsigned() != filter::OURS) {
                    let _ = sys::refuse_call(pid);
                }
            }
            sys::EVENT_STOP if signal != libc::SIGTRAP => {
                sys::resume(pid, On::Listening, 0);
                return;
            }
            _ => {}
        }
        self.go_on(pid, sends);
    }

    fn pass_time(&mut self, wait: &Wait, now: u64) {
        let Some(thread) = self.threads.get_mut(&wait.pid) else { return };
        let alone = self.tree.is_alone(thread.process);
        let exact = thread.source.read(thread.pid, wait.pid, &mut self.clock_files);
        let reading = Reading { exact, usage: wait.usage };
        if thread.stood_ns != 0 {
            let wall = now.saturating_sub(thread.stood_ns);
            thread.stretch = thread.stretch.plus(Stretch::between(&thread.reading, &reading, wall, alone));
        }
        thread.reading = reading;
        thread.stood_ns = now;
    }

    fn go_on(&mut self, pid: libc::pid_t, signal: libc::c_int) {
        let inside = self.threads.get(&pid).is_some_and(Thread::is_inside);
        sys::resume(pid, if self.filtered && !inside { On::Free } else { On::ToCall }, signal);
    }

    fn at_call(&mut self, pid: libc::pid_t, now: u64, child: &Child) {
        let Some(thread) = self.threads.get(&pid) else { return };
        // It was killed in the meantime; its end will be reported.
        let Ok(info) = sys::info(pid, thread.is_inside()) else { return };
        match info {
            Info::Entry { number, is_32_bit, arguments } if !thread.is_inside() => {
                self.enters(pid, Key { number, is_32_bit }, arguments, now, child);
            }
            Info::Exit { result, is_error } => self.returns(pid, result, is_error),
            _ => {}
        }
    }

    fn enters(&mut self, pid: libc::pid_t, key: Key, arguments: [u64; 6], now: u64, child: &Child) {
        let counts = self.is_asked_for(key);
        self.has_own_filter |= self.filtered && filter::is_made_by(key, &arguments);
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let stretch = std::mem::take(&mut thread.stretch);
        if matches!(thread.doing, Doing::Before) {
            if !is_execve(key) {
                return;
            }
            self.is_about_to_be_executed(child);
        } else {
            self.was_outside(pid, stretch);
        }
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        if !counts {
            thread.doing = Doing::Uncounted;
            return;
        }
        let named = self.files.as_mut().and_then(|files| files.names(thread, key, &arguments));
        let began_ns = now.saturating_sub(self.began_ns);
        thread.doing = Doing::Inside(Box::new(Inside { key, began_ns, arguments, named }));
    }

    /// Adds time outside of calls. A thread that was off the processor waited for a page, or was stopped by a signal.
    fn was_outside(&mut self, pid: libc::pid_t, stretch: Stretch) {
        let Some(thread) = self.threads.get(&pid) else { return };
        let Stretch { mut parts, disk, .. } = stretch;
        if disk {
            parts.disk_ns += std::mem::take(&mut parts.unknown_ns);
        }
        self.outside = self.outside.plus(parts);
        self.tree.add_outside(thread.process, parts);
    }

    /// From here on calls count and the filter is active.
    fn is_about_to_be_executed(&mut self, child: &Child) {
        if !self.with_filter {
            return;
        }
        match child.filtered() {
            Ok(()) => {
                self.filtered = true;
                if child.gave_up_privileges() {
                    self.notes.push(NO_NEW_PRIVILEGES.to_owned());
                }
            }
            Err(error) => self.notes.push(format!(
                "other calls were stopped as well, since the kernel refused a filter: {}",
                tollgate_model::text::plainly(&error)
            )),
        }
    }

    fn returns(&mut self, pid: libc::pid_t, result: i64, is_error: bool) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        if matches!(thread.doing, Doing::Before | Doing::Outside) {
            return;
        }
        let stretch = std::mem::take(&mut thread.stretch);
        let Doing::Inside(inside) = std::mem::replace(&mut thread.doing, Doing::Outside) else { return };
        let Inside { key, began_ns, arguments, .. } = *inside;
        let parts = cause::parts_of(stretch, key, arguments[0], thread.pid);
        let (process, number) = (thread.process, thread.pid);
        self.sums.add(key, parts, is_error);
        self.tree.add_call(process, key, parts, is_error);
        if let Some(files) = &mut self.files {
            files.returned(number, &inside, parts, result, is_error);
        }
        if self.most_events > 0 {
            self.keep_event(pid, &inside, Event { process, began_ns, parts, result, ..Event::default() });
        }
    }

    fn keep_event(&mut self, thread: libc::pid_t, inside: &Inside, event: Event) {
        if self.events.len() >= self.most_events {
            self.events_missed += 1;
            return;
        }
        // The name is looked up only once, at the end.
        let event = Event { thread: thread as u32, argument: inside.arguments[0], ..event };
        self.events.push((inside.key, event));
    }

    fn forked(&mut self, pid: libc::pid_t, now: u64) {
        let Ok(new) = sys::event_message(pid) else { return };
        if self.threads.contains_key(&new) {
            return;
        }
        let Some(thread) = self.threads.get(&pid) else { return };
        let (process, parent) = (thread.process, thread.pid);
        let began = now.saturating_sub(self.began_ns);
        let thread = if sys::is_further_thread(new) {
            self.tree.add_thread(process);
            Thread::new(process, parent, Doing::Outside)
        } else {
            Thread::new(self.tree.add(Some(process), new, began), new, Doing::Outside)
        };
        self.threads.insert(new, thread);
        if let Some(wait) = self.early.remove(&new) {
            self.begins(&wait);
        }
    }

    /// Resumes a new thread that was already stopped.
    fn begins(&mut self, wait: &Wait) {
        self.pass_time(wait, clock::now());
        self.go_on(wait.pid, 0);
    }

    /// Handles exec by a thread other than the leader: only the caller of execve(2) is left, and it takes over the process's
    /// number. The end of the former leader is not reported.
    fn renumber(&mut self, pid: libc::pid_t, now: u64) {
        let Ok(former) = sys::event_message(pid) else { return };
        if former == pid {
            return;
        }
        let Some(mut thread) = self.threads.remove(&former) else { return };
        thread.source.forget(&mut self.clock_files);
        if let Some(thread) = self.threads.remove(&pid) {
            self.thread_ended(thread, now);
        }
        self.threads.insert(pid, thread);
    }

    fn executed(&mut self, pid: libc::pid_t) {
        let Some(thread) = self.threads.get(&pid) else { return };
        self.tree.executed(thread.process, pid);
        if self.unprivileged.is_none() {
            self.unprivileged = privileges::withheld(pid);
        }
        if let Some(files) = &mut self.files {
            files.forget(pid);
        }
    }

    fn ended(&mut self, pid: libc::pid_t, ended: Ended, now: u64) {
        self.early.remove(&pid);
        if pid == self.command && self.ended.is_none() {
            self.ended = Some((ended, now));
        }
        if let Some(thread) = self.threads.remove(&pid) {
            self.thread_ended(thread, now);
        }
        self.adopt_forgotten(now);
    }

    fn thread_ended(&mut self, mut thread: Thread, now: u64) {
        thread.source.forget(&mut self.clock_files);
        if let Doing::Inside(inside) = &thread.doing {
            self.sums.add_unfinished(inside.key);
            self.tree.add_unfinished(thread.process, inside.key);
        }
        let last = self.tree.end_thread(thread.process, now.saturating_sub(self.began_ns));
        if last && let Some(files) = &mut self.files {
            files.forget(thread.pid);
        }
    }

    /// A thread that was killed while it created another does not report it. Asks the kernel about the stopped threads instead.
    fn adopt_forgotten(&mut self, now: u64) {
        for (new, wait) in std::mem::take(&mut self.early) {
            let Some((process, parent)) = tree::relations(new) else {
                self.early.insert(new, wait);
                continue;
            };
            let of = |pid| self.threads.get(&pid).map(|thread: &Thread| thread.process);
            let began = now.saturating_sub(self.began_ns);
            let thread = match of(process) {
                Some(id) if process != new => {
                    self.tree.add_thread(id);
                    Thread::new(id, process, Doing::Outside)
                }
                _ => Thread::new(self.tree.add(of(parent).or(Some(0)), new, began), new, Doing::Outside),
            };
            self.threads.insert(new, thread);
            self.begins(&wait);
        }
    }
}

fn is_execve(key: Key) -> bool {
    // The fork of this process is 64-bit.
    key == Key { number: libc::SYS_execve, is_32_bit: false }
}
