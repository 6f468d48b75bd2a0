"""The figures of the classic suites, each with its command, where its figure stands in what it prints, and the case of tollgate that is the same.

A command has {cpu} for the processor that tollgate measures on, {dir} for a directory on a disk and {file} for a file of 64 MiB in it. `before`
is a server that is started first (with `&` one that stays in the foreground and is ended here), `behind` the command that ends it. `read` is a regular expression whose groups are
numbers, and `ns` makes nanoseconds of an operation from them.
"""

import json
import re
from dataclasses import dataclass
from typing import Callable, Optional


@dataclass(frozen=True)
class Figure:
    suite: str
    name: str
    case: str
    command: str
    read: object
    ns: Callable[..., float] = lambda number: number
    before: Optional[str] = None
    behind: Optional[str] = None
    # Why the ratio is what it is, where that is known.
    why: str = ""

    @property
    def program(self):
        """The program that is needed."""
        return self.command.split()[0]

    def latency(self, said):
        """Nanoseconds of one operation, from what the command printed."""
        if callable(self.read):
            return self.ns(self.read(said))
        found = re.search(self.read, said, re.M)
        if found is None:
            raise ValueError(f"there is no figure in {said.strip()[-200:]!r}")
        return self.ns(*(float(number) for number in found.groups()))


NUMBER = r"([\d.]+)"
us = lambda number: number * 1e3
each_second = lambda number: 1e9 / number
# Of 64 KiB at so many MB, which are 10^6 bytes, a second.
of_64k = lambda megabytes: 65536e3 / megabytes


def lmbench(name, case, command, says, ns=us, **rest):
    return Figure("lmbench", name, case, command, says + NUMBER, ns, **rest)


def round_trip(by, bytes=1):
    return f"ipc/round-trip{{between=processes,by={by},bytes={bytes},cpus=same}}"


def throughput(by):
    return f"ipc/throughput{{between=processes,by={by},bytes=65536,cpus=same}}"


