//! Simulated executions of two commands, a round after the other.

use super::Random;

/// How the times of executions vary. All levels are factors of 100 ms.
pub struct Noise {
    pub name: &'static str,
    /// Of what both sides meet, execution by execution in the order of time: its deviation, and how much of it the next one has too.
    pub shared: [f64; 2],
    /// The same of what each side has of its own, from one of its executions to its next.
    pub kept: [f64; 2],
    /// Deviation of an execution.
    pub own: f64,
    /// The share of executions at another level, and that level.
    pub level: (f64, f64),
    /// The share of executions that something delays, by 5 % and more, with a tail of Pareto's distribution whose variance is infinite.
    pub delayed: f64,
    /// From the first execution to the thousandth.
    pub drift: f64,
}

const EVEN: Noise = Noise {
    name: "log-normal",
    shared: [0.0; 2],
    kept: [0.0; 2],
    own: 0.02,
    level: (0.0, 1.0),
    delayed: 0.0,
    drift: 0.0,
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
    pub ratio: f64,
    pub times: [Vec<f64>; 2],
}

impl<'a> Executions<'a> {
    pub fn new(kind: &'a Noise, seed: u64, ratio: f64) -> Self {
        // Neighbouring states are one sequence, a step apart.
        let mut random = Random(Random(seed).bits());
        let shared = Level::new(kind.shared, &mut random);
        let kept = [(); 2].map(|()| Level::new(kind.kept, &mut random));
        Self { kind, random, shared, kept, ratio, times: [vec![], vec![]] }
    }

    /// Executes rounds until there are so many.
    pub fn until(&mut self, rounds: usize) {
        while self.times[0].len() < rounds {
            let first = usize::from(self.random.chance(0.5));
            for side in [first, 1 - first] {
                let time = self.execution(side);
                self.times[side].push(time);
            }
        }
    }

    fn execution(&mut self, side: usize) -> f64 {
        let (kind, random) = (self.kind, &mut self.random);
        let drift = kind.drift * self.times[side].len() as f64 / 1000.0;
        let levels = self.shared.next(random) + self.kept[side].next(random) + drift;
        let level = if random.chance(kind.level.0) { kind.level.1 } else { 1.0 };
        let delay = if random.chance(kind.delayed) { 0.05 * random.uniform().powf(-1.0 / 1.5) } else { 0.0 };
        let factor = if side == 1 { self.ratio } else { 1.0 };
        1e8 * factor * (level * (levels + kind.own * random.normal()).exp() + delay)
    }
}
