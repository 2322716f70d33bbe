/* Promise: the process into which this library is preloaded reads a wall clock that is ahead of the
 * machine's by the number of microseconds which stands in the file KHEYA_FAULTS_CLOCK (a native
 * 64-bit integer; negative is behind); or, when the integer behind it is not zero, one that stands
 * still at that many microseconds of Unix time. The file is mapped, so a write to it moves the clock
 * at once and costs the process nothing. Monotonic clocks are left alone, as a real clock step
 * leaves them.
 *
 * Only raw system calls: dlsym() allocates, and Debian's Redis allocates through jemalloc, which
 * reads the clock while it starts. Before the file is mapped the offset is zero. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *offset_us; /* and stands_at_us behind it */

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("KHEYA_FAULTS_CLOCK");
  if (!path) return;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *mapped = mmap(NULL, 2 * sizeof *offset_us, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) offset_us = mapped;
}

static int is_wall(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int answer = (int)syscall(SYS_clock_gettime, clock, time);
  if (answer != 0 || !offset_us || !is_wall(clock)) return answer;
  int64_t stands_at_us = __atomic_load_n(offset_us + 1, __ATOMIC_RELAXED);
  if (stands_at_us != 0) {
    time->tv_sec = stands_at_us / 1000000;
    time->tv_nsec = stands_at_us % 1000000 * 1000;
    return 0;
  }
  int64_t us = __atomic_load_n(offset_us, __ATOMIC_RELAXED);
  int64_t ns = time->tv_nsec + us % 1000000 * 1000;
  time->tv_sec += us / 1000000;
  if (ns < 0) {
    ns += 1000000000;
    time->tv_sec -= 1;
  } else if (ns >= 1000000000) {
    ns -= 1000000000;
    time->tv_sec += 1;
  }
  time->tv_nsec = ns;
  return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *told) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (told) *told = now.tv_sec;
  return now.tv_sec;
}
