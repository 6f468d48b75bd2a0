//! A simulated session: two environments whose turns alternate on a machine that changes its pace.

use tollgate_model::own::CONTROL;
use tollgate_model::run::Part;
use tollgate_model::{Case, Measured, Outcome, Run};

use super::{Random, measured_with_discards, run_of};

/// The noise of a machine and of its environments.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    /// Processes on each side.
    pub pairs: usize,
    /// Turns of a pair.
    pub turns: usize,
    /// A case has a batch in this many turns of a hundred.
    pub due: usize,
    /// Deviation of the machine's pace in logarithms, over about ten pairs of processes.
    pub pace: f64,
    /// Deviation of the factor that a case keeps for the life of a process, on its side alone.
    pub process: f64,
    /// How much of it the next process shares.
    pub kept: f64,
    /// The upper of two levels that a process may have; the lower is 1.
    pub level: f64,
    /// Deviation of a batch.
    pub batch: f64,
    /// The chance of an interrupt in a batch of the base, and of the other. It takes up to many times as long as the batch.
    pub interrupts: [f64; 2],
}

/// The usual virtual machine.
pub const USUAL: Noise = Noise {
    pairs: 160,
    turns: 40,
    due: 100,
    pace: 0.3,
    process: 0.007,
    kept: 0.0,
    level: 1.0,
    batch: 0.02,
    interrupts: [0.05; 2],
};

/// The machine's pace: levels that last for a while, and a slow wave.
struct Pace {
    depth: f64,
    level: f64,
    stays: f64,
}

impl Pace {
    fn new(noise: Noise) -> Self {
        Self { depth: noise.pace, level: 0.0, stays: 1.0 - 0.1 / noise.turns as f64 }
    }

    /// The logarithm in the next half of a turn, which one environment's batches of the turn see.
    fn next(&mut self, random: &mut Random) -> f64 {
        if !random.chance(self.stays.sqrt()) {
            self.level = self.depth * (2.0 * random.uniform() - 1.0);
        }
        self.level
    }
}

/// One environment of a case: the factor of its process.
struct Process {
    own: f64,
    level: f64,
}

impl Process {
    fn start(&mut self, random: &mut Random, noise: Noise) {
        let new = (1.0 - noise.kept * noise.kept).sqrt() * noise.process * random.normal();
        self.own = noise.kept * self.own + new;
        self.level = if random.chance(0.3) { noise.level.ln() } else { 0.0 };
    }
}

/// The batches of a process, each with its turn; `None` if it was discarded.
type Turns = Vec<(u32, Option<f64>)>;

/// `rows` cases and an A/A control of the first; every latency of the other is `ratio` times that of the base.
#[allow(clippy::needless_range_loop, reason = "pairs, cases and sides index several tables")]
pub fn session(random: &mut Random, noise: Noise, rows: usize, ratio: f64) -> (Run, Run) {
    let mut sides = [(); 2].map(|()| vec![vec![Vec::new(); noise.pairs]; rows + 1]);
    let mut paces: Vec<Pace> = (0..=rows).map(|_| Pace::new(noise)).collect();
    let mut own: Vec<[Process; 2]> =
        (0..=rows).map(|_| [(); 2].map(|()| Process { own: 0.0, level: 0.0 })).collect();
    for pair in 0..noise.pairs {
        own.iter_mut().flatten().for_each(|process| process.start(random, noise));
        for turn in 0..noise.turns {
            for case in 0..=rows {
                let is_due = (turn * 37 + case * 11 + pair) % 100 < noise.due;
                let first = usize::from(random.chance(0.5));
                for side in [first, 1 - first] {
                    let pace = paces[case.max(1)].next(random);
                    let process = &own[case][side];
                    let factor = if side == 1 { ratio } else { 1.0 };
                    let interrupt = random.chance(noise.interrupts[side]);
                    let spike = if interrupt { 1.0 + 4.0 * random.exponential() } else { 1.0 };
                    let latency = 100.0 + 10.0 * case.max(1) as f64;
                    let systematic = (pace + process.own + process.level).exp() * factor;
                    let sample = latency * systematic * random.factor(noise.batch) * spike;
                    if is_due {
                        let kept = !random.chance(0.02);
                        sides[side][case][pair].push((turn as u32, kept.then_some(sample)));
                    }
                }
            }
        }
    }
    let [base, other] = [0, 1].map(|side| run(&sides[side], noise, side));
    (base, other)
}

fn run(cases: &[Vec<Turns>], noise: Noise, place: usize) -> Run {
    let names = |at: usize| match at {
        0 => Case::plain(CONTROL),
        row => Case::plain(format!("entry/row-{row}")),
    };
    let of = |(at, processes): (usize, &Vec<Turns>)| {
        let one = measured_in_turns(processes, noise.turns);
        let baseline = (at == 0).then(|| names(1));
        (names(at), Outcome::Measured(Box::new(Measured { baseline, ..one })))
    };
    let mut run = run_of(cases.iter().enumerate().map(of).collect());
    run.session = Some(part(place as u32));
    run
}

/// A part of a session of two.
pub fn part(place: u32) -> Part {
    Part {
        id: "20260101-000000-s".parse().unwrap(),
        environment: "host".into(),
        stands_for: None,
        place,
        of: 2,
        paired: true,
        knob: None,
        switches: Vec::new(),
        command: None,
    }
}

/// A measurement of processes that each had some of `turns` turns, in which some batches were discarded (None).
pub fn measured_in_turns(processes: &[Turns], turns: usize) -> Measured {
    let samples: Vec<Vec<Option<f64>>> =
        processes.iter().map(|process| process.iter().map(|(_, sample)| *sample).collect()).collect();
    let mut measured = measured_with_discards("entry", &samples);
    for (rounds, process) in measured.processes.iter_mut().zip(processes) {
        let turn = |(turn, _): &(u32, Option<f64>)| *turn;
        rounds.rounds = turns as u32;
        rounds.discarded = process.iter().filter(|(_, sample)| sample.is_none()).map(turn).collect();
        rounds.ran = (process.len() < turns).then(|| process.iter().map(turn).collect());
    }
    measured
}
