/* Maps a file of code and calls the function that so many bytes into it: FILE SIZE OFFSET ARGUMENT. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    int file = open(words[1], O_RDONLY);
    char *code = mmap(NULL, strtoul(words[2], NULL, 10), PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (file < 0 || code == MAP_FAILED)
        return 3;
    int64_t (*run)(int64_t) = (int64_t (*)(int64_t))(code + strtoul(words[3], NULL, 10));
    printf("%lld\n", (long long)run(strtoll(words[4], NULL, 10)));
    return 0;
}
