//! Several sides in alternation: environments, commands, builds of benchmarks. [`session`] coordinates environments, and [`agent`] is
//! this program in one of them. [`versus`] compares commands of the user, [`benches`] the benches of builds.

pub mod agent;
pub mod benches;
pub mod session;
pub mod versus;
