/* Runs the model on inputs of which the outputs are known; prints how far they are apart, ends with 0 where that is
   near enough, else with 1. With NNX_WEIGHTS_FROM_FILE, the first argument is the file of the weights. */
#include "nnx_@name@.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RUNS @runs@
/* Floats may be off by this part of the largest one of their array; other numbers not at all. */
#define NEAR 1e-4
#define NEAR_FLOAT16 1e-2

extern const unsigned char nnx_golden[];

static _Alignas(NNX_@NAME@_ALIGN) unsigned char arena[NNX_@NAME@_ARENA];
static _Alignas(64) unsigned char results[@result_bytes@];

static size_t padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static double half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0 ? ldexp(fraction, -24)
                 : exponent < 31 ? ldexp(fraction + 1024, exponent - 25)
                 : fraction ? NAN : INFINITY;
    return bits >> 15 ? -value : value;
}

#define AT(type) (((const type *)array)[i])
static double number(enum nnx_type type, const void *array, size_t i)
{
    switch (type) {
    case NNX_FLOAT32: return AT(float);
    case NNX_FLOAT16: return half(AT(uint16_t));
    case NNX_FLOAT64: return AT(double);
    case NNX_INT8: return AT(int8_t);
    case NNX_UINT8: case NNX_BOOL: return AT(uint8_t);
    case NNX_INT16: return AT(int16_t);
    case NNX_UINT16: return AT(uint16_t);
    case NNX_INT32: return AT(int32_t);
    case NNX_UINT32: return AT(uint32_t);
    case NNX_INT64: return (double)AT(int64_t);
    case NNX_UINT64: return (double)AT(uint64_t);
    }
    return 0;
}

static int compared(int run, const struct nnx_tensor *t, const void *got, const void *want)
{
    int is_float = t->type == NNX_FLOAT32 || t->type == NNX_FLOAT16 || t->type == NNX_FLOAT64;
    double largest = 0, apart = 0, allowed;
    size_t count = 1;
    for (int axis = 0; axis < t->rank; axis++)
        count *= (size_t)t->shape[axis];
    for (size_t i = 0; i < count; i++) {
        double a = number(t->type, got, i), b = number(t->type, want, i);
        if (isfinite(b) && fabs(b) > largest)
            largest = fabs(b);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        if (!(fabs(a - b) <= apart))
            apart = isnan(a - b) ? INFINITY : fabs(a - b);
    }
    allowed = is_float ? largest * (t->type == NNX_FLOAT16 ? NEAR_FLOAT16 : NEAR) : 0;
    printf("run %d, %s: largest difference %g, allowed %g\n", run, t->name, apart, allowed);
    return apart > allowed;
}

static int runs(const void *weights)
{
    const unsigned char *golden = nnx_golden;
    int wrong = 0;
    nnx_@name@_init(arena, weights);
    for (int run = 0; run < RUNS; run++) {
        const void *inputs[NNX_@NAME@_INPUTS + 1] = {0};
        void *outputs[NNX_@NAME@_OUTPUTS + 1] = {0};
        unsigned char *next = results;
        int32_t fault;
        for (int n = 0; n < NNX_@NAME@_INPUTS; n++) {
            inputs[n] = golden;
            golden += padded(nnx_@name@_inputs[n].bytes);
        }
        for (int n = 0; n < NNX_@NAME@_OUTPUTS; n++) {
            outputs[n] = next;
            next += padded(nnx_@name@_outputs[n].bytes);
        }
        memset(results, 0xA5, sizeof results);
        fault = nnx_@name@_run(arena, weights, inputs, outputs);
        if (fault) {
            fprintf(stderr, "run %d failed: %s\n", run, nnx_@name@_faults[fault]);
            return 1;
        }
        for (int n = 0; n < NNX_@NAME@_OUTPUTS; n++) {
            wrong |= compared(run, &nnx_@name@_outputs[n], outputs[n], golden);
            golden += padded(nnx_@name@_outputs[n].bytes);
        }
    }
    return wrong;
}

#ifdef NNX_WEIGHTS_FROM_FILE
static _Alignas(NNX_@NAME@_ALIGN) unsigned char weights[NNX_@NAME@_WEIGHTS];

int main(int count, char **words)
{
    FILE *file = count == 2 ? fopen(words[1], "rb") : NULL;
    if (file == NULL || fread(weights, 1, sizeof weights, file) != sizeof weights) {
        fprintf(stderr, "usage: %s nnx_@name@_weights.bin\n", words[0]);
        return 2;
    }
    fclose(file);
    return runs(weights);
}
#else
int main(void)
{
    return runs(nnx_@name@_weights);
}
#endif
