/*
 * Loaded with LD_PRELOAD into a command: counts the calls that change the file system below one directory, and at the
 * one with a given number kills the process, or fails it with an error of the system.
 *
 *   OPMATE_TEST_FAULT_BELOW  directory, absolute and without links; calls elsewhere are neither counted nor changed
 *   OPMATE_TEST_FAULT_AT     number of the call, from 1; 0 or unset: count only
 *   OPMATE_TEST_FAULT_KIND   kill | ENOSPC | EIO, of the one call; ENOSPC+ | EIO+ of it and every later call that needs space
 *   OPMATE_TEST_FAULT_LOG    file for a line per call; outside of the directory
 *
 * Node's own file functions reach libc by these names (libuv calls the functions, not the system calls), sqlite too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *below;
static size_t below_length;
static long at;
static int error_code;
static int kills;
static int persists;
static int log_file = -1;
static long calls;

static void read_settings(void) {
  below = getenv("OPMATE_TEST_FAULT_BELOW");
  below_length = below == NULL ? 0 : strlen(below);
  const char *number = getenv("OPMATE_TEST_FAULT_AT");
  at = number == NULL ? 0 : atol(number);
  const char *kind = getenv("OPMATE_TEST_FAULT_KIND");
  if (kind != NULL) {
    kills = strcmp(kind, "kill") == 0;
    if (strncmp(kind, "ENOSPC", 6) == 0) error_code = ENOSPC;
    if (strncmp(kind, "EIO", 3) == 0) error_code = EIO;
    persists = kind[strlen(kind) - 1] == '+';
  }
  const char *file = getenv("OPMATE_TEST_FAULT_LOG");
  if (file != NULL) log_file = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static int is_below(const char *path) {
  pthread_once(&once, read_settings);
  if (below == NULL || path == NULL) return 0;
  char full[PATH_MAX * 2];
  if (path[0] != '/') {
    char here[PATH_MAX];
    if (syscall(SYS_getcwd, here, sizeof here) < 0) return 0;
    snprintf(full, sizeof full, "%s/%s", here, path);
    path = full;
  }
  return strncmp(path, below, below_length) == 0 && (path[below_length] == '/' || path[below_length] == 0);
}

static int is_descriptor_below(int descriptor, char *path, size_t size) {
  pthread_once(&once, read_settings);
  if (below == NULL) return 0;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return 0;
  path[length] = 0;
  /* Pipes and sockets have names without a slash. */
  return path[0] == '/' && is_below(path);
}

/* Returns whether the call fails, with errno set; does not return where it kills. */
static int meets_fault(const char *name, const char *path, int needs_space) {
  pthread_mutex_lock(&lock);
  long number = ++calls;
  if (log_file >= 0) {
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%ld %s %s\n", number, name, path == NULL ? "" : path);
    (void)!syscall(SYS_write, log_file, line, (size_t)length);
  }
  if (at > 0 && number == at && kills) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
  }
  pthread_mutex_unlock(&lock);
  if (error_code == 0 || at <= 0) return 0;
  /* A full disk refuses what needs space, and nothing else. */
  if (number == at ? error_code == EIO || needs_space : persists && number > at && needs_space) {
    errno = error_code;
    return 1;
  }
  return 0;
}

#define REAL(name, ...) typedef __typeof__(__VA_ARGS__) real_type; static real_type real; if (real == NULL) real = (real_type)dlsym(RTLD_NEXT, name)

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define OPEN(name)                                                                                    \
  int name(const char *path, int flags, ...) {                                                        \
    REAL(#name, int (*)(const char *, int, ...));                                                     \
    mode_t mode = 0;                                                                                  \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); } \
    if (writes(flags) && is_below(path) && meets_fault("open", path, flags & O_CREAT)) return -1;     \
    return real(path, flags, mode);                                                                   \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                  \
  int name(int directory, const char *path, int flags, ...) {                                         \
    REAL(#name, int (*)(int, const char *, int, ...));                                                \
    mode_t mode = 0;                                                                                  \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); } \
    if (directory == AT_FDCWD && writes(flags) && is_below(path) && meets_fault("open", path, flags & O_CREAT)) return -1; \
    return real(directory, path, flags, mode);                                                        \
  }
