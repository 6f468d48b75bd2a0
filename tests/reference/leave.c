/* Executes its first argument with those behind it, or ends: the program that the loops of process creation start. */
#include <unistd.h>

int main(int count, char **arguments)
{
    char *nothing[] = { 0 };
    if (count < 2)
        return 0;
    execve(arguments[1], arguments + 1, nothing);
    return 126;
}
