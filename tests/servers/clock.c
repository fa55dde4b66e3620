/* Shifts the wall clock of a process by CLOCK_AHEAD_S seconds; loaded by LD_PRELOAD.
 *
 * A file of eight bytes that CLOCK_AHEAD_FILE names holds further seconds. A test may change it at
 * any time, and the clock jumps.
 *
 * Only what tells the time of day is shifted. Monotonic clocks, sleeps and time-outs go on as they
 * are, so nothing waits longer. Children inherit it with their environment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead_s;
static const volatile int64_t *jump_s;

__attribute__((constructor)) static void read_offset(void) {
    const char *given = getenv("CLOCK_AHEAD_S");
    ahead_s = given ? atol(given) : 0;
    const char *path = getenv("CLOCK_AHEAD_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *found = mmap(0, sizeof *jump_s, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED)
        jump_s = found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += ahead_s + (jump_s ? *jump_s : 0);
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found))
        return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *kept) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (kept)
        *kept = found.tv_sec;
    return found.tv_sec;
}