OPENAT(openat)
OPENAT(openat64)

#define ON_DESCRIPTOR(result, name, label, space, parameters, arguments)                              \
  result name parameters {                                                                            \
    REAL(#name, result (*) parameters);                                                               \
    char path[PATH_MAX];                                                                              \
    if (is_descriptor_below(descriptor, path, sizeof path) && meets_fault(label, path, space)) return -1; \
    return real arguments;                                                                            \
  }
ON_DESCRIPTOR(ssize_t, write, "write", 1, (int descriptor, const void *bytes, size_t size), (descriptor, bytes, size))
ON_DESCRIPTOR(ssize_t, pwrite, "write", 1, (int descriptor, const void *bytes, size_t size, off_t offset), (descriptor, bytes, size, offset))
ON_DESCRIPTOR(ssize_t, pwrite64, "write", 1, (int descriptor, const void *bytes, size_t size, off64_t offset), (descriptor, bytes, size, offset))
ON_DESCRIPTOR(ssize_t, writev, "write", 1, (int descriptor, const struct iovec *parts, int count), (descriptor, parts, count))
ON_DESCRIPTOR(ssize_t, pwritev, "write", 1, (int descriptor, const struct iovec *parts, int count, off_t offset), (descriptor, parts, count, offset))
ON_DESCRIPTOR(ssize_t, pwritev64, "write", 1, (int descriptor, const struct iovec *parts, int count, off64_t offset), (descriptor, parts, count, offset))
ON_DESCRIPTOR(int, fsync, "fsync", 1, (int descriptor), (descriptor))
ON_DESCRIPTOR(int, fdatasync, "fsync", 1, (int descriptor), (descriptor))
ON_DESCRIPTOR(int, ftruncate, "truncate", 1, (int descriptor, off_t size), (descriptor, size))
ON_DESCRIPTOR(int, ftruncate64, "truncate", 1, (int descriptor, off64_t size), (descriptor, size))
ON_DESCRIPTOR(int, fchmod, "chmod", 0, (int descriptor, mode_t mode), (descriptor, mode))

ssize_t copy_file_range(int from, off64_t *from_offset, int descriptor, off64_t *offset, size_t size, unsigned flags) {
  REAL("copy_file_range", ssize_t (*)(int, off64_t *, int, off64_t *, size_t, unsigned));
  char path[PATH_MAX];
  if (is_descriptor_below(descriptor, path, sizeof path) && meets_fault("write", path, 1)) return -1;
  return real(from, from_offset, descriptor, offset, size, flags);
}

#define SENDFILE(name, offset_type)                                                                   \
  ssize_t name(int descriptor, int from, offset_type *offset, size_t size) {                          \
    REAL(#name, ssize_t (*)(int, int, offset_type *, size_t));                                        \
    char path[PATH_MAX];                                                                              \
    if (is_descriptor_below(descriptor, path, sizeof path) && meets_fault("write", path, 1)) return -1; \
    return real(descriptor, from, offset, size);                                                      \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define ON_PATH(name, label, space, parameters, arguments, path)                                      \
  int name parameters {                                                                               \
    REAL(#name, int (*) parameters);                                                                  \
    if (is_below(path) && meets_fault(label, path, space)) return -1;                                 \
    return real arguments;                                                                            \
  }
ON_PATH(rename, "rename", 0, (const char *from, const char *to), (from, to), to)
ON_PATH(link, "link", 1, (const char *from, const char *to), (from, to), to)
ON_PATH(symlink, "symlink", 1, (const char *from, const char *to), (from, to), to)
ON_PATH(unlink, "unlink", 0, (const char *file), (file), file)
ON_PATH(rmdir, "rmdir", 0, (const char *file), (file), file)
ON_PATH(mkdir, "mkdir", 1, (const char *file, mode_t mode), (file, mode), file)
ON_PATH(chmod, "chmod", 0, (const char *file, mode_t mode), (file, mode), file)

char *mkdtemp(char *template) {
  REAL("mkdtemp", char *(*)(char *));
  if (is_below(template) && meets_fault("mkdir", template, 1)) return NULL;
  return real(template);
}
