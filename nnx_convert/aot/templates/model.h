/* @model@ for @triple@ (@features@): native code, written by nnx-convert. */
#ifndef NNX_@NAME@_H
#define NNX_@NAME@_H

#include <stddef.h>
#include <stdint.h>

#ifndef NNX_TENSOR_DEFINED
#define NNX_TENSOR_DEFINED

/* The headers of several models may be read together: this part is the same in all. */
enum nnx_type {
    NNX_FLOAT32, NNX_FLOAT16, NNX_FLOAT64, NNX_INT8, NNX_UINT8, NNX_INT16, NNX_UINT16, NNX_INT32, NNX_UINT32,
    NNX_INT64, NNX_UINT64, NNX_BOOL
};

/* An input or output: a dense array, the last axis fastest. Where scale is not 0, real = scale * (q - zero_point).
   NNX_BOOL is a byte, 0 or 1; NNX_FLOAT16 is what IEEE 754 calls binary16, in 16 bits. */
struct nnx_tensor {
    const char *name;
    enum nnx_type type;
    int rank;
    int64_t shape[8];
    size_t bytes;
    float scale;
    int32_t zero_point;
};
#endif

#define NNX_@NAME@_INPUTS @inputs@
#define NNX_@NAME@_OUTPUTS @outputs@
/* Bytes of memory that a run works in, and of the weights; both begin at a multiple of NNX_@NAME@_ALIGN. */
#define NNX_@NAME@_ARENA @arena@
#define NNX_@NAME@_WEIGHTS @weights@
#define NNX_@NAME@_ALIGN 64

#ifdef __cplusplus
extern "C" {
#endif

/* Before the first run, and whenever the model is to forget what it keeps from run to run. The arena is the caller's,
   and nobody else's until the last run; several arenas are several models that know nothing of each other. */
void nnx_@name@_init(void *arena, const void *weights);

/* One run, by this thread: reads an array for each row of nnx_@name@_inputs, writes one for each row of
   nnx_@name@_outputs, at any address that the type allows. 0 where all went well; else the number of a text in
   nnx_@name@_faults: then the outputs are of no use, and what the model keeps is as before. Nothing is allocated. */
int32_t nnx_@name@_run(void *arena, const void *weights, const void *const *inputs, void *const *outputs);

/* The weights, where nnx_@name@_weights.S is linked: any copy of nnx_@name@_weights.bin in memory will do. */
extern const unsigned char nnx_@name@_weights[];

#ifdef __cplusplus
}
#endif

static const struct nnx_tensor nnx_@name@_inputs[] = {
@input_rows@
};

static const struct nnx_tensor nnx_@name@_outputs[] = {
@output_rows@
};

/* What a run returned, in words. */
static const char *const nnx_@name@_faults[] = {
@fault_rows@
};

#endif