FORK = "A fork copies what its process maps: a dynamic program with the C library there, and a small one here ([checked against C](checked-against-c.md#processes))."
LEVELS = "Processes of tollgate differ by up to 16 %, from the loop's figure upwards; why is not known."
RING = "SCHED_OTHER there, SCHED_BATCH here ([below](#lat_ctx-and-processesring))."
LMBENCH = [
    lmbench("lat_syscall null", "entry/libc{by=wrapper}", "lat_syscall null", "Simple syscall: "),
    lmbench("lat_syscall read", "entry/short-call{call=read}", "lat_syscall read", "Simple read: "),
    lmbench("lat_syscall write", "entry/short-call{call=write}", "lat_syscall write", "Simple write: "),
    lmbench("lat_syscall stat", "files/stat{timed=batches}", "lat_syscall stat {file}", "Simple stat: ",
            why="lmbench looks up the whole path, tollgate a name in an open directory."),
    lmbench("lat_syscall fstat", "entry/short-call{call=fstat}", "lat_syscall fstat {file}", "Simple fstat: ",
            why="The C library's fstat is newfstatat with an empty path since glibc 2.33; here it is fstat."),
    lmbench("lat_syscall open", "scaling/open{file=own,kind=threads,tasks=1}", "lat_syscall open {file}", "Simple open/close: ",
            why="lmbench looks up the whole path, tollgate a name in an open directory."),
    lmbench("lat_sig install", "traps/signal-install", "lat_sig install", "Signal handler installation: ",
            why="lmbench calls the C library's sigaction, which copies the action from and into the kernel's form; here it is the call alone."),
    lmbench("lat_sig catch", "traps/signal-self", "lat_sig catch", "Signal handler overhead: ",
            why="lmbench subtracts a kill(2) of signal 0, which is what sending takes there."),
    lmbench("lat_sig prot", "traps/segv{repair=skip}", "lat_sig prot {file}", "Protection fault: ",
            why="lmbench subtracts a signal that is sent and caught: the fault alone remains. Here it is fault, signal and handler."),
    lmbench("lat_proc procedure", "entry/call", "lat_proc procedure", "Procedure call: ",
            why="A function with two arguments in C, compiled for that version of lmbench; here a near call and its return."),
    lmbench("lat_proc fork", "processes/fork{dirty_mib=0,until=exited}", "lat_proc fork", "Process fork[+]exit: ",
            why=FORK),
    lmbench("lat_proc exec", "processes/fork-exec{dirty_mib=0,image=dynamic,until=exited}", "lat_proc exec", "Process fork[+]execve: "),
    lmbench("lat_proc shell", "processes/shell", "lat_proc shell", "Process fork[+]/bin/sh -c: ",
            why="lmbench's shell executes another program; here `sh -c` has nothing else to do."),
    lmbench("lat_ctx -s 0 2", "processes/ring{kib=0,processes=2}", "lat_ctx -s 0 2", r"^2 ", why=RING),
    lmbench("lat_ctx -s 16 8", "processes/ring{kib=16,processes=8}", "lat_ctx -s 16 8", r"^8 ", why=RING),
    lmbench("lat_pipe", round_trip("pipe"), "lat_pipe", "Pipe latency: "),
    lmbench("lat_fifo", round_trip("pipe"), "lat_fifo", "Fifo latency: "),
    lmbench("lat_unix", round_trip("socketpair"), "lat_unix", "AF_UNIX sock stream latency: "),
    lmbench("lat_tcp", round_trip("tcp"), "lat_tcp localhost", "TCP latency using localhost: ", before="lat_tcp -s", behind="lat_tcp -S localhost"),
    lmbench("lat_udp", round_trip("udp"), "lat_udp localhost", "UDP latency using localhost: ", before="lat_udp -s", behind="lat_udp -S localhost"),
    lmbench("lat_connect", "ipc/connect{by=tcp}", "lat_connect localhost", "TCP/IP connection cost to localhost: ",
            before="lat_connect -s", behind="lat_connect -S localhost"),
    lmbench("lat_unix_connect", "ipc/connect{by=unix}", "lat_unix_connect", "UNIX connection cost: ",
            before="lat_unix_connect -s", behind="lat_unix_connect -S"),
    lmbench("lat_select -n 100 tcp", "ipc/wait{by=select,descriptors=100}", "lat_select -n 100 tcp", "Select on 100 tcp fd's: ",
            why="The descriptors of lmbench are TCP sockets, those here eventfds, which are polled faster."),
    lmbench("lat_sem", "processes/switch{by=semop,placement=same-cpu}", "lat_sem", "Semaphore latency: ",
            why="One semop with two operations each there, two calls with one each here."),
    lmbench("lat_mem_rd -t, 16 KiB", "memory/latency{kib=16,page=4k}", "lat_mem_rd -N 3 -t 1 64", r"^0\.01562 ", float),
    lmbench("lat_mem_rd -t, 256 KiB", "memory/latency{kib=256,page=4k}", "lat_mem_rd -N 3 -t 1 64", r"^0\.25000 ", float),
    lmbench("lat_mem_rd -t, 4 MiB", "memory/latency{kib=4096,page=4k}", "lat_mem_rd -N 1 -t 4 64", r"^4\.00000 ", float,
            why="lmbench goes through the lines of one page before it goes to the next, so that the TLB misses once a page; here each load is on another one."),
    lmbench("lat_pagefault", "traps/file-fault", "lat_pagefault {file}", r"Pagefaults on \S+: ",
            why="lmbench divides by the pages; the kernel maps up to 16 of them at a fault (fault_around_bytes)."),
    lmbench("bw_pipe, 64 KiB", throughput("pipe"), "bw_pipe", "Pipe bandwidth: ", of_64k),
    lmbench("bw_unix, 64 KiB", throughput("socketpair"), "bw_unix", "AF_UNIX sock stream bandwidth: ", of_64k),
]


def perf(name, case, options, read, ns=us, **rest):
    return Figure("perf bench", name, case, f"perf bench {options}", read, ns, **rest)


OPERATIONS = r"Averaged ([\d]+) operations/sec"
PERF = [
    perf("syscall basic", "entry/libc{by=wrapper}", "syscall basic --loop 1000000", rf"{NUMBER} usecs/op", why=LEVELS),
    perf("sched pipe", round_trip("pipe"), "sched pipe --loop 100000", rf"{NUMBER} usecs/op"),
    perf("sched pipe, threads", "ipc/round-trip{between=threads,by=pipe,bytes=1,cpus=same}", "sched pipe --threaded --loop 100000", rf"{NUMBER} usecs/op"),
    perf("futex hash", "scaling/futex{kind=threads,tasks=1}", "futex hash --threads 1 --runtime 1", OPERATIONS, each_second,
         why="A wait that finds another value there, a wake without waiters here; both find their bucket."),
    perf("futex lock-pi", "locks/uncontended{by=futex-trylock-pi}", "futex lock-pi --threads 1 --runtime 1 --multi", OPERATIONS, each_second,
         why="perf sleeps for a microsecond while it holds the lock, which takes tens of microseconds; here nothing is between the two calls."),
    perf("epoll wait", "ipc/wait{by=epoll,descriptors=10}", "epoll wait --threads 1 --runtime 1 --nfds 10", OPERATIONS, each_second,
         why="perf's waiter sleeps until its writer comes, and reads; here a descriptor is ready."),
]


