/*
 * tollgate.h: the system calls of the kernel of `tollgate lab --program`.
 *
 * Each call comes four times: tg_syscall, tg_sysenter, tg_int80 and tg_gate (a far call) enter the kernel by the instruction that they are
 * named after. The calls below them, such as tg_write, use SYSCALL. Build for the general registers only:
 *
 *   cc -O2 -mgeneral-regs-only -ffreestanding -fno-stack-protector -fno-pie -fcf-protection=none -nostdlib -static -no-pie \
 *      -Wl,-Ttext-segment=0x40000000,--build-id=none -o hello hello.c
 *
 * The program begins at _start, with the number of --argument in the first argument. See docs/lab.md.
 */
#ifndef TOLLGATE_H
#define TOLLGATE_H

enum tg_call {
    TG_EXIT, TG_WRITE, TG_TIME, TG_YIELD, TG_SPAWN, TG_WAIT, TG_SELF, TG_MAP, TG_UNMAP, TG_LOCK, TG_NULL, TG_TEST_AND_SET, TG_IOPL,
    TG_SLEEP
};

/* What a page may be used for: tg_map. */
enum { TG_EXECUTE = 1, TG_MAY_WRITE = 2, TG_READ = 4 };

/* Errors: the negative numbers of errno(3) on Linux. */
enum {
    TG_EPERM = 1, TG_ESRCH = 3, TG_EAGAIN = 11, TG_ENOMEM = 12, TG_EFAULT = 14, TG_EBUSY = 16, TG_EEXIST = 17, TG_ENODEV = 19,
    TG_EINVAL = 22, TG_ENOSPC = 28, TG_EDEADLK = 35, TG_ENOSYS = 38
};

/* SYSCALL: RCX has the address to come back to, R11 the flags. */
static inline long tg_syscall(long call, long a, long b, long c)
{
    register long third __asm__("r8") = c;
    __asm__ volatile("syscall" : "+a"(call) : "D"(a), "S"(b), "r"(third) : "rcx", "r11", "memory");
    return call;
}

/* SYSENTER keeps nothing: the kernel comes back to RDX, with the stack of RCX. */
static inline long tg_sysenter(long call, long a, long b, long c)
{
    register long third __asm__("r8") = c;
    __asm__ volatile("mov %%rsp, %%rcx\n\tlea 1f(%%rip), %%rdx\n\tsysenter\n1:"
                     : "+a"(call) : "D"(a), "S"(b), "r"(third) : "rcx", "rdx", "memory");
    return call;
}

/* A gate of the interrupt descriptor table. */
static inline long tg_int80(long call, long a, long b, long c)
{
    register long third __asm__("r8") = c;
    __asm__ volatile("int $0x80" : "+a"(call) : "D"(a), "S"(b), "r"(third) : "memory");
    return call;
}

/* A call gate: the offset of the far pointer does not count. */
static inline long tg_gate(long call, long a, long b, long c)
{
    static const struct { unsigned offset; unsigned short selector; } __attribute__((packed)) gate = { 0, 0x53 };
    register long third __asm__("r8") = c;
    __asm__ volatile("lcall *%1" : "+a"(call) : "m"(gate), "D"(a), "S"(b), "r"(third) : "memory");
    return call;
}

/* Ends this thread of control. The program ends with its last one; its status is that of its first. */
static inline void __attribute__((noreturn)) tg_exit(long status)
{
    for (;;)
        tg_syscall(TG_EXIT, status, 0, 0);
}

/* Writes to standard output; how many bytes. */
static inline long tg_write(const void *text, unsigned long bytes)
{
    return tg_syscall(TG_WRITE, (long)text, (long)bytes, 0);
}

/* Ticks of the time-stamp counter since the machine began, less those of writing. Where instructions are counted, a tick is one. */
static inline long tg_time(void) { return tg_syscall(TG_TIME, 0, 0, 0); }

/* The next thread's turn. */
static inline void tg_yield(void) { tg_syscall(TG_YIELD, 0, 0, 0); }

/* A thread of control that begins at entry, with the argument in its first argument, on a stack that ends at stack; its number. entry must
 * not return: it calls tg_exit. stack is a multiple of 16. */
static inline long tg_spawn(void (*entry)(long), long argument, void *stack)
{
    /* A function expects the stack as a call leaves it. */
    return tg_syscall(TG_SPAWN, (long)entry, argument, (long)((char *)stack - 8));
}

/* Waits until a thread has ended; its status. */
static inline long tg_wait(long number) { return tg_syscall(TG_WAIT, number, 0, 0); }

/* The number of this thread: 0 is the program's first. */
static inline long tg_self(void) { return tg_syscall(TG_SELF, 0, 0, 0); }

/* Pages of zeros at an address from 40000000h to 80000000h, and none there any more. */
static inline long tg_map(void *at, long pages, long rights) { return tg_syscall(TG_MAP, (long)at, pages, rights); }
static inline long tg_unmap(void *at, long pages) { return tg_syscall(TG_UNMAP, (long)at, pages, 0); }

/* Pages that are there stay where they are. */
static inline long tg_lock(void *at, long pages) { return tg_syscall(TG_LOCK, (long)at, pages, 0); }

/* Sets a word to 1 and returns what it was; nothing comes between the two. */
static inline long tg_test_and_set(int *word) { return tg_syscall(TG_TEST_AND_SET, (long)word, 0, 0); }

/*
 * The same in ring 3, by the kernel's page, with --test-and-set. The kernel restarts it after a loss of the processor; R15 is the kernel's:
 * build with -ffixed-r15. A function without calls may keep values in the 128 bytes below its stack.
 */
static inline long tg_page_test_and_set(int *word)
{
    long was = 0x3ffff000;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tcall *%0\n\tlea 128(%%rsp), %%rsp" : "+a"(was) : "D"(word) : "cc", "memory");
    return was;
}

/* The I/O privilege level, 0 to 3, with --iopl: with 3 the program may use CLI and STI. */
static inline long tg_iopl(long level) { return tg_syscall(TG_IOPL, level, 0, 0); }

/* Sleeps for so many ticks of the timer. */
static inline long tg_sleep(long ticks) { return tg_syscall(TG_SLEEP, ticks, 0, 0); }

#endif
