//! The home of memory: the node whose memory controller and directory serve a line for all processors.
//!
//! The pages are bound to a node before they are touched, and the kernel is asked where they lie: a case whose pages lie
//! elsewhere is not measured. There is no row for a line that a third processor touched first. Its touch would decide on which
//! node the page lies, and that is bound here. Its copy of the line is gone when another processor has stored to it, or has read
//! a region of four times the last-level cache.

use super::pairing::two_cores;
use super::region::{Page, Region};
use super::topology::Sizes;
use super::{bandwidth, latency, pingpong};
use crate::prelude::*;
use tollgate_engine::topology::Node;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/home",
    operation: "A dependent load, a hand-over of a line between two processors, or a read of 4 KiB, of memory on this processor's node or on another one.",
    avoid: "Touch memory first on the node that uses it, and keep threads there (numactl, set_mempolicy).",
    source: "numa(7); mbind(2); Documentation/mm/numa.rst",
    crosses: &[MemoryAccess, CacheLine, Tlb],
    crossed_in: |params, boundary| (boundary == CacheLine) == (word(params, "of") == "pingpong"),
    timed: |_| Timed::Whole("the loops of memory/latency, memory/pingpong and memory/bandwidth"),
    cases: |machine| cases(machine.nodes.len()),
    baseline: Baseline::Case(|params| {
        let mut base = params.clone();
        base.insert("home".to_owned(), "same".into());
        Some(base)
    }),
    bytes: |params| (word(params, "of") == "bandwidth").then_some(4 << 10),
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

words! {
    enum Measured("of") { Latency = "latency", Pingpong = "pingpong", Bandwidth = "bandwidth" }
}

words! {
    enum Home("home") { Same = "same", Other = "other" }
}

/// On one node only the cases that report the lack of another: other benchmarks measure the same node.
fn cases(nodes: usize) -> Vec<Params> {
    let homes = if nodes > 1 { Home::WORDS } else { &Home::WORDS[1..] };
    let case = |of: &str, home: &str| params(&[("of", of.into()), ("home", home.into())]);
    Measured::WORDS.iter().flat_map(|of| homes.iter().map(move |home| case(of, home))).collect()
}

/// Returns the node of a processor, or the nearest other one (the first of several).
fn chosen(nodes: &[Node], processor: usize, home: Home) -> Result<usize> {
    let own = nodes.iter().find(|node| node.processors.contains(&processor));
    let own =
        own.ok_or_else(|| skip!("the kernel does not say which memory node processor {processor} is of"))?;
    if home == Home::Same {
        return Ok(own.number);
    }
    let others = nodes.iter().filter(|node| node.number != own.number);
    let nearest = others.min_by_key(|node| (own.distance(node.number), node.number));
    nearest.map(|node| node.number).ok_or_else(|| skip!("this machine has one memory node"))
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let (of, home) = (Measured::try_from(params)?, Home::try_from(params)?);
    let processor = context.home()?;
    let node = chosen(&context.topology().nodes, processor, home)?;
    let caches = Sizes::shared(context);
    let bytes = if of == Measured::Pingpong { huge_page() as u64 } else { caches.last.saturating_mul(4) };
    let region = on_node(bytes, node, &context.quota)?;
    let instance = match of {
        Measured::Latency => latency::of_region(region, caches, context)?,
        Measured::Bandwidth => bandwidth::of_region(region, caches, context)?,
        Measured::Pingpong => {
            let pair = two_cores(context)?;
            pingpong::of_region(region, (pair.from, pair.to), context).with_notes([pair.in_words()])
        }
    };
    Ok(instance.with_notes([format!("processor {processor}, memory of node {node}")]))
}

/// Maps memory on a node, and checks its beginning, middle and end.
fn on_node(bytes: u64, node: usize, quota: &Quota) -> Result<Region> {
    let region = Region::placed(bytes as usize, Page::Small, quota, |mapping| bind(mapping, node))?;
    let last = region.length() - 8;
    for at in [0, last / 2, last] {
        let found = node_of(region.address() + at)?;
        if found != node {
            return Err(Refusal::NotMeasured(format!("the memory came from node {found} instead of {node}")));
        }
    }
    Ok(region)
}

