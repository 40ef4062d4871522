"""What is measured, not tested: `python -m benchmarks.gpu` on a GPU, `python -m benchmarks.launches` anywhere."""