def fio(name, case, options, read, **rest):
    common = "fio --name=one --filename={dir}/fio --size=256m --runtime=2 --time_based --output-format=json --cpus_allowed={cpu}"
    return Figure("fio", name, case, f"{common} {options}", read, **rest)


def job(said):
    return json.loads(said[said.index("{"):])["jobs"][0]


def median_of(*way):
    """The median latency that fio has there."""
    def read(said):
        found = job(said)
        for word in way:
            found = found[word]
        return found["percentile"]["50.000000"]
    return read


QUEUE = "files/queue{depth=16,figure=%s,order=random,rw=read}"
FIO = [
    fio("randread 4k, psync, direct=1", "files/direct-read{block=4k,buffer=aligned}", "--rw=randread --bs=4k --ioengine=psync --direct=1",
        median_of("read", "clat_ns")),
    fio("randread 4k, io_uring, iodepth=16, operations", QUEUE % "operation", "--rw=randread --bs=4k --ioengine=io_uring --direct=1 --iodepth=16",
        lambda said: 1e9 / job(said)["read"]["iops"]),
    fio("randread 4k, io_uring, iodepth=16, latency", QUEUE % "latency", "--rw=randread --bs=4k --ioengine=io_uring --direct=1 --iodepth=16",
        median_of("read", "clat_ns")),
    fio("randread 4k, psync, page cache", "files/read{block=4k,state=cached}", "--rw=randread --bs=4k --ioengine=psync --pre_read=1", median_of("read", "clat_ns"),
        why="fio's latency has a clock read at each end."),
    fio("randwrite 4k, psync, direct=1", "files/write{block=4k,mode=direct}", "--rw=randwrite --bs=4k --ioengine=psync --direct=1", median_of("write", "clat_ns")),
    fio("write 4k, fsync=1", "files/fsync", "--rw=randwrite --bs=4k --ioengine=psync --fsync=1", median_of("sync", "lat_ns")),
    fio("write 4k, fdatasync=1", "files/fdatasync", "--rw=randwrite --bs=4k --ioengine=psync --fdatasync=1", median_of("sync", "lat_ns")),
]


def scales(test, case, **rest):
    """One thread of a program of will-it-scale: the average of operations a second."""
    return Figure("will-it-scale", f"{test}, 1 thread", case, f"{test}_threads -t 1 -s 1", r"average:(\d+)", **{"ns": each_second, **rest})


def one(benchmark, file=""):
    return f"scaling/{benchmark}{{{file}kind=threads,tasks=1}}"


OWN = "file=own,"
OPEN = "The program opens for writing, by an absolute path; here for reading, by a name in an open directory."
WILL_IT_SCALE = [
    scales("getppid1", one("getppid"), why=LEVELS),
    scales("open1", one("open", OWN), why=OPEN),
    scales("read2", one("read"), why="read2 goes through 1 MiB, here it is one page."),
    scales("pread2", one("read")),
    scales("pwrite1", one("write", OWN)),
    scales("dup1", one("dup")),
    scales("pipe1", one("pipe")),
    scales("eventfd1", one("eventfd")),
    scales("unix1", one("unix")),
    scales("poll1", one("poll"), why="poll1 asks a file, `scaling/poll` an eventfd."),
    # It counts the lock and the unlock, which are one operation here.
    scales("lock1", one("file-lock"), ns=lambda number: 2e9 / number, why="lock1 locks a record of the process, `scaling/file-lock` one of the open file."),
    scales("page_fault1", one("page-fault"), why="It touches 128 MiB before munmap gives them back, so that the kernel clears pages that no cache holds."),
    scales("mmap1", one("mmap"), why="Here with MAP_NORESERVE."),
    scales("futex1", one("futex"), why="Its wake is not private to the process, and finds its key by the page."),
    scales("signal1", one("signal"), why="raise of the C library is gettid, getpid and tgkill; here it is tgkill alone."),
    scales("sched_yield", one("yield")),
]