/// mbind(2) with MPOL_BIND: the pages come from this node.
fn bind(mapping: &Mapping, node: usize) -> Result<()> {
    /// Bits of the mask: more nodes than Linux has (MAX_NUMNODES, 1024).
    const BITS: usize = 1024;
    let mut mask = [0_u64; BITS / 64];
    match mask.get_mut(node / 64) {
        Some(word) => *word |= 1 << (node % 64),
        None => return Err(skip!("node {node} is beyond those that mbind(2) takes here")),
    }
    let (address, length) = (mapping.address(), mapping.length());
    // The kernel reads one bit less than it is told (get_nodes() in mm/mempolicy.c).
    // SAFETY: the range is the mapping's, and the mask has `BITS` bits.
    let bound = unsafe {
        libc::syscall(libc::SYS_mbind, address, length, libc::MPOL_BIND, mask.as_ptr(), BITS + 1, 0)
    };
    checked(bound).or_refused("mbind(2) is refused").map(drop)
}

/// Returns the node of the page at this address (move_pages(2) without nodes to move to).
fn node_of(address: u64) -> Result<usize> {
    let pages = [address];
    let mut status = [-1_i32];
    // SAFETY: one address and one status; nothing is moved.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            1,
            pages.as_ptr(),
            std::ptr::null::<i32>(),
            status.as_mut_ptr(),
            0,
        )
    };
    checked(asked).or_refused("move_pages(2) is refused")?;
    usize::try_from(status[0]).map_err(|_| skip!("move_pages(2) does not say where a page is: {}", status[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pinned, ready};

    fn machine() -> Vec<Node> {
        let node = |number, processors: &[usize], distances: [u64; 3]| Node {
            number,
            processors: processors.to_vec(),
            distances: [0, 1, 4].into_iter().zip(distances).collect(),
        };
        vec![node(0, &[0, 1], [10, 21, 21]), node(1, &[2, 3], [21, 10, 17]), node(4, &[], [21, 17, 10])]
    }

    #[test]
    fn the_other_home_is_the_nearest_node_with_memory() {
        let nodes = machine();
        assert_eq!((chosen(&nodes, 2, Home::Same), chosen(&nodes, 2, Home::Other)), (Ok(1), Ok(4)));
        assert_eq!(chosen(&nodes, 0, Home::Other), Ok(1));
        assert_eq!(chosen(&nodes[..1], 0, Home::Other), Err(skip!("this machine has one memory node")));
        assert!(chosen(&nodes, 9, Home::Same).is_err());
        assert_eq!((cases(1).len(), cases(2).len()), (3, 6));
    }

    #[test]
    fn memory_comes_from_the_node_that_it_is_bound_to() {
        let processor = pinned();
        let mut context = Context::here();
        let Some(node) = ready("a node", chosen(&context.topology().nodes, processor, Home::Same)) else {
            return;
        };
        let Some(region) = ready("memory", on_node(4 << 20, node, &context.quota)) else { return };
        assert_eq!(node_of(region.address()), Ok(node));
        let caches = Sizes { l1: 32 << 10, l2: 512 << 10, last: 1 << 20 };
        let mut walk = latency::of_region(region, caches, &context).expect("an instance");
        walk.batch(Clock::Kernel, Order::new(64)).expect("loads within the region");
        let region = on_node(4 << 20, node, &context.quota).expect("memory");
        let mut pass = bandwidth::of_region(region, caches, &context).expect("an instance");
        pass.batch(Clock::Kernel, Order::new(16)).expect("the right sum");
        let other = params(&[("of", "latency".into()), ("home", "other".into())]);
        if context.topology().nodes.len() == 1 {
            let why = instance(&other, &mut context).err();
            assert_eq!(why, Some(skip!("this machine has one memory node")));
        }
    }
}
