use tollgate_statistics::median;
use tollgate_statistics::random::Random;

/// The rounds after which the alternation checks whether the order matters. With many sides, a side rarely follows itself.
pub(crate) const LOOKS_AT_ORDER: [u32; 6] = [10, 16, 24, 32, 48, 64];

/// Returns the items in random order. Each round has its own coin, so signs of pairs are fair and independent if nothing differs.
pub fn drawn<T>(mut these: Vec<T>, random: &mut Random) -> Vec<T> {
    random.shuffle(&mut these);
    these
}

/// A random order, then its reverse (ABBA or BAAB): a trend within two turns adds nothing to either side.
///
/// The signs of the two turns are not independent, but reversing all of a pair of processes changes only the sign of the pair's
/// median. So this is for turns whose pairs of processes are compared, not for rounds that are compared themselves.
#[derive(Debug, Clone)]
pub struct Mirrored {
    order: Vec<usize>,
    is_to_reverse: bool,
}

impl Mirrored {
    /// Makes the orders of these sides.
    pub fn new(sides: Vec<usize>) -> Self {
        Self { order: sides, is_to_reverse: false }
    }

    /// Returns the order of the next turn.
    pub fn next(&mut self, random: &mut Random) -> Vec<usize> {
        if self.is_to_reverse {
            self.order.reverse();
        } else {
            random.shuffle(&mut self.order);
        }
        self.is_to_reverse = !self.is_to_reverse;
        self.order.clone()
    }
}

/// An order that stays from round to round, because the figures of a side depend on the side before it.
#[derive(Debug, Clone, PartialEq)]
pub struct InTurn {
    /// The sides, as each round executes them.
    pub order: Vec<usize>,
    /// The first side whose figures showed this dependence.
    pub side: usize,
    /// The median of its figures after another side, and after itself.
    pub medians: [f64; 2],
}

/// The medians of the figures after another side and after the side itself, if the two sets do not overlap and the medians lie
/// apart: a checkout of what is already checked out, for example.
pub(crate) fn depends(figures: &[f64], is_after_itself: &[bool]) -> Option<[f64; 2]> {
    /// With four of each, the two sets are disjoint by chance in one order of 35.
    const LEAST: usize = 4;
    const APART: f64 = 1.5;
    let both = [false, true].map(|after_itself| {
        let meant = figures.iter().zip(is_after_itself).filter(|(_, is)| **is == after_itself);
        meant.map(|(figure, _)| *figure).collect::<Vec<f64>>()
    });
    let [Some(other), Some(itself)] = both.each_ref().map(|figures| median(figures)) else { return None };
    let least = both.each_ref().map(|figures| figures.iter().copied().fold(f64::INFINITY, f64::min));
    let most = both.each_ref().map(|figures| figures.iter().copied().fold(0.0, f64::max));
    let is_separate = most[0] < least[1] || most[1] < least[0];
    let is_apart = other.max(itself) > APART * other.min(itself);
    (both.iter().all(|figures| figures.len() >= LEAST) && is_separate && is_apart).then_some([other, itself])
}
