"""A stand-in for CuPy that runs on NumPy and refuses what CuPy refuses, and the tests that train on it.

What it proves: names, keywords, types, copies between host and device, values. What it cannot: time, memory limits,
the order of atomic additions, asynchronous errors, TF32, denormals (kernels flush them to zero).
"""
