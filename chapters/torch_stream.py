"""The random normals that PyTorch draws on a CPU, from NumPy: some published numbers can be recomputed only with them.

The generator is the Mersenne Twister mt19937, seeded with one 32-bit number. Sixteen uniform numbers at a time (24 bits
each) become normals in eight pairs by Box and Muller's rule:

    r = sqrt(-2 log(1 - u_j)), angle = 2 pi u_(j + 8)       ->      r cos(angle) at j, r sin(angle) at j + 8
"""

import numpy as np

BLOCK = 16


class TorchNormals:
    """A stream of float32 standard normals as after torch.manual_seed(seed); take(rows, columns) is torch.randn."""

    def __init__(self, seed):
        self._words = np.random.RandomState(seed)

    def take(self, rows, columns):
        """The next rows x columns normals; their number must be a multiple of 16."""
        count = rows * columns
        if count % BLOCK:
            raise ValueError(f"{count} normals are no multiple of {BLOCK}, which PyTorch handles in another way")
        bits = self._words.randint(0, 1 << 32, size=count, dtype=np.uint32)
        u = (bits & np.uint32((1 << 24) - 1)).astype(np.float32) / np.float32(1 << 24)
        u = u.reshape(-1, 2, BLOCK // 2)
        radius = np.sqrt(np.float32(-2) * np.log(np.float32(1) - u[:, 0]))
        angle = np.float32(2 * np.pi) * u[:, 1]
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(rows, columns)
