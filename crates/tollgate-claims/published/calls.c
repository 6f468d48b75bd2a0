/* An instruction an iteration: SYSCALL with 27h in RAX, and INT 80h with 27h in RAX. INT 80h has the numbers of the 32-bit table, in which 27h
   is mkdir: it takes what EBX happens to point to for a path.
   GETPID int 80h with 14h, which is getpid there
   PINNED the program is bound to a processor
   WARMED a tenth of the iterations before the time begins */
#include "figures.h"

#define ITERATIONS 20000
#ifdef GETPID
#define NUMBER 0x14
#else
#define NUMBER 0x27
#endif

/* The published assembly names no clobbers; without them a compiler may keep values in RCX and R11, which SYSCALL writes. */
static inline long by_syscall(void)
{
    long result = 0x27;
    __asm__ volatile("syscall" : "+a"(result)::"rcx", "r11", "memory");
    return result;
}

static inline long by_interrupt(void)
{
    long result = NUMBER;
    __asm__ volatile("int $128" : "+a"(result)::"r8", "r9", "r10", "r11", "memory");
    return result;
}

#define TIME(name, call) \
    static double name(void) \
    { \
        double began = now_ns(); \
        for (int n = 0; n < ITERATIONS; n++) \
            call(); \
        return (now_ns() - began) / ITERATIONS; \
    }

TIME(syscalls, by_syscall)
TIME(interrupts, by_interrupt)

int main(void)
{
#ifdef PINNED
    pin(0);
#endif
#ifdef WARMED
    for (int n = 0; n < ITERATIONS / 10; n++)
        by_syscall(), by_interrupt();
#endif
    say("syscall", syscalls());
    say("int80", interrupts());
    return 0;
}
