//! The published figures, as a second copy: what the files of `claims/` must not lose.

/// The name of an experiment, its claims, its figures, and words of its state and listings.
pub type Published = (&'static str, &'static [&'static str], &'static [f64], &'static [&'static str]);

/// All of them.
#[rustfmt::skip]
pub const PUBLISHED: &[Published] = &[
    (
        "windows-kernel-entry-2005",
        &["fast-entry-beats-interrupt-gate", "native-beats-compat"],
        &[478.0, 439.0, 570.0, 311.0, 762.0],
        &["cd 55 08 00 00 ee 86 80 8f 8c 08 00 00 8e 86 80", "808655cd", "80873c00", "f7a34000", "80865710", "00230010:00000000", "fffff80001024040", "fffff80001023d80", "00014700", "00000c9b", "0000029b"],
    ),
    (
        "invalid-opcode-emulation-2007",
        &["trap-and-emulate-is-two-orders-dearer", "ring0-trap-not-cheaper"],
        &[19536.0, 19676.0, 19936.0, 19632.0, 19844.0, 19824.0, 18688.0, 19416.0, 18884.0, 19440.0,
          19487.0, 1949.0, 1082.9, 21988.0, 19424.0, 19880.0, 18424.0, 19356.0, 21492.0, 19532.0, 21196.0,
          19892.0, 19916.0, 20110.0, 2011.0, 1117.3, 112.0, 124.0, 114.4, 11.5, 6.389],
        &["f0 89 c8", "0f af c8"],
    ),
    (
        "syscall-vs-interrupt-2021",
        &["syscall-twice-as-fast"],
        &[62.7, 132.0],
        &["gs:8", "o64 sysret", "SELECTOR_1 << 32", "20 user code", "0x1b user data"],
    ),
    (
        "ryzen-cache-thrashing-2017",
        &["sharing-a-private-cache-costs-tens", "shared-last-level-absorbs-sharing", "beyond-cache-sharing-is-hidden"],
        &[8.0, 0.675, 13.2, 0.824, 22.5, 128.0, 0.625, 14.7, 0.69, 18.8, 2048.0, 0.885, 0.9, 0.878, 6.93,
          16384.0, 9.13, 14.5, 8.87, 7.96],
        &[],
    ),
    (
        "wsl-vs-vm-development-2017",
        &["user-time-equal-kernel-time-differs", "few-calls-carry-the-difference"],
        &[3.0, 21.0, 1.0, 15.0, 860.0, 0.47, 0.008, 0.278, 0.029, 4.2, 1.23, 270.0, 5.5, 86.0, 39.7, 439.0,
          169.0, 254.0, 4.7, 95.1, 154.2, 5.35, 3.59, 1.78, -0.01, 95.2, 48.7, 60.5, 81.5, 39.9, 48.3,
          12.2, 32.3, 281.0, 604.0, 905.0, 92.3, 97.6, 605.0, 51.6, 15.5, 188.0, 0.584, 118.0, 1.46, 33.2,
          0.889, 29.6, 0.822, 4.71, 412.0, 175.0, 117.0, 18.5, 21.1, 7.18, 1.91, 6.44, 2.08, 15500.0,
          3610.0, 2850.0, 23.2, 970.0, 0.00237, 319.0, 8.21, 288.0, 75.7],
        &[],
    ),
    (
        "wsl-vs-native-2017",
        &["thread-cheaper-than-process", "fork-pays-for-written-memory", "page-cache-beats-storage"],
        &[4.53, 0.082, 0.0448, 2.19, 0.104, 0.105, 0.248, 0.0167, 0.0108, 0.0508, 0.036, 0.0366, 4.18,
          23.7, 1.96, 2.16, 2170.0, 6360.0, 12100.0, 677.0, 489.0, 324.0, 596.0, 3420.0, 328.0, 423.0, 151.0],
        &["mean of 5 runs", "mean of 10 runs"],
    ),
    (
        "aslr-kaslr-2017",
        &["non-pie-code-stays", "aslr-switch", "kaslr-by-address", "kaslr-and-hibernation"],
        &[],
        &[],
    ),
    (
        "linuxkit-kernel-2017",
        &["a-lean-kernel-is-visible-in-its-configuration"],
        &[2177.0, 1540.0, 4592.0, 1.0],
        &["NR_CPUS", "SCHED_SMT", "SCHED_MC", "TOMOYO", "IMA", "HYPERV", "OVERLAY"],
    ),
    (
        "ram-block-device-2017",
        &["memory-device-isolates-the-software"],
        &[],
        &["rd_nr=4 rd_size=1048576", "16 devices of 64 MB", "page by page", "file system, brd a block device"],
    ),
    (
        "direct-io-buffer-2017",
        &["unaligned-direct-io-fails"],
        &[],
        &[],
    ),
    (
        "ps2-user-level-test-and-set-2000",
        &["seven-times-cheaper-than-a-system-call", "producer-consumer-1.9", "flawed-versions-fail", "user-level-di-halts-the-system"],
        &[0.68, 0.29, 12.7, 0.08, 1.66, 2.34, 0.16, 0.04, 0.49, 3.18, 0.33, 14.36, 0.57],
        &["UNSAFE", "POOR", "DIFFICULT", "unnecessary", "bnez t2,start", "1764fffa", "7x", "1.9x", "ACCESS_MAGIC", "addiu t0,%lo(preempted)", "sc t0,(a0)", "sw t0,(k1)"],
    ),
];
