/* The weights as a part of the program, for reading only. */
    .section .rodata
    .global nnx_@name@_weights
    .balign 64
nnx_@name@_weights:
    .incbin "nnx_@name@_weights.bin"

    .section .note.GNU-stack,"",%progbits
