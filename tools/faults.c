/* System calls that fail, for tools/exhaustive_faults.py: preloaded into the program under test.
 *
 * Counts the calls of the C library on files under one folder and lets the chosen one fail. Every call asks
 * `chosen` first, by path or by the path that /proc gives for a descriptor. Linux with glibc only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum mode { OFF, COUNT, IO_ERROR, DISK_GONE, DISK_FULL, KILL, TORN };
enum need { NO_ROOM, ROOM, BYTES }; /* whether a call takes room on the disk, and whether it writes bytes */

static char folder[PATH_MAX];
static size_t folder_length;
static int mode = OFF;
static long seen, target;
static int has_fired;
static char record[1 << 16];
static size_t recorded;

/* ── what the program under test calls through ctypes ── */

void faults_arm(const char *path, int how, long at) {
    folder_length = strlen(path);
    memcpy(folder, path, folder_length + 1);
    target = at;
    seen = has_fired = 0;
    recorded = 0;
    record[0] = 0;
    mode = how;
}

int faults_disarm(void) {
    mode = OFF;
    return has_fired;
}

/* One line for each call that was counted: its need, its name, the file's path under the folder. */
const char *faults_record(void) { return record; }

/* ── the choice ── */

static int is_inside(const char *path) {
    char whole[PATH_MAX];
    if (path[0] != '/') {
        if (syscall(SYS_getcwd, whole, sizeof whole) < 0) return 0;
        size_t length = strlen(whole);
        if (length + strlen(path) + 2 > sizeof whole) return 0;
        whole[length] = '/';
        strcpy(whole + length + 1, path);
        path = whole;
    }
    if (strncmp(path, folder, folder_length) != 0) return 0;
    return path[folder_length] == '/' || path[folder_length] == 0;
}

static const char *path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return path;
}

static void note(const char *name, const char *path, enum need need) {
    const char *last = strrchr(path, '/');
    size_t left = sizeof record - recorded;
    int length = snprintf(record + recorded, left, "%d %s %s\n", need, name, last ? last + 1 : path);
    if (length > 0 && (size_t)length < left) recorded += (size_t)length;
}

/* Whether this call is to fail: 0 or an error number. Does not return if the program is to die here; a torn write
 * dies later, in the write itself. */
static int chosen(const char *name, const char *path, enum need need) {
    if (mode == OFF || !is_inside(path)) return 0;
    seen++;
    if (mode == COUNT) note(name, path, need);
    if (mode == COUNT || seen < target) return 0;
    if (mode == DISK_GONE || (mode == IO_ERROR && seen == target)) {
        has_fired = 1;
        return EIO;
    }
    if (mode == DISK_FULL && need != NO_ROOM) {
        has_fired = 1;
        return ENOSPC;
    }
    if (mode == KILL) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    return 0;
}

static int chosen_file(const char *name, int descriptor, enum need need) {
    char path[PATH_MAX];
    int before = errno, error = mode == OFF ? 0 : chosen(name, path_of(descriptor, path), need);
    errno = before;
    return error;
}

static int is_torn_here(void) { return mode == TORN && seen == target; }

static void die(void) { syscall(SYS_kill, syscall(SYS_getpid), SIGKILL); }

#define REAL(type, name, ...)                                                   \
    static type (*real)(__VA_ARGS__);                                           \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define FAIL(error)                                                             \
    do {                                                                        \
        errno = (error);                                                        \
        return -1;                                                              \
    } while (0)

#define ON_FILE(name, file, need)                                                   \
    do {                                                                        \
        int error = chosen_file(name, file, need);                              \
        if (error) FAIL(error);                                                 \
    } while (0)

#define ON_PATH(name, path, need)                                               \
    do {                                                                        \
        int error = chosen(name, path, need);                                   \
        if (error) FAIL(error);                                                 \
    } while (0)

/* ── opening and closing ── */

