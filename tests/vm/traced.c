/*
 * The first process of a guest: it has tollgate trace this program as a command, whose calls are known. crates/tollgate/tests/trace_in_guest.rs
 * has the counts.
 *
 *     cc -static -O2 -pthread -o init traced.c
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 3, THREADS = 4, CALLS = 100000, CALLS_OF_THREAD = 1000, EXECS = 3, UNKNOWN = 5, INVALID = 4, OLD = 7, STATS = 6, GETPPID_OF_I386 = 64 };

static void *work(void *calls)
{
	for (long i = 0; i < (long)calls; i++)
		syscall(SYS_getppid);
	return NULL;
}

static void wait_for_all(void)
{
	while (wait(NULL) > 0)
		;
}

/* Processes and threads that take turns on the one processor. */
static void take_turns(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < PROCESSES; i++) {
		if (!fork()) {
			work((void *)CALLS);
			_exit(0);
		}
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)CALLS_OF_THREAD);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	wait_for_all();
}

/* Programs that are executed, and a process that is killed while it sleeps in a call. */
static void execute_and_kill(void)
{
	char byte;
	int ends[2];

	for (int i = 0; i < EXECS; i++) {
		if (!fork()) {
			execl("/init", "init", "nothing", (char *)NULL);
			_exit(1);
		}
	}
	wait_for_all();
	if (pipe(ends))
		_exit(1);
	int killed = fork();

	if (!killed) {
		if (write(ends[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	if (read(ends[0], &byte, 1) == 1)
		usleep(100000);
	kill(killed, SIGKILL);
	wait_for_all();
}

/* Numbers that are in no table, and on x86-64 the 32-bit table. */
static void call_by_number(void)
{
	for (int i = 0; i < UNKNOWN; i++)
		syscall(1000);
	for (int i = 0; i < INVALID; i++)
		syscall(-1);
#ifdef __x86_64__
	long result;

	for (int i = 0; i < OLD; i++)
		__asm__ volatile("int $0x80" : "=a"(result) : "a"(GETPPID_OF_I386) : "memory");
#endif
}

/* A descriptor by an empty path, as the C library calls fstat(2). */
static void stat_descriptor(void)
{
	struct stat found;
	int file = open("/init", O_RDONLY);

	for (int i = 0; i < STATS; i++)
		syscall(SYS_newfstatat, file, "", &found, AT_EMPTY_PATH);
}

static void trace(const char *mark, char *option, char *what)
{
	printf("%s", mark);
	fflush(stdout);
	if (!fork()) {
		execl("/tollgate", "tollgate", "trace", "--format=json", option, "--", "/init", what, (char *)NULL);
		perror("stopped: /tollgate");
		_exit(1);
	}
	wait_for_all();
}

int main(int argc, char **argv)
{
	/* The kernel gives its first process the words of its command line that it does not know. */
	if (getpid() != 1) {
		if (argc > 1 && !strcmp(argv[1], "calls")) {
			take_turns();
			execute_and_kill();
			call_by_number();
		}
		if (argc > 1 && !strcmp(argv[1], "stats"))
			stat_descriptor();
		return 0;
	}
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/tmp", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		perror("stopped: mount");
	trace("traced: ", "--all", "calls");
	trace("only: ", "--only=execve", "calls");
	trace("files: ", "--by=file", "stats");
	trace("followed: ", "--backend=ptrace", "stats");
	reboot(RB_AUTOBOOT);
}
