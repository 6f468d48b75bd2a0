/* The four entries of the kernel: the empty call by each of them, and the ticks of it. */
#include "tollgate.h"

#define TIMES 1000

static void print(const char *text)
{
    unsigned long bytes = 0;
    while (text[bytes])
        bytes++;
    tg_write(text, bytes);
}

static void print_number(long number, int columns)
{
    char digits[24], *at = digits + sizeof digits;
    do {
        *--at = '0' + number % 10;
        number /= 10;
    } while (number);
    while (digits + sizeof digits - at < columns)
        *--at = ' ';
    tg_write(at, digits + sizeof digits - at);
}

/* Ticks of TIMES calls, with the loop around them. */
#define LOOP(call)                                                                                 \
    ({                                                                                             \
        long began = tg_time();                                                                    \
        for (int i = 0; i < TIMES; i++)                                                            \
            call;                                                                                  \
        tg_time() - began;                                                                         \
    })

static void row(const char *name, long ticks)
{
    print(name);
    print_number(ticks / TIMES, 8);
    print("\n");
}

void _start(void)
{
    long empty = LOOP(__asm__ volatile(""));
    print("entry       ticks\n");
    row("syscall  ", LOOP(tg_syscall(TG_NULL, 0, 0, 0)) - empty);
    row("sysenter ", LOOP(tg_sysenter(TG_NULL, 0, 0, 0)) - empty);
    row("int 80h  ", LOOP(tg_int80(TG_NULL, 0, 0, 0)) - empty);
    row("call gate", LOOP(tg_gate(TG_NULL, 0, 0, 0)) - empty);
    tg_exit(0);
}
