//! Simulated executions of two commands, a round after the other.

use super::Random;

/// How the times of executions vary. All levels are factors of 100 ms.
pub struct Noise {
    pub name: &'static str,
    /// Noise common to both sides, execution by execution in the order of time: its deviation, and how much of it the next one
    /// shares.
    pub shared: [f64; 2],
    /// Noise of each side alone, from one of its executions to its next, likewise.
    pub kept: [f64; 2],
    /// Deviation of an execution.
    pub own: f64,
    /// The share of executions at another level, and that level.
    pub level: (f64, f64),
    /// The share of executions that something delays, by 5 % and more, with a Pareto tail of infinite variance.
    pub delayed: f64,
    /// From the first execution to the thousandth.
    pub drift: f64,
    /// Two of four executions take this much longer.
    pub period: f64,
    /// The chance that a side changes between two levels from one of its executions to its next, and the upper level.
    pub switches: (f64, f64),
    /// Other work takes the processors in bursts of 1 to 20 executions by a factor of 1 to 8: the undisturbed time of an
    /// execution in ms, since a short one is met less often.
    pub contended: Option<f64>,
}

const EVEN: Noise = Noise {
    name: "log-normal",
    shared: [0.0; 2],
    kept: [0.0; 2],
    own: 0.02,
    level: (0.0, 1.0),
    delayed: 0.0,
    drift: 0.0,
    period: 0.0,
    switches: (0.0, 1.0),
    contended: None,
};

pub const KINDS: [Noise; 8] = [
    EVEN,
    Noise { name: "AR(1), .98, of both sides", shared: [0.1, 0.98], own: 0.01, ..EVEN },
    Noise { name: "bimodal", level: (0.3, 1.3), own: 0.01, ..EVEN },
    Noise { name: "drift, 20 % in 1,000", drift: 0.2, ..EVEN },
    Noise { name: "heavy tails", delayed: 0.1, own: 0.01, ..EVEN },
    Noise { name: "one side keeps its level, .9", kept: [0.03, 0.9], own: 0.01, ..EVEN },
    Noise { name: "one side keeps its level, .97", kept: [0.03, 0.97], own: 0.01, ..EVEN },
    Noise { name: "one side keeps its level, .995", kept: [0.03, 0.995], own: 0.01, ..EVEN },
];

/// Noise in which few pairs are compared, and the greatest share of equal commands, in %, that are called different by a number
/// of pairs. It comes from levels that one side keeps for as long.
pub const OF_FEW_PAIRS: [(Noise, f64); 11] = [
    (EVEN, 0.0),
    (Noise { name: "contention, 50 ms", contended: Some(50.0), own: 0.05, ..EVEN }, 0.0),
    (Noise { name: "contention, 5 ms", contended: Some(5.0), own: 0.05, ..EVEN }, 0.0),
    (Noise { name: "bimodal", level: (0.3, 1.3), own: 0.01, ..EVEN }, 0.0),
    (Noise { name: "heavy tails", delayed: 0.1, own: 0.01, ..EVEN }, 0.0),
    (Noise { name: "a period of four executions", period: 0.2, own: 0.01, ..EVEN }, 0.0),
    (Noise { name: "one side keeps its level, .9", kept: [0.03, 0.9], own: 0.01, ..EVEN }, 1.0),
    (Noise { name: "one side keeps its level, .97", kept: [0.03, 0.97], own: 0.01, ..EVEN }, 4.0),
    (Noise { name: "one side keeps its level, .995", kept: [0.03, 0.995], own: 0.01, ..EVEN }, 20.0),
    (
        Noise { name: "one side is × 1.3, changing once in 20", switches: (0.05, 1.3), own: 0.01, ..EVEN },
        14.0,
    ),
    (Noise { name: "one side is × 2, changing once in 50", switches: (0.02, 2.0), own: 0.01, ..EVEN }, 26.0),
];

/// A first-order autoregression.
struct Level {
    value: f64,
    deviation: f64,
    kept: f64,
}

impl Level {
    fn new([deviation, kept]: [f64; 2], random: &mut Random) -> Self {
        Self { value: random.normal(), deviation, kept }
    }

    fn next(&mut self, random: &mut Random) -> f64 {
        if self.deviation == 0.0 {
            return 0.0;
        }
        self.value = self.kept * self.value + (1.0 - self.kept * self.kept).sqrt() * random.normal();
        self.deviation * self.value
    }
}

/// Rounds of two commands, in random order, of which the other takes `ratio` times as long.
pub struct Executions<'a> {
    kind: &'a Noise,
    random: Random,
    shared: Level,
    kept: [Level; 2],
    is_upper: [bool; 2],
    burst: (usize, f64),
    /// Executions so far, and those before the first.
    at: usize,
    pub ratio: f64,
    pub times: [Vec<f64>; 2],
}

impl<'a> Executions<'a> {
    pub fn new(kind: &'a Noise, seed: u64, ratio: f64) -> Self {
        // Neighbouring states are one sequence, a step apart.
        let mut random = Random(Random(seed).bits());
        let shared = Level::new(kind.shared, &mut random);
        let kept = [(); 2].map(|()| Level::new(kind.kept, &mut random));
        let is_upper = [(); 2].map(|()| random.chance(0.5));
        let at = (4.0 * random.uniform()) as usize;
        Self { kind, random, shared, kept, is_upper, burst: (0, 1.0), at, ratio, times: [vec![], vec![]] }
    }

    pub fn until(&mut self, rounds: usize) {
        while self.times[0].len() < rounds {
            let first = usize::from(self.random.chance(0.5));
            for side in [first, 1 - first] {
                self.one(side);
            }
        }
    }

    /// Executes a side once and returns its time.
    pub fn one(&mut self, side: usize) -> f64 {
        let time = self.execution(side);
        self.times[side].push(time);
        time
    }

    fn execution(&mut self, side: usize) -> f64 {
        let (kind, random) = (self.kind, &mut self.random);
        let drift = kind.drift * self.times[side].len() as f64 / 1000.0;
        let levels = self.shared.next(random) + self.kept[side].next(random) + drift;
        let level = if random.chance(kind.level.0) { kind.level.1 } else { 1.0 };
        let delay = if random.chance(kind.delayed) { 0.05 * random.uniform().powf(-1.0 / 1.5) } else { 0.0 };
        let factor = if side == 1 { self.ratio } else { 1.0 };
        self.is_upper[side] ^= random.chance(kind.switches.0);
        let own = if self.is_upper[side] { kind.switches.1 } else { 1.0 };
        self.at += 1;
        let period = if self.at % 4 < 2 { kind.period } else { 0.0 };
        let time = factor * (level * own * (levels + period + kind.own * random.normal()).exp() + delay);
        1e8 * time * self.contention(factor)
    }

    fn contention(&mut self, factor: f64) -> f64 {
        const BEGINS: f64 = 0.15;
        /// Half of the bursts meet an execution of this length.
        const SLICE: f64 = 10.0;
        let Some(ms) = self.kind.contended else { return 1.0 };
        let random = &mut self.random;
        if self.burst.0 == 0 && random.chance(BEGINS) {
            self.burst = (1 + (20.0 * random.uniform()) as usize, 8_f64.powf(random.uniform()));
        }
        if self.burst.0 == 0 {
            return 1.0;
        }
        self.burst.0 -= 1;
        let time = ms * factor;
        if random.chance(time / (time + SLICE)) { self.burst.1 } else { 1.0 }
    }
}
