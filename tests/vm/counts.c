/*
 * Counts instructions of system calls as the first process of a guest whose time stamp counter goes one tick an instruction
 * (QEMU -icount shift=0). It shares no code with tollgate: crates/tollgate/tests/guest.rs compares the figures of both.
 *
 * A sample is the difference of a loop of 200 operations and one of 100, so that readings of the counter are in neither; the figure is
 * the most frequent sample, since the kernel's tick falls into some. The two instructions of the loop itself are taken off.
 *
 *     cc -static -O2 -o init counts.c
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <unistd.h>

enum { OPERATIONS = 100, SAMPLES = 41, WARM_UP = 5, OF_LOOP = 2 };

static uint64_t now(void)
{
	uint32_t low, high;
	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

#define LOOP(name, body)                                                        \
	static uint64_t name(uint64_t turns)                                    \
	{                                                                       \
		register uint64_t left __asm__("r12") = turns;                  \
		uint64_t begin = now();                                         \
		__asm__ volatile("1: " body " dec %0; jnz 1b"                   \
				 : "+r"(left)                                   \
				 :                                              \
				 : "rax", "rcx", "r8", "r9", "r10", "r11", "memory", "cc"); \
		return now() - begin;                                           \
	}

LOOP(refused, "mov $-1, %%rax; syscall;")
LOOP(getpid_call, "mov $39, %%eax; syscall;")
LOOP(interrupt, "mov $-1, %%eax; int $0x80;")

static uint64_t count(uint64_t (*loop)(uint64_t))
{
	uint64_t samples[SAMPLES], best = 0;
	int most = 0;

	for (int i = -WARM_UP; i < SAMPLES; i++) {
		uint64_t one = loop(OPERATIONS), two = loop(2 * OPERATIONS);

		if (i >= 0)
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
	/* A figure that is no whole number of instructions would be wrong: it is shown as 0. */
	return best % OPERATIONS ? 0 : best / OPERATIONS - OF_LOOP;
}

int main(void)
{
	uint64_t syscall = count(refused), getpid = count(getpid_call), int80 = count(interrupt);

	printf("counts: syscall=%llu getpid=%llu int80=%llu\n", (unsigned long long)syscall, (unsigned long long)getpid,
	       (unsigned long long)int80);
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	return 1;
}
