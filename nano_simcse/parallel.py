"""Two halves of a batch in two threads.

NumPy runs elementwise operations on one core and releases the interpreter lock while it does; so does BLAS. Giving
each of a few threads its own rows, with BLAS held to one thread, uses every core for everything, where one thread
with a threaded BLAS would leave the others idle between matrix products.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from threadpoolctl import ThreadpoolController

from .ranks import SERIAL, usable_cores

# BLAS has one number of threads for the whole process. The first limit remembers what it was and every later one
# remembers 1. Whoever leaves takes the newest, so only the last to leave gives BLAS its threads back.
_limits, _limits_lock = [], Lock()


def available_cores():
    """Cores this process may run on."""
    return len(usable_cores())


class Workers:
    """A fixed number of threads that each take one part of the work; use as a context manager.

        with Workers(2) as workers:
            results = workers.map(function, parts)

    Inside, BLAS is limited to one thread, until the last of all workers that are at work in this process is done. The
    results come in the order of the parts and do not depend on timing.
    ranks: the processes that share the work with this one (ranks.py); each has workers of its own.
    """

    def __init__(self, count, ranks=SERIAL):
        self.count, self.ranks = count, ranks
        self._pool = ThreadPoolExecutor(count - 1) if count > 1 else None

    def __enter__(self):
        with _limits_lock:
            _limits.append(ThreadpoolController().limit(limits=1, user_api="blas").__enter__())
        return self

    def __exit__(self, *exception):
        with _limits_lock:
            _limits.pop().__exit__(*exception)
        if self._pool:
            self._pool.shutdown()

    def map(self, function, parts):
        """[function(part) for part in parts], the last part in the calling thread and the others beside it."""
        if self._pool is None or len(parts) <= 1:
            return [function(part) for part in parts]
        waiting = [self._pool.submit(function, part) for part in parts[:-1]]
        try:
            last = function(parts[-1])
        finally:
            # an exception in one part must not leave the others running behind the caller's back
            for future in waiting:
                future.exception()
        return [future.result() for future in waiting] + [last]


def each_span(function, size, workers=None):
    """Call function(slice) on `size` elements, cut into one slice for each thread of `workers`, side by side.

    For elementwise work on flat buffers, whose numbers do not depend on where it is cut. Without workers: one slice.
    """
    count = 1 if workers is None else workers.count
    slices = [slice(size * i // count, size * (i + 1) // count) for i in range(count)]
    return [function(slices[0])] if workers is None else workers.map(function, slices)


def split_by_tokens(lengths, order, parts):
    """Cut `order` (row numbers) into at most `parts` runs of about equal total length; none is empty."""
    total, runs, run, done = sum(lengths[i] for i in order), [], [], 0
    for i in order:
        run.append(i)
        done += lengths[i]
        if done >= total * (len(runs) + 1) / parts and len(runs) < parts - 1:
            runs.append(run)
            run = []
    return [r for r in (*runs, run) if r]
