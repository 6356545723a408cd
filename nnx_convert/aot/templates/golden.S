/* The arrays that main.c runs on and compares with. */
    .section .rodata
    .global nnx_golden
    .balign 64
nnx_golden:
    .incbin "golden.bin"

    .section .note.GNU-stack,"",%progbits
