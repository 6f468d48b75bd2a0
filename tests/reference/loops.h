/* Reference loops: the operation of a case of tollgate, written once more in C. They share no code with it.
 *
 * A file of a suite has an operation for each of its cases, and a table that names the case, says what a stretch of the loop finds
 * (caches, allocators, other threads), and has what must be done before and after a stretch. loops.c times them.
 */
#ifndef LOOPS_H
#define LOOPS_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Takes one of two spellings by the architecture. */
#ifdef __aarch64__
#define ON(x86, arm64) arm64
#else
#define ON(x86, arm64) x86
#endif

#define INLINE static inline __attribute__((always_inline))
#define APART __attribute__((noinline, noclone))

/* Defines an operation `id` and its two loops: `id_calls` has a function around each operation, so that a call precedes it and a return
 * follows it, as in a program; `id_inline` has neither. */
#define OPERATION(id)                                                                                                              \
    INLINE void id(void);                                                                                                          \
    static APART void id##_called(void)                                                                                            \
    {                                                                                                                              \
        id();                                                                                                                      \
        __asm__ volatile("");                                                                                                      \
    }                                                                                                                              \
    static void id##_calls(long n)                                                                                                 \
    {                                                                                                                              \
        while (n--)                                                                                                                \
            id##_called();                                                                                                         \
    }                                                                                                                              \
    static void id##_inline(long n)                                                                                                \
    {                                                                                                                              \
        while (n--) {                                                                                                              \
            id();                                                                                                                  \
            __asm__ volatile("");                                                                                                  \
        }                                                                                                                          \
    }                                                                                                                              \
    INLINE void id(void)

struct loop {
    const char *name;      /* the case of tollgate */
    const char *state;     /* what a stretch finds */
    void (*calls)(long n); /* n operations */
    void (*straight)(long n);
    void (*prepare)(void);      /* once */
    void (*before)(long n);     /* before a stretch of n, not timed */
    void (*after)(long n);      /* behind it, not timed */
    long most;                  /* operations of a stretch; 0: as many as fill its time */
    double each;                /* operations of tollgate in one of these; 0: 1 */
    int is_user_code;           /* the inline loop is what is compared, as tollgate's has no call around the operation */
    int is_chain;               /* each operation waits for the one before it, so that the loop around them takes no time of its own */
    double (*itself)(long *n);  /* times itself: nanoseconds of n operations */
};

/* A row of the operation `id`. */
#define ROW(name, id, state, ...) { name, state, id##_calls, id##_inline, __VA_ARGS__ }
#define END { 0 }

/* What the tables may use. */
extern const char *directory; /* for files */
extern const char *leaver;    /* a program that ends with 0, or executes its first argument; beside it `-bare`, without a C library */
extern int is_lost;           /* set where the stretch does not count: a partner did not run */
extern int home, other;       /* the processor of the loop, and another one; other is -1 where there is none */

_Noreturn void die(const char *what);
_Noreturn void skip(const char *why);
void pin(int cpu);
double now(void); /* nanoseconds of CLOCK_MONOTONIC */
/* Starts a thread that sleeps until the end: descriptors and memory are then shared, as in a program with threads. */
void become_threaded(void);
/* Runs `body` in a thread, or in a child, on this processor. It ends with the program. */
void in_thread(int cpu, void (*body)(void));
void in_child(int cpu, void (*body)(void));

/* A system call: its result, or a negative error number. */
INLINE long sys(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __aarch64__
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#endif
}

/* One of which none of the six registers of arguments is set: the kernel looks at none. */
INLINE void sys_bare(long number)
{
#ifdef __aarch64__
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0");
    __asm__ volatile("svc 0" : "=r"(x0) : "r"(x8) : "memory");
#else
    __asm__ volatile("syscall" : "+a"(number)::"rcx", "r11", "memory");
#endif
}

#define sys0(n) sys(n, 0, 0, 0, 0, 0, 0)
#define sys1(n, a) sys(n, (long)(a), 0, 0, 0, 0, 0)
#define sys2(n, a, b) sys(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define sys3(n, a, b, c) sys(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys4(n, a, b, c, d) sys(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* Ends the program where an operation did not do what it should. */
#define must(condition) (__builtin_expect(!(condition), 0) ? die(#condition) : (void)0)

#define PAGE 4096L

#endif
