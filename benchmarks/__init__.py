"""Timings beside the engines a user would pick instead, and the bounds they are held to.

`python -m benchmarks.latency`, `python -m benchmarks.startup`, `python -m benchmarks.memory`.
"""
