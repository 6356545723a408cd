/* Calls native parts of models, by number, in memory shared with the process that started this one.
 *
 * Each line of the standard input is a call: NUMBER THREADS WAITS ARENA SIZE OFFSET WEIGHTS SIZE OFFSET, where ARENA
 * and WEIGHTS are files of whole pages, their sizes, and where in them the code's pointers point. They are mapped
 * between pages that nobody may touch, the weights for reading only. Each call is answered with a line: "done".
 * `segments` is written beside this by whoever links it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD 65536
#define MOST 8

typedef void segment(void *arena, void *weights, int64_t thread, int64_t threads, void *sync, int64_t base);
extern segment *const segments[];

/* What threads share: the barrier's counter, and behind it what the code calls to let others run. */
struct sync {
    int64_t counter, unused[7];
    int (*yield)(void);
};

struct share {
    segment *run;
    void *arena, *weights;
    struct sync *sync;
    int64_t thread, threads;
};

static void *map(const char *path, size_t size, int access)
{
    int file = open(path, O_RDWR);
    char *room = mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file < 0 || room == MAP_FAILED)
        exit(3);
    if (size && mmap(room + GUARD, size, access, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        exit(4);
    close(file);
    return room + GUARD;
}

static void unmap(char *at, size_t size)
{
    munmap(at - GUARD, size + 2 * GUARD);
}

static void *part(void *given)
{
    struct share *s = given;
    s->run(s->arena, s->weights, s->thread, s->threads, s->sync, 0);
    return NULL;
}

static int call(segment *run, char *arena, char *weights, long threads, long waits)
{
    _Alignas(64) struct sync sync = { .yield = sched_yield };
    struct share shares[MOST];
    pthread_t others[MOST];
    for (long n = 0; n < threads; n++) {
        shares[n] = (struct share){ run, arena, weights, &sync, n, threads };
        if (n && pthread_create(&others[n], NULL, part, &shares[n]))
            exit(5);
    }
    part(&shares[0]);
    for (long n = 1; n < threads; n++)
        pthread_join(others[n], NULL);
    return sync.counter == (threads > 1 ? waits * threads : 0);
}

int main(void)
{
    long number, threads, waits, arena_size, arena_at, weights_size, weights_at;
    char arena[4096], weights[4096];
    while (scanf("%ld %ld %ld %4095s %ld %ld %4095s %ld %ld", &number, &threads, &waits, arena, &arena_size, &arena_at,
                 weights, &weights_size, &weights_at) == 9) {
        char *a = map(arena, arena_size, PROT_READ | PROT_WRITE), *w = map(weights, weights_size, PROT_READ);
        if (threads < 1 || threads > MOST || !call(segments[number], a + arena_at, w + weights_at, threads, waits))
            return 6;
        unmap(a, arena_size);
        unmap(w, weights_size);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
