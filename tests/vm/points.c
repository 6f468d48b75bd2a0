/*
 * Where programs of BPF could count system calls, as the first process of a guest whose time stamp counter goes one tick an instruction
 * (QEMU -icount shift=0): at the tracepoints of calls, or at a function of the kernel. It shares no code with tollgate, which takes the
 * tracepoints; crates/tollgate/tests/trace_in_guest.rs looks whether that is still the better choice.
 *
 * It prints, after "points: ":
 *     alone, tracepoints, functions    instructions of getppid(2): by itself, and with an empty program at its entry and at its return
 *     start, end, start-functions, end-functions
 *                                      microseconds to load and attach the two programs, and to detach them
 *     of, missed, missed-functions     calls of three processes on one processor, and those that programs which read the clock did not see
 *     left                             trampolines that stay in the kernel when x64_sys_call had programs while a process ended; -1 where it
 *                                      may have none
 *
 *     cc -static -O2 -o init points.c
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OPERATIONS = 100, SAMPLES = 41, PROCESSES = 3, CALLS = 100000, FUNCTION = 12, TYPEDEF = 8 };

static void stop(const char *why)
{
	printf("stopped: %s: %s\n", why, strerror(errno));
	fflush(stdout);
	reboot(RB_AUTOBOOT);
}

/* The kernel's description of its types, see Documentation/bpf/btf.rst. */
static unsigned char types[64 << 20];

static uint32_t word(size_t at)
{
	uint32_t value;

	memcpy(&value, types + at, 4);
	return value;
}

static void read_types(void)
{
	FILE *file = fopen("/sys/kernel/btf/vmlinux", "r");

	if (!file || !fread(types, 1, sizeof types, file))
		stop("the kernel's types");
	fclose(file);
}

static uint32_t find(uint32_t wanted, const char *name)
{
	size_t at = word(4) + word(8), end = at + word(12), strings = word(4) + word(16);

	for (uint32_t id = 1; at < end; id++) {
		uint32_t kind = word(at + 4) >> 24 & 31, entries = word(at + 4) & 0xffff;

		if (kind == wanted && !strcmp((char *)types + strings + word(at), name))
			return id;
		at += 12;
		if (kind == 1 || kind == 14 || kind == 17)
			at += 4;
		else if (kind == 3)
			at += 12;
		else if (kind == 4 || kind == 5 || kind == 15 || kind == 19)
			at += 12 * entries;
		else if (kind == 6 || kind == 13)
			at += 8 * entries;
	}
	return 0;
}

static int bpf(int command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

/* A program that does nothing, or reads the clock. */
static int program(int type, uint32_t id, int clock)
{
	struct bpf_insn clocked[] = { { .code = 0x85, .imm = BPF_FUNC_ktime_get_ns }, { .code = 0xb7 }, { .code = 0x95 } };
	union bpf_attr attributes = { .prog_type = BPF_PROG_TYPE_TRACING };

	attributes.insns = (uintptr_t)(clock ? clocked : clocked + 1);
	attributes.insn_cnt = clock ? 3 : 2;
	attributes.license = (uintptr_t)"GPL";
	attributes.expected_attach_type = type;
	attributes.attach_btf_id = id;
	return bpf(BPF_PROG_LOAD, &attributes);
}

struct points {
	int programs[2], links[2];
};

/* Where the kernel refuses that a link is negative. */
static struct points try_to_attach(const char *entry, const char *exit, int clock)
{
	int is_function = entry == exit;
	const char *names[] = { entry, exit };
	struct points points;

	for (int i = 0; i < 2; i++) {
		int type = is_function ? (i ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY) : BPF_TRACE_RAW_TP;
		union bpf_attr attributes = { 0 };

		points.programs[i] = program(type, find(is_function ? FUNCTION : TYPEDEF, names[i]), clock);
		attributes.raw_tracepoint.prog_fd = points.programs[i];
		points.links[i] = bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes);
	}
	return points;
}

static struct points attach(const char *entry, const char *exit, int clock)
{
	struct points points = try_to_attach(entry, exit, clock);

	if (points.links[0] < 0 || points.links[1] < 0)
		stop(entry);
	return points;
}

