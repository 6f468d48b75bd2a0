use crate::prelude::*;

timed_loop! {
    call_and_return: "call 3f"; after "3:", "ret"; aarch64 "bl 3f"; after "3:", "ret"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/call",
    operation: "One near call and its return within this program: the baseline of kernel entry.",
    avoid: "Nothing to avoid: crossings are compared with this.",
    source: "Intel SDM vol. 2, CALL and RET",
    crosses: &[Call, StoreForwarding],
    timed: |_| Timed::once("call/bl", TimedLoop::Long(call_and_return)),
    kind: Kind::Instance(|timed, _, _| Ok(Loop::without_context(timed, checks::any)?.here())),
    ..PLAIN
};
