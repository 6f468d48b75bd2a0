//! Finds regions that move together: the difference between two addresses has random bits of its own, or none. Pure.

use super::Region;
use super::spread::{Bits, Spread};

/// A region with its address in each start.
pub struct Track {
    /// The region.
    pub region: Region,
    /// One address per start.
    pub addresses: Vec<u64>,
    /// Spread of the addresses.
    pub spread: Spread,
}

/// How the regions move.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Together {
    /// Moving regions in groups. Within a group, no distance ever changed.
    pub groups: Vec<Vec<Region>>,
    /// Groups that are near each other without being one.
    pub links: Vec<Link>,
}

/// A region that follows another at a distance that is random too, but less so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The first region of a group.
    pub region: Region,
    /// The first region of another group.
    pub follows: Region,
    /// Random bits of the distance between them.
    pub bits: f64,
}

/// A distance with this many bits less than either region is not an accident: the distance of two independent ones spreads at
/// least as far as the wider of them.
const NEARER: f64 = 1.0;

impl Together {
    /// Groups regions, given in the order in which they are shown. Regions that never move are left out.
    pub fn of(tracks: &[Track]) -> Self {
        let moving = tracks.iter().filter(|track| track.spread.bits.figure() != Some(0.0));
        let mut groups: Vec<Vec<&Track>> = Vec::new();
        for track in moving {
            let as_one = |group: &Vec<&Track>| {
                group.first().is_some_and(|first| {
                    Spread::between(&track.addresses, &first.addresses).is_some_and(|d| d.bits.stays())
                })
            };
            match groups.iter_mut().find(|group| as_one(group)) {
                Some(group) => group.push(track),
                None => groups.push(vec![track]),
            }
        }
        let firsts: Vec<&Track> = groups.iter().filter_map(|group| group.first().copied()).collect();
        let links = links(&firsts);
        let names = |group: Vec<&Track>| group.iter().map(|track| track.region).collect();
        Self { groups: groups.into_iter().map(names).collect(), links }
    }
}

/// Links the nearest pairs first; regions that are already linked through others need no further link.
fn links(firsts: &[&Track]) -> Vec<Link> {
    let mut near: Vec<(usize, usize, f64)> = Vec::new();
    for (later, track) in firsts.iter().enumerate() {
        for (earlier, other) in firsts.iter().enumerate().take(later) {
            let distance = Spread::between(&track.addresses, &other.addresses);
            let (Some(distance), Some(one), Some(two)) = (
                distance.and_then(|distance| distance.bits.figure()),
                figure(&track.spread.bits),
                figure(&other.spread.bits),
            ) else {
                continue;
            };
            if distance < one.min(two) - NEARER {
                near.push((earlier, later, distance));
            }
        }
    }
    near.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut piece: Vec<usize> = (0..firsts.len()).collect();
    let mut links = Vec::new();
    for (earlier, later, bits) in near {
        let (one, two) = (piece[earlier], piece[later]);
        if one != two {
            piece.iter_mut().filter(|piece| **piece == two).for_each(|piece| *piece = one);
            links.push(Link { region: firsts[later].region, follows: firsts[earlier].region, bits });
        }
    }
    links
}

/// If the entropy is unknown, its lower bound is used.
fn figure(bits: &Bits) -> Option<f64> {
    match bits {
        Bits::Between { at_least, .. } => Some(*at_least),
        bits => bits.figure(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated::Source;
    use super::*;

    #[test]
    fn groups_followers_and_independent_regions_differ() {
        let mut source = Source::new(11);
        let mut starts: Vec<[u64; 6]> = Vec::new();
        for _ in 0..1000 {
            let (code, maps) = (source.below(1 << 28) << 12, source.below(1 << 28) << 12);
            let heap = code + (source.below(1 << 18) << 12);
            starts.push([code, heap, maps + (7 << 12), maps & !0x1f_ffff, maps, 0x40_0000]);
        }
        let regions = [
            Region::Code,
            Region::Heap,
            Region::Mapping,
            Region::LargeMapping,
            Region::Libraries,
            Region::Vdso,
        ];
        let tracks: Vec<Track> = regions
            .iter()
            .enumerate()
            .map(|(at, &region)| {
                let addresses: Vec<u64> = starts.iter().map(|start| start[at]).collect();
                let spread = Spread::of(&addresses).unwrap();
                Track { region, addresses, spread }
            })
            .collect();
        let together = Together::of(&tracks);
        assert_eq!(
            together.groups,
            [
                vec![Region::Code],
                vec![Region::Heap],
                vec![Region::Mapping, Region::Libraries],
                vec![Region::LargeMapping]
            ]
        );
        let [near, far] = together.links[..] else { panic!("{:?}", together.links) };
        assert_eq!((near.region, near.follows), (Region::LargeMapping, Region::Mapping));
        assert_eq!((far.region, far.follows), (Region::Heap, Region::Code));
        assert!((near.bits - 9.0).abs() < 0.1 && (far.bits - 18.0).abs() < 0.1, "{near:?} {far:?}");
    }
}
