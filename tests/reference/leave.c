/* Executes its first argument with those behind it, or ends: the program that the loops of process creation start. With -DBARE it has no
 * C library (-nostdlib) and only ends. */
#ifdef BARE

void _start(void)
{
    /* exit_group */
#ifdef __aarch64__
    __asm__ volatile("mov x8, 94; mov x0, 0; svc 0");
#else
    __asm__ volatile("syscall" ::"a"(231), "D"(0));
#endif
    __builtin_unreachable();
}

#else

#include <unistd.h>

int main(int count, char **arguments)
{
    char *nothing[] = { 0 };
    if (count < 2)
        return 0;
    execve(arguments[1], arguments + 1, nothing);
    return 126;
}

#endif
