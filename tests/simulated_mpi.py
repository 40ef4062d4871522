"""The part of mpi4py that ranks.py uses, over threads of one process: R ranks without MPI."""

import threading
from types import SimpleNamespace

import numpy as np

from nano_simcse.ranks import MPIRanks


class Communicator:
    """COMM_WORLD as the thread `rank` of `size` sees it; `board` and `barrier` belong to all of them."""

    def __init__(self, rank, size, board, barrier):
        self.rank, self.size, self.board, self.barrier = rank, size, board, barrier

    def allgather(self, value):
        self.board[self.rank] = value
        self.barrier.wait(timeout=60)
        values = list(self.board)
        self.barrier.wait(timeout=60)
        return values

    def bcast(self, value):
        return self.allgather(value)[0]

    def Allgatherv(self, own, whole):
        values, counts = whole
        assert own.flags.c_contiguous and values.flags.c_contiguous and own.size == counts[self.rank]
        values.reshape(-1)[...] = np.concatenate([part.reshape(-1) for part in self.allgather(own.copy())])

    def Reduce_scatter(self, parts, total, counts):
        assert parts.flags.c_contiguous and total.size == counts[self.rank] and sum(counts) == parts.size
        start = sum(counts[: self.rank])
        whole = sum(self.allgather(parts.copy()))
        total.reshape(-1)[...] = whole.reshape(-1)[start : start + total.size]

    def Iallreduce(self, in_place, values, operation):
        values[...] = operation(self.allgather(values.copy()))
        return SimpleNamespace(Test=lambda: True)

    def Ibarrier(self):
        self.allgather(None)
        return SimpleNamespace(Test=lambda: True)

    def Split_type(self, kind):
        return self

    def Free(self):
        pass


def simulate(size, function):
    """[function(ranks) for each of `size` ranks], all at once. The first exception of a rank is raised here."""
    board, barrier, results, errors = [None] * size, threading.Barrier(size), [None] * size, []

    def run(rank):
        communicator = Communicator(rank, size, board, barrier)
        mpi = SimpleNamespace(
            COMM_WORLD=communicator, COMM_TYPE_SHARED=0, IN_PLACE=None, MAX=lambda v: np.max(v, axis=0)
        )
        try:
            results[rank] = function(MPIRanks(mpi))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
    return results
