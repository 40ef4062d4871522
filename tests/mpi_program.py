"""What every rank of a test runs: `python -m mpi4py mpi_program.py [stop|die] TEXT OUT OPTIONS`.

Writes the digest of this rank's parameters after each step to OUT-rank.txt. "stop": rank 1 gets SIGTERM after step 3;
"die": rank 1 raises at step 4.
"""

import hashlib
import json
import os
import signal
import sys

from nano_simcse import train
from nano_simcse.ranks import current_ranks
from nano_simcse.training import loop

*mode, text, out, options = sys.argv[1:]
one_step, digests = loop.Training.one_step, []
loop.LOG_EVERY = 1


def watched_step(self, workers):
    if self.ranks.rank == 1 and self.done == 3 and mode == ["die"]:
        raise ZeroDivisionError("rank 1 died at step 4")
    line = one_step(self, workers)
    digests.append(hashlib.sha256(self.encoder.params.flat.tobytes()).hexdigest())
    if self.ranks.rank == 1 and self.done == 3 and mode == ["stop"]:
        os.kill(os.getpid(), signal.SIGTERM)
    return line


loop.Training.one_step = watched_step
result = train(text, out=out, **json.loads(options))
rank = current_ranks().rank
with open(f"{out}-{rank}.txt", "w", encoding="utf-8") as file:
    file.write("\n".join(digests))
if not result.finished and rank == 0:
    sys.exit(130)
