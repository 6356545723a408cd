"""Native code: a program's steps as LLVM IR, compiled once and kept, run by a pool of threads."""
