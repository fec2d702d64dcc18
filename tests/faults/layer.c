/* Faults below Postgres, loaded before it by LD_PRELOAD: errors of writes and syncs, writes of half their length, writes
 * that a power failure loses, and a clock that is wrong. tests/faults/layer.py holds the other end.
 *
 * A file of 64 bit numbers, shared by all processes, says what fails. While `journal` is set, the bytes below each write
 * are kept, so that every write which no sync followed can be taken back as if the machine had lost its power. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SEQUENCE, JOURNAL, WRITE_FAULT, COUNTDOWN, WRITE_RATE, SYNC_RATE, CLOCK, SALT, INJECTED, WRITES, NUMBERS };
enum { WRITE = 1, SYNC, GONE };
#define SHORT (-1)

struct record {
    uint64_t sequence, kind, device, inode, offset, size, kept; /* size: of the file before the write */
    uint64_t length;
};

static _Atomic int64_t *control;
static char root[PATH_MAX], folder[PATH_MAX];
static int journal_file = -1;
static pid_t journal_process;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void open_control(void)
{
    const char *below = getenv("FAULTS_FOLDER"), *data = getenv("FAULTS_ROOT");
    char path[PATH_MAX + 16];
    if (!below || strlen(below) >= sizeof folder || (data && strlen(data) >= sizeof root))
        return;
    strcpy(folder, below);
    strcpy(root, data ? data : "");
    snprintf(path, sizeof path, "%s/control", folder);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    void *page = mmap(NULL, NUMBERS * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (page != MAP_FAILED)
        control = page;
}

/* Whether a descriptor is of a regular file of the data directory; then its state. */
static int concerned(int fd, struct stat *state)
{
    char link[32], path[PATH_MAX];
    if (!control || !root[0])
        return 0;
    if (fstat(fd, state) != 0 || !S_ISREG(state->st_mode))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    size_t below = strlen(root);
    return strncmp(path, root, below) == 0 && path[below] == '/';
}

/* A number below 10,000 that depends on the run and on how many were drawn before. */
static uint64_t draw(void)
{
    uint64_t x = (uint64_t)control[SALT] * 0x9e3779b97f4a7c15u + (uint64_t)atomic_fetch_add(&control[SEQUENCE], 1);
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % 10000;
}

/* The fault of this write: 0, SHORT or an errno. */
static int64_t write_fault(void)
{
    atomic_fetch_add(&control[WRITES], 1);
    int64_t fault = control[WRITE_FAULT];
    int due = control[COUNTDOWN] > 0 && atomic_fetch_sub(&control[COUNTDOWN], 1) == 1;
    if (!fault || !(due || (int64_t)draw() < control[WRITE_RATE]))
        return 0;
    atomic_fetch_add(&control[INJECTED], 1);
    return fault;
}

static void note(struct record *record, const void *kept)
{
    pthread_mutex_lock(&journal_lock);
    if (journal_process != getpid()) { /* after a fork */
        char path[PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/journals/%d", folder, (int)getpid());
        journal_file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        journal_process = getpid();
    }
    struct iovec parts[2] = {{record, sizeof *record}, {(void *)kept, record->kept}};
    record->sequence = (uint64_t)atomic_fetch_add(&control[SEQUENCE], 1);
    if (journal_file >= 0 && syscall(SYS_writev, journal_file, parts, 2) < 0)
        abort(); /* a write that is not in the journal could not be taken back */
    pthread_mutex_unlock(&journal_lock);
}

/* Read what a write will replace. */
static char *below(int fd, const struct stat *state, off_t offset, size_t length, struct record *record)
{
    *record = (struct record){.kind = WRITE, .device = state->st_dev, .inode = state->st_ino, .offset = (uint64_t)offset,
                              .size = (uint64_t)state->st_size, .length = length};
    size_t kept = offset >= state->st_size ? 0 : (size_t)(state->st_size - offset);
    if (kept > length)
        kept = length;
    char *bytes = kept ? malloc(kept) : NULL;
    if (!bytes)
        return NULL;
    char link[32]; /* the descriptor may be open for writing alone */
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int again = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    ssize_t got = again < 0 ? -1 : (ssize_t)syscall(SYS_pread64, again, bytes, kept, offset);
    if (again >= 0)
        syscall(SYS_close, again);
    record->kept = got > 0 ? (uint64_t)got : 0;
    return bytes;
}

static ssize_t written(int fd, const struct iovec *parts, int count, off_t offset, int positioned)
{
    struct stat state;
    struct iovec first;
    if (!concerned(fd, &state))
        return positioned ? REAL(pwritev)(fd, parts, count, offset) : REAL(writev)(fd, parts, count);
    int64_t fault = write_fault();
    if (fault == SHORT && parts[0].iov_len > 1) {
        first = (struct iovec){parts[0].iov_base, parts[0].iov_len / 2};
        parts = &first;
        count = 1;
    } else if (fault > 0) {
        errno = (int)fault;
        return -1;
    }
    struct record record;
    char *kept = NULL;
    int noted = (int)control[JOURNAL];
    if (noted) {
        size_t length = 0;
        for (int i = 0; i < count; i++)
            length += parts[i].iov_len;
        off_t start = positioned ? offset : lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
        kept = below(fd, &state, start, length, &record);
    }
    ssize_t done = positioned ? REAL(pwritev)(fd, parts, count, offset) : REAL(writev)(fd, parts, count);
    if (noted && done > 0) {
        int saved = errno;
        record.length = (uint64_t)done;
        if (record.kept > record.length)
            record.kept = record.length;
        note(&record, kept);
        errno = saved;
    }
    free(kept);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    struct iovec part = {(void *)bytes, length};
    struct stat state;
    if (!control || !root[0] || !concerned(fd, &state))
        return REAL(write)(fd, bytes, length);
    return written(fd, &part, 1, 0, 0);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return written(fd, parts, count, 0, 0);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    struct iovec part = {(void *)bytes, length};
    return written(fd, &part, 1, offset, 1);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return written(fd, parts, count, offset, 1);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) __attribute__((alias("pwrite")));
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) __attribute__((alias("pwritev")));

static int synced(int fd, int (*sync)(int))
{
    struct stat state;
    if (!concerned(fd, &state))
        return sync(fd);
    if ((int64_t)draw() < control[SYNC_RATE]) {
        atomic_fetch_add(&control[INJECTED], 1);
        errno = EIO;
        return -1;
    }
    struct record record = {.kind = SYNC, .device = state.st_dev, .inode = state.st_ino,
                            .offset = (uint64_t)atomic_fetch_add(&control[SEQUENCE], 1)};
    int outcome = sync(fd);
    if (outcome == 0 && control[JOURNAL])
        note(&record, NULL);
    return outcome;
}

int fsync(int fd)
{
    return synced(fd, REAL(fsync));
}

int fdatasync(int fd)
{
    return synced(fd, REAL(fdatasync));
}

/* The system may give the number of a file that is gone to a new one. */
static void leaving(const char *path)
{
    struct stat state;
    if (!control || !root[0] || !control[JOURNAL] || lstat(path, &state) != 0 || !S_ISREG(state.st_mode) || state.st_nlink > 1)
        return;
    struct record record = {.kind = GONE, .device = state.st_dev, .inode = state.st_ino};
    note(&record, NULL);
}

int unlink(const char *path)
{
    leaving(path);
    return REAL(unlink)(path);
}

int rename(const char *from, const char *to)
{
    leaving(to);
    return REAL(rename)(from, to);
}

static void shift(struct timespec *at)
{
    int64_t nanoseconds = at->tv_nsec + (control ? control[CLOCK] % 1000000000 : 0);
    at->tv_sec += control ? control[CLOCK] / 1000000000 : 0;
    at->tv_sec += nanoseconds < 0 ? -1 : nanoseconds / 1000000000;
    at->tv_nsec = nanoseconds < 0 ? nanoseconds + 1000000000 : nanoseconds % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int outcome = (int)syscall(SYS_clock_gettime, clock, at);
    if (outcome == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(at);
    return outcome;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
