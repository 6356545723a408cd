/* Two models in one program, as an app has them: a table whose rows are asked for, and an LSTM that keeps its state. */
#include "nnx_lstm.h"
#include "nnx_table.h"

#include <stdio.h>
#include <string.h>

static _Alignas(NNX_TABLE_ALIGN) unsigned char table[NNX_TABLE_ARENA];
static _Alignas(NNX_LSTM_ALIGN) unsigned char first[NNX_LSTM_ARENA], second[NNX_LSTM_ARENA];

static int asked(int32_t row)
{
    int32_t rows[2] = {row, 1};
    float found[6] = {0};
    const void *inputs[] = {rows};
    void *outputs[] = {found};
    int32_t fault = nnx_table_run(table, nnx_table_weights, inputs, outputs);
    if (fault)
        printf("row %d: %s\n", (int)row, nnx_table_faults[fault]);
    else
        printf("row %d: %g %g %g\n", (int)row, found[0], found[1], found[2]);
    return fault;
}

static void stepped(void *arena, int8_t *to)
{
    int8_t x[64] = {1, 2, 3};
    const void *inputs[] = {x};
    void *outputs[] = {to};
    if (nnx_lstm_run(arena, nnx_lstm_weights, inputs, outputs))
        puts("failed");
}

int main(void)
{
    int8_t a[3][64] = {{0}}, b[64] = {0};
    /* What is in memory before `init` is of no account. */
    memset(table, 0xFF, sizeof table);
    memset(first, 0xFF, sizeof first);
    memset(second, 0xFF, sizeof second);
    nnx_table_init(table, nnx_table_weights);
    nnx_lstm_init(first, nnx_lstm_weights);
    nnx_lstm_init(second, nnx_lstm_weights);
    if (asked(3) || !asked(99) || !asked(-1) || asked(0))
        return 1;
    stepped(first, a[0]);
    stepped(first, a[1]);
    stepped(second, b);
    nnx_lstm_init(first, nnx_lstm_weights);
    stepped(first, a[2]);
    printf("the same after init: %d; kept in between: %d; apart: %d\n", !memcmp(a[0], a[2], 64), !!memcmp(a[0], a[1], 64),
           !memcmp(a[0], b, 64));
    return 0;
}
