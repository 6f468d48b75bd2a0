use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::report::Failed;

/// The time of a batch of iterations: short enough that even on a busy machine many batches run undisturbed.
const BATCH: Duration = Duration::from_micros(200);
/// The number of batches in a closure's turn. The fastest counts.
const BATCHES: usize = 5;
/// The most inputs in memory at a time.
const INPUTS: u64 = 4096;
/// The most iterations of a batch.
const MOST: u64 = 1 << 40;

pub(crate) struct Side<'a> {
    pub(crate) name: String,
    what: What<'a>,
}

enum What<'a> {
    /// Executes this many iterations, and returns their time.
    Closure(Box<dyn FnMut(u64) -> Duration + 'a>),
    Command(Command),
}

impl<'a> Side<'a> {
    fn new(name: String, what: What<'a>) -> Self {
        Self { name, what }
    }

    /// A side whose batches take what `batch` returns.
    #[cfg(test)]
    pub(crate) fn scripted(name: String, batch: impl FnMut(u64) -> Duration + 'a) -> Self {
        Self::new(name, What::Closure(Box::new(batch)))
    }

    pub(crate) fn closure<T>(name: String, mut closure: impl FnMut() -> T + 'a) -> Self {
        let batch = move |iterations| {
            let began = Instant::now();
            for _ in 0..iterations {
                black_box(closure());
            }
            began.elapsed()
        };
        Self::new(name, What::Closure(Box::new(batch)))
    }

    pub(crate) fn with_inputs<I, T>(
        name: String,
        mut input: impl FnMut() -> I + 'a,
        mut closure: impl FnMut(I) -> T + 'a,
        now: impl Fn() -> Instant + 'a,
    ) -> Self {
        let mut some = move |iterations: u64| {
            let inputs: Vec<I> = (0..iterations).map(|_| input()).collect();
            let mut made = Vec::with_capacity(inputs.len());
            let began = now();
            for input in inputs {
                made.push(black_box(closure(black_box(input))));
            }
            now() - began
        };
        let batch = move |iterations: u64| {
            let whole = (0..iterations / INPUTS).map(|_| some(INPUTS)).sum::<Duration>();
            whole + some(iterations % INPUTS)
        };
        Self::new(name, What::Closure(Box::new(batch)))
    }

    pub(crate) fn command(name: String, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self::new(name, What::Command(command))
    }

    pub(crate) fn is_command(&self) -> bool {
        matches!(self.what, What::Command(_))
    }

    /// Finds the number of iterations of a batch.
    pub(crate) fn iterations(&mut self) -> Result<u64, Failed> {
        let mut iterations: u64 = 1;
        loop {
            let took = self.timed(iterations)?;
            if took >= BATCH / 2 || iterations >= MOST {
                let batches = BATCH.as_secs_f64() / took.as_secs_f64().max(1e-9);
                return Ok(((iterations as f64 * batches) as u64).clamp(1, MOST));
            }
            iterations *= 2;
        }
    }

    /// Takes a turn and returns its figure, in ns per iteration.
    pub(crate) fn turn(&mut self, iterations: u64) -> Result<f64, Failed> {
        let (batches, iterations) = if self.is_command() { (1, 1) } else { (BATCHES, iterations) };
        let mut fastest = Duration::MAX;
        for _ in 0..batches {
            fastest = fastest.min(self.timed(iterations)?);
        }
        Ok(fastest.as_nanos() as f64 / iterations as f64)
    }

    fn timed(&mut self, iterations: u64) -> Result<Duration, Failed> {
        let command = match &mut self.what {
            What::Closure(batch) => return Ok(batch(iterations)),
            What::Command(command) => command,
        };
        let began = Instant::now();
        let status = command.status();
        let took = began.elapsed();
        let program = command.get_program().to_string_lossy();
        let why = match status {
            Ok(status) if status.success() => return Ok(took),
            Ok(status) => format!("{program} ended with {status}; a command must succeed to be compared"),
            Err(error) => format!("{program}: {error}"),
        };
        Err(Failed { side: self.name.clone(), why })
    }
}
