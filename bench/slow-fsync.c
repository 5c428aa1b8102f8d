/* A slow disk: every wait for the disk takes 2 ms more. Preloaded into the database's server, and into nothing else.
   The extra time comes behind the real wait, so what was acknowledged is as durable as without it. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int slowly(long result)
{
    int error = errno;
    struct timespec rest = {0, 2000000};
    while (nanosleep(&rest, &rest) != 0)
        ;
    errno = error;
    return (int)result;
}

int fsync(int file)
{
    return slowly(syscall(SYS_fsync, file));
}

int fdatasync(int file)
{
    return slowly(syscall(SYS_fdatasync, file));
}