/* O_TMPFILE holds O_DIRECTORY's bit too, which alone creates nothing. */
#define CREATES(flags) (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE)
#define MAY_CREATE(flags) (CREATES(flags) ? ROOM : NO_ROOM)
#define MODE_OF(flags)                                                          \
    mode_t permissions = 0;                                                     \
    if (CREATES(flags)) {                                      \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        permissions = va_arg(rest, mode_t);                                     \
        va_end(rest);                                                           \
    }

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...) {                                \
        REAL(int, name, const char *, int, ...);                                \
        MODE_OF(flags)                                                          \
        ON_PATH("open", path, MAY_CREATE(flags));                \
        return real(path, flags, permissions);                                  \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                            \
    int name(int at, const char *path, int flags, ...) {                        \
        REAL(int, name, int, const char *, int, ...);                           \
        MODE_OF(flags)                                                          \
        if (at == AT_FDCWD || path[0] == '/')                                   \
            ON_PATH("open", path, MAY_CREATE(flags));            \
        return real(at, path, flags, permissions);                              \
    }
OPENAT(openat)
OPENAT(openat64)

int close(int descriptor) {
    REAL(int, close, int);
    int error = chosen_file("close", descriptor, NO_ROOM);
    int result = real(descriptor); /* Linux lets go of a descriptor even where close fails */
    if (error) FAIL(error);
    return result;
}

/* ── reading and writing ── */

ssize_t read(int descriptor, void *data, size_t size) {
    REAL(ssize_t, read, int, void *, size_t);
    ON_FILE("read", descriptor, NO_ROOM);
    return real(descriptor, data, size);
}

#define PREAD(name, offset)                                                     \
    ssize_t name(int descriptor, void *data, size_t size, offset at) {          \
        REAL(ssize_t, name, int, void *, size_t, offset);                       \
        ON_FILE("pread", descriptor, NO_ROOM);                                  \
        return real(descriptor, data, size, at);                                \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

ssize_t write(int descriptor, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    ON_FILE("write", descriptor, BYTES);
    if (is_torn_here()) real(descriptor, data, size / 2), die();
    return real(descriptor, data, size);
}

#define PWRITE(name, offset)                                                    \
    ssize_t name(int descriptor, const void *data, size_t size, offset at) {    \
        REAL(ssize_t, name, int, const void *, size_t, offset);                 \
        ON_FILE("pwrite", descriptor, BYTES);                                   \
        if (is_torn_here()) real(descriptor, data, size / 2, at), die();        \
        return real(descriptor, data, size, at);                                \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* ── sizes, syncs and locks ── */

#define SIMPLE(name, shown, need)                                               \
    int name(int descriptor) {                                                  \
        REAL(int, name, int);                                                   \
        ON_FILE(shown, descriptor, need);                                       \
        return real(descriptor);                                                \
    }
SIMPLE(fsync, "fsync", NO_ROOM)
SIMPLE(fdatasync, "fdatasync", NO_ROOM)

#define FTRUNCATE(name, offset)                                                 \
    int name(int descriptor, offset size) {                                     \
        REAL(int, name, int, offset);                                           \
        ON_FILE("ftruncate", descriptor, NO_ROOM);                              \
        return real(descriptor, size);                                          \
    }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

#define FALLOCATE(name, offset)                                                 \
    int name(int descriptor, offset at, offset size) {                          \
        REAL(int, name, int, offset, offset);                                   \
        int error = chosen_file("fallocate", descriptor, ROOM);                 \
        return error ? error : real(descriptor, at, size);                      \
    }
FALLOCATE(posix_fallocate, off_t)
FALLOCATE(posix_fallocate64, off64_t)

int flock(int descriptor, int operation) {
    REAL(int, flock, int, int);
    ON_FILE("flock", descriptor, NO_ROOM);
    return real(descriptor, operation);
}

#define FCNTL(name)                                                             \
    int name(int descriptor, int command, ...) {                                \
        REAL(int, name, int, int, ...);                                         \
        va_list rest;                                                           \
        va_start(rest, command);                                                \
        void *argument = va_arg(rest, void *);                                  \
        va_end(rest);                                                           \
        if (command == F_SETLK || command == F_SETLKW || command == F_GETLK)    \
            ON_FILE("lock", descriptor, NO_ROOM);                               \
        return real(descriptor, command, argument);                             \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

/* ── names ── */

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    ON_PATH("unlink", path, NO_ROOM);
    return real(path);
}

int unlinkat(int at, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    if (at == AT_FDCWD || path[0] == '/') ON_PATH("unlink", path, NO_ROOM);
    return real(at, path, flags);
}

int link(const char *path, const char *other) {
    REAL(int, link, const char *, const char *);
    ON_PATH("link", path, ROOM);
    return real(path, other);
}

int linkat(int at, const char *path, int other_at, const char *other, int flags) {
    REAL(int, linkat, int, const char *, int, const char *, int);
    if (at == AT_FDCWD || path[0] == '/') ON_PATH("link", path, ROOM);
    return real(at, path, other_at, other, flags);
}

int rename(const char *path, const char *other) {
    REAL(int, rename, const char *, const char *);
    ON_PATH("rename", path, ROOM);
    return real(path, other);
}

int renameat(int at, const char *path, int other_at, const char *other) {
    REAL(int, renameat, int, const char *, int, const char *);
    if (at == AT_FDCWD || path[0] == '/') ON_PATH("rename", path, ROOM);
    return real(at, path, other_at, other);
}

int chmod(const char *path, mode_t permissions) {
    REAL(int, chmod, const char *, mode_t);
    ON_PATH("chmod", path, NO_ROOM);
    return real(path, permissions);
}

int fchmod(int descriptor, mode_t permissions) {
    REAL(int, fchmod, int, mode_t);
    ON_FILE("fchmod", descriptor, NO_ROOM);
    return real(descriptor, permissions);
}

int fchown(int descriptor, uid_t owner, gid_t group) {
    REAL(int, fchown, int, uid_t, gid_t);
    ON_FILE("fchown", descriptor, NO_ROOM);
    return real(descriptor, owner, group);
}

int access(const char *path, int how) {
    REAL(int, access, const char *, int);
    ON_PATH("access", path, NO_ROOM);
    return real(path, how);
}

#define STAT(name, buffer)                                                      \
    int name(const char *path, struct buffer *found) {                          \
        REAL(int, name, const char *, struct buffer *);                         \
        ON_PATH("stat", path, NO_ROOM);                                         \
        return real(path, found);                                               \
    }
STAT(stat, stat)
STAT(lstat, stat)
STAT(stat64, stat64)
STAT(lstat64, stat64)

#define FSTAT(name, buffer)                                                     \
    int name(int descriptor, struct buffer *found) {                            \
        REAL(int, name, int, struct buffer *);                                  \
        ON_FILE("stat", descriptor, NO_ROOM);                                   \
        return real(descriptor, found);                                         \
    }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

#define FSTATAT(name, buffer)                                                   \
    int name(int at, const char *path, struct buffer *found, int flags) {       \
        REAL(int, name, int, const char *, struct buffer *, int);               \
        if (at == AT_FDCWD || path[0] == '/') ON_PATH("stat", path, NO_ROOM);   \
        return real(at, path, found, flags);                                    \
    }
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)