static void detach(struct points points)
{
	for (int i = 0; i < 2; i++) {
		close(points.links[i]);
		close(points.programs[i]);
	}
}

static uint64_t missed(int program)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attributes = { 0 };

	attributes.info.bpf_fd = program;
	attributes.info.info_len = sizeof info;
	attributes.info.info = (uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes))
		stop("what was missed");
	return info.recursion_misses;
}

static uint64_t ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static uint64_t microseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000ull + time.tv_nsec / 1000;
}

static uint64_t loop(int turns)
{
	uint64_t begin = ticks();

	for (int i = 0; i < turns; i++)
		syscall(SYS_getppid);
	return ticks() - begin;
}

/* Instructions of a call with the loop around it: the most frequent of many, since the kernel's tick falls into some. */
static unsigned instructions(void)
{
	uint64_t samples[SAMPLES], best = 0;
	int most = 0;

	for (int i = 0; i < SAMPLES; i++) {
		uint64_t one = loop(OPERATIONS), two = loop(2 * OPERATIONS);

		samples[i] = two - one;
	}
	for (int i = 0; i < SAMPLES; i++) {
		int same = 0;

		for (int j = 0; j < SAMPLES; j++)
			same += samples[j] == samples[i];
		if (same > most) {
			most = same;
			best = samples[i];
		}
	}
	return best / OPERATIONS;
}

/* Calls that the two programs did not see of those that processes make which take turns on a processor. */
static uint64_t missed_of_many(struct points points)
{
	uint64_t before = missed(points.programs[0]) + missed(points.programs[1]);

	for (int i = 0; i < PROCESSES; i++) {
		if (!fork()) {
			for (int j = 0; j < CALLS; j++)
				syscall(SYS_getppid);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return missed(points.programs[0]) + missed(points.programs[1]) - before;
}

/* What the programs add to a call, and to the run that has them. */
static void added(const char *entry, const char *exit, const char *name, const char *suffix)
{
	uint64_t began = microseconds();
	struct points points = attach(entry, exit, 0);

	printf("start%s=%u ", suffix, (unsigned)(microseconds() - began));
	printf("%s=%u ", name, instructions());
	began = microseconds();
	detach(points);
	printf("end%s=%u ", suffix, (unsigned)(microseconds() - began));
}

static int trampolines(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512];
	int count = 0;

	if (!file)
		stop("/proc/kallsyms");
	while (fgets(line, sizeof line, file))
		count += strstr(line, " bpf_trampoline_") && strstr(line, "[bpf]");
	fclose(file);
	return count;
}

/* Those that stay once the kernel has had time to free what no process is in. In a guest nobody else has any. */
static int left(void)
{
	for (int i = 0; i < 20 && trampolines(); i++)
		sleep(1);
	return trampolines();
}

/* Of a function that each process enters at its end and never leaves; -1 where no program may be there. */
static int left_behind(void)
{
	struct points points = try_to_attach("x64_sys_call", "x64_sys_call", 0);

	if (points.links[0] < 0 || points.links[1] < 0)
		return -1;
	detach(points);
	if (left())
		stop("a trampoline is left without the end of a process");
	points = attach("x64_sys_call", "x64_sys_call", 0);
	if (!fork())
		_exit(0);
	wait(NULL);
	detach(points);
	return left();
}

int main(void)
{
	static const char *ENTER = "btf_trace_sys_enter", *EXIT = "btf_trace_sys_exit", *FUNCTION_OF_CALL = "__do_sys_getppid";
	struct points points;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		stop("mount");
	read_types();
	printf("points: alone=%u ", instructions());
	added(ENTER, EXIT, "tracepoints", "");
	added(FUNCTION_OF_CALL, FUNCTION_OF_CALL, "functions", "-functions");

	points = attach(ENTER, EXIT, 1);
	printf("of=%d missed=%u ", PROCESSES * CALLS, (unsigned)missed_of_many(points));
	detach(points);
	points = attach(FUNCTION_OF_CALL, FUNCTION_OF_CALL, 1);
	printf("missed-functions=%u ", (unsigned)missed_of_many(points));
	detach(points);

	fflush(stdout);
	printf("left=%d\n", left_behind());
	fflush(stdout);
	reboot(RB_AUTOBOOT);
}