def unix(name, case, program, ns, **rest):
    return Figure("UnixBench", name, case, program, r"COUNT\|(\d+)\|", ns, **rest)


# Nanoseconds of an operation, of a count in so many seconds.
SECONDS = 2
in_seconds = lambda operations: (lambda count: SECONDS * 1e9 / (count * operations))
UNIXBENCH = [
    unix("System Call Overhead", "entry/syscall-getpid", f"ub-syscall {SECONDS} getpid", in_seconds(1),
         why="By syscall(3) of the C library, which copies six arguments."),
    unix("Pipe Throughput", one("pipe"), f"ub-pipe {SECONDS}", in_seconds(1), why="512 bytes there, one byte here."),
    unix("Pipe-based Context Switching", round_trip("pipe"), f"ub-context1 {SECONDS}", in_seconds(1), why="8 bytes each way; each of its loops is one message and its answer."),
    unix("Process Creation", "processes/fork{dirty_mib=0,until=exited}", f"ub-spawn {SECONDS}", in_seconds(1), why=FORK),
    unix("Execl Throughput", "processes/exec{image=dynamic}", f"ub-execl {SECONDS}", in_seconds(1),
         why="Its program formats and parses numbers between two calls; the clock is of whole seconds."),
]


def stress(stressor, case, read, ns=lambda number: number, options="", **rest):
    command = f"stress-ng --{stressor} 1 {options} --timeout 2 --metrics --taskset {{cpu}} --temp-path {{dir}}"
    return Figure("stress-ng", stressor, case, command, read, ns, **rest)


def bogo(stressor):
    """Bogo operations and the real time in seconds."""
    return rf"metrc: +\[\d+\] {stressor} +(\d+) +([\d.]+) "


per_bogo = lambda count, seconds: seconds * 1e9 / count
STRESS_NG = [
    stress("fork", "processes/fork{dirty_mib=0,until=exited}", bogo("fork"), per_bogo, why="A process of stress-ng, with the C library and its shared memory, is larger than a bench process."),
    stress("switch", "processes/switch{by=pipe,placement=same-cpu}", rf"switch +{NUMBER} nanosecs per context switch", options="--switch-method pipe",
           why="stress-ng writes into a pipe of one page and does not wait for an answer."),
    stress("vdso", "entry/vdso-clock", rf"vdso +{NUMBER} nanosecs per call", options="--vdso-func clock_gettime"),
    stress("sigsegv", "traps/segv{repair=skip}", bogo("sigsegv"), per_bogo, why="stress-ng draws one of several faults, installs three handlers before each, and leaves them by siglongjmp."),
]


def osbench(program, case, unit, ns, why):
    return Figure("osbench", program, case, f"{program} {{dir}}" if program == "create_files" else program, rf"{NUMBER} {unit} / ", ns, why=why)


BEST = "osbench prints the best of its repetitions; a hundred are started before the first is waited for."
OSBENCH = [
    osbench("create_threads", "processes/thread{dirty_mib=0,until=exited}", "us", us, BEST),
    osbench("create_processes", "processes/fork{dirty_mib=0,until=exited}", "us", us, BEST),
    osbench("launch_programs", "processes/fork-exec{dirty_mib=0,image=dynamic,until=exited}", "us", us, BEST),
    osbench("create_files", "scaling/create{kind=threads,tasks=1}", "us", us, "osbench writes 32 bytes into each file; here the file stays empty."),
]


def sockets(name, case, options, **rest):
    """sockperf prints half of a round trip."""
    return Figure("sockperf", name, case, f"sockperf ping-pong -i 127.0.0.1 -p 11111 -t 1 {options}", rf"Latency is {NUMBER} usec", lambda half: 2e3 * half,
                  before=f"&sockperf server -i 127.0.0.1 -p 11111 {options}", **rest)


POLLS = "sockperf's server and client wait by recvfrom, and each message has 14 bytes with two clock reads."
SOCKPERF = [
    sockets("ping-pong, UDP", round_trip("udp"), "", why=POLLS),
    sockets("ping-pong, TCP", round_trip("tcp"), "--tcp", why=POLLS),
]

FIGURES = LMBENCH + PERF + FIO + WILL_IT_SCALE + UNIXBENCH + STRESS_NG + OSBENCH + SOCKPERF
