use crate::prelude::*;
use tollgate_engine::Aspect;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "environments/first-touch",
    operation: "Writes to a page of 4 KiB that the environment has never had: 8,192 of them, one after the other, at this side's request; less a request for none.",
    avoid: "Touch memory before it is needed, with huge pages (MADV_HUGEPAGE, hugetlbfs), and have a guest's memory allocated when it starts.",
    source: "mmap(2), madvise(2), Intel SDM volume 3, 29.3 (EPT violations)",
    crosses: &[KernelCode, Exception, PageFault, KernelAllocation, VmExit],
    timed: |_| Timed::Whole("a store to each page"),
    kind: Kind::Environment(|_| Some(Aspect::FirstTouch)),
    ..PLAIN
};
