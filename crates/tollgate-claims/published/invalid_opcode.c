/* Ten times an instruction between two readings of the time-stamp counter; the mean of ten runs, in ticks. The instruction is a
   multiplication, or f0 89 c8, which is invalid and made to mean a power: there by a kernel module, here by a handler of SIGILL.
   MLOCK_RIGHT   mlock(2) returns 0 where it succeeds
   WITHOUT_RDTSC two readings with nothing between them are subtracted
   FENCED        what was begun before a reading has ended at it (LFENCE)
   WARMED        the first run of the eleven is left out */
#include "figures.h"
#include <assert.h>
#include <sys/mman.h>
#include <ucontext.h>

#define RUNS 10

#ifdef WARMED
#define COLD 1
#else
#define COLD 0
#endif

#ifdef FENCED
#define READ "lfence; rdtsc; lfence;"
#else
#define READ "rdtsc;"
#endif

#define ONE(instruction) "mov $3, %%eax; mov $3, %%ecx;" instruction
#define TEN(x) x x x x x x x x x x
/* RDTSC; the instructions; RDTSC. */
#define TICKS(name, instructions) \
    static uint64_t name(void) \
    { \
        uint32_t low, high, then_low, then_high; \
        __asm__ volatile(READ "mov %%eax, %0; mov %%edx, %1;" instructions READ "mov %%eax, %2; mov %%edx, %3" \
                         : "=&r"(low), "=&r"(high), "=&r"(then_low), "=&r"(then_high)::"eax", "ecx", "edx", "cc", "memory"); \
        return ((uint64_t)then_high << 32 | then_low) - ((uint64_t)high << 32 | low); \
    }

TICKS(nothing, "")
TICKS(multiply, TEN(ONE("imul %%eax, %%ecx;")))
TICKS(power, TEN(ONE(".byte 0xf0, 0x89, 0xc8;")))

static volatile int traps;

static void emulate(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    greg_t result = 1;
    (void)signal, (void)info;
    for (greg_t n = registers[REG_RCX]; n > 0; n--)
        result *= registers[REG_RAX];
    registers[REG_RAX] = result;
    registers[REG_RIP] += 3;
    traps++;
}

static double mean(uint64_t (*of)(void))
{
    double sum = 0;
    for (int run = 0; run < COLD + RUNS; run++) {
        uint64_t ticks = of();
        sum += run < COLD ? 0 : ticks;
    }
    return sum / RUNS;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = emulate, .sa_flags = SA_SIGINFO};
    uintptr_t page = (uintptr_t)multiply & ~(uintptr_t)4095;
    setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef MLOCK_RIGHT
    assert(0 == mlock((void *)page, 4096));
#else
    assert(0 != mlock((void *)page, 4096));
#endif
    sigaction(SIGILL, &action, NULL);
    double imul = mean(multiply), trap = mean(power), without = 0;
    if (!traps)
        fail("f0 89 c8 is executed here without a trap, as by QEMU's translator", ENOTSUP);
#ifdef WITHOUT_RDTSC
    without = mean(nothing);
#else
    (void)nothing;
#endif
    say("imul", imul - without);
    say("trap", trap - without);
    return 0;
}
