//! Runs a command as a process that waits to be released, as `launch` does, in a few lines.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_model::traced::{Call, Ended, Parts};
use tollgate_os::process;

use super::super::Bpf;
use super::counts::compiled;
use crate::{outcome::Collected, request::Request};

pub struct Outcome {
    pub collected: Collected,
    pub wall: Duration,
    pub ended: Ended,
    pub cost: Option<f64>,
    pub others: Option<f64>,
}

impl Outcome {
    pub fn call(&self, name: &str) -> &Call {
        let names: Vec<&str> = self.collected.calls.iter().map(|call| call.name.as_str()).collect();
        let call = self.collected.calls.iter().find(|call| call.name == name);
        call.unwrap_or_else(|| panic!("no {name} among {names:?}"))
    }

    pub fn count(&self, name: &str) -> u64 {
        self.collected.calls.iter().find(|call| call.name == name).map_or(0, |call| call.count)
    }

    pub fn everything(&self) -> Parts {
        let calls = self.collected.calls.iter().map(|call| call.parts);
        calls.chain(self.collected.outside).fold(Parts::default(), Parts::plus)
    }
}

/// Serializes traces, since their programs would slow each other down.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads the programs; prints a note and returns `None` if they cannot be loaded.
pub fn loaded(request: &Request) -> Option<Bpf> {
    match Bpf::load(request) {
        Ok(bpf) => Some(bpf),
        // A refusal by the verifier is our bug, not a lack of privileges.
        Err(why) if why.contains("refused the program") => panic!("{why}"),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

/// Traces a command with its input and output at /dev/null; prints a note and returns `None` if programs cannot be loaded.
pub fn run_traced(request: Request) -> Option<Outcome> {
    let _alone = alone();
    let bpf = loaded(&request)?;
    let (cost, others) = (bpf.costs().traced, bpf.costs().others);
    let arguments: Vec<CString> =
        request.command.iter().map(|a| CString::new(a.as_encoded_bytes()).unwrap()).collect();
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let environment = [c"PATH=/usr/bin:/bin".as_ptr(), c"LC_ALL=C".as_ptr(), std::ptr::null()];
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    let (orders, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut child = process::fork(|| {
        // SAFETY: the descriptor belongs to the child.
        unsafe { libc::close(go.as_raw_fd()) };
        let mut order = [0u8];
        for standard in [0, 1] {
            // SAFETY: both are descriptors.
            unsafe { libc::dup2(null.as_raw_fd(), standard) };
        }
        if matches!(rustix::io::read(&orders, &mut order), Ok(1)) {
            // SAFETY: all arrays end with a null pointer and outlive the call.
            unsafe { libc::execve(pointers[0], pointers.as_ptr(), environment.as_ptr()) };
        }
        127
    })
    .unwrap();
    let process = child.pidfd().unwrap();
    bpf.adopt(process.as_fd()).unwrap();
    let began = Instant::now();
    rustix::io::write(&go, &[1]).unwrap();
    let ended = child.wait().unwrap();
    let wall = began.elapsed();
    let deadline = Instant::now() + request.linger;
    while bpf.alive() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let collected = bpf.finish();
    Some(Outcome { collected, wall, ended, cost, others })
}

/// Compiles a C program and traces it with these arguments and the request that `ask` sets up.
pub fn run_traced_c(source: &str, arguments: &[&str], ask: impl FnOnce(&mut Request)) -> Option<Outcome> {
    let directory = tempfile::tempdir().unwrap();
    let program = compiled(directory.path(), source)?;
    let words = std::iter::once(program.as_str()).chain(arguments.iter().copied());
    let mut request = Request::new(words.map(Into::into).collect());
    ask(&mut request);
    run_traced(request)
}

pub fn shell(script: &str) -> Request {
    Request::new(["/bin/sh", "-c", script].map(Into::into).to_vec())
}
