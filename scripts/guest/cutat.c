// SPDX-License-Identifier: GPL-2.0-only
/*
 * cutat: kills a program before the n-th of its system calls that change something.
 *
 * usage: cutat <n> <program> [arguments]...
 *
 * Calls that change something make, write, rename or remove a file, remove a module, or start
 * another program, which is not counted, nor killed. Prints which call it was, on stderr. The exit
 * status is 99 if the program was killed, else its own.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED	99

static const struct {
	unsigned long number;
	const char *name;
} calls[] = {
	{ SYS_fsync, "fsync" }, { SYS_rename, "rename" }, { SYS_renameat, "renameat" },
	{ SYS_renameat2, "renameat2" }, { SYS_unlink, "unlink" }, { SYS_unlinkat, "unlinkat" },
	{ SYS_mkdir, "mkdir" }, { SYS_mkdirat, "mkdirat" }, { SYS_ftruncate, "ftruncate" },
	{ SYS_delete_module, "delete_module" }, { SYS_clone, "clone" }, { SYS_clone3, "clone3" },
	{ SYS_vfork, "vfork" }, { 0, NULL },
};

/* Return: its name, or NULL. */
static const char *changes(const struct __ptrace_syscall_info *info)
{
	size_t i;

	if (info->entry.nr == SYS_openat)
		return info->entry.args[2] & O_CREAT ? "openat" : NULL;
	if (info->entry.nr == SYS_write)
		return info->entry.args[0] > STDERR_FILENO ? "write" : NULL;
	for (i = 0; calls[i].name; i++)
		if (info->entry.nr == calls[i].number)
			return calls[i].name;
	return NULL;
}

/* Return: whether the program stands before a call that changes something. */
static const char *next_change(pid_t pid)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return NULL;
	return changes(&info);
}

static int cut(pid_t pid, long n)
{
	const char *name;
	int status, sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, sig) || waitpid(pid, &status, 0) != pid)
			return 1;
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		/* A signal of its own is passed on, but not the event of having started. */
		sig = status >> 16 ? 0 : WSTOPSIG(status);
		if (sig != (SIGTRAP | 0x80))
			continue;
		sig = 0;
		name = next_change(pid);
		if (!name || --n)
			continue;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		fprintf(stderr, "killed before %s\n", name);
		return KILLED;
	}
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 3)
		return 2;
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)) {
		perror("cutat");
		return 1;
	}
	return cut(pid, atol(argv[1]));
}
