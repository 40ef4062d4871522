"""The processes that share a training run ("ranks"), and the few things they say to each other.

    mpiexec -n 4 python -m mpi4py -m nano_simcse train text.txt

Every rank holds the whole model and takes its share of the rows of a step. Three exchanges make one step of them:

    all_gather_rows        z, (V B, D)      every rank gets the embeddings of all rows: one batch of negatives
    reduce_scatter_rows    dL/dz, (V B, D)  each rank found a part of every row's gradient; a row's owner gets the sum
    all_reduce             dL/dtheta        the sum over ranks, in the flat buffer

Each sum is formed on one rank and copied to the others, so all ranks hold the same bits, and so do their parameters
after the update. Device arrays pass through host memory, on both sides the same numbers.

A program that was not started through `python -m mpi4py`, or alone, has SERIAL: one rank, for which all of this does
nothing. mpi4py is imported only where `python -m mpi4py` (or the program itself) has loaded it already: it is the
launcher that ends the whole job when one rank fails, without which the others would wait for ever.
"""

import hashlib
import os
import sys
import time
from functools import cache

import numpy as np

from .backend import device_of, to_device, to_host
from .errors import InputError

LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")  # what MPICH's and Open MPI's mpiexec tell a process
GRACE = 1.0  # seconds


def usable_cores():
    """Numbers of the cores this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


class Ranks:
    """One rank that is all there is. `rank` of `size`; `place`: its number among the ranks of its machine."""

    rank, size, place = 0, 1, 0

    def cores(self):
        """Cores for the threads of this rank: those that the ranks of its machine may use, over their number."""
        return len(usable_cores())

    def part(self, n):
        """The slice of n things that this rank takes: slices of about equal length, in the order of the ranks."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def all_gather_rows(self, x, shares):
        """Fill in x (n, D), of which every rank r has the rows shares[r], in place. shares: list of row numbers, one
        list a rank."""

    def reduce_scatter_rows(self, x, shares):
        """Replace the own rows of x (n, D), shares[rank], by their sums over the ranks; other rows become useless."""

    def all_reduce(self, x):
        """Replace x, (n,) or 0-d, by its sum over the ranks, in place, with the same bits on all of them."""

    def agree(self, flag):
        """Whether the flag is set on any rank: the same answer on all."""
        return flag

    def broadcast(self, make):
        """make(), called on rank 0 alone, for all ranks; an InputError there is raised on all of them. For
        descriptions and texts, not for arrays of a step."""
        return make()

    def require_equal(self, value, message):
        """Raise InputError(message), on all ranks, where they hold different values: text, or an array's bits."""


SERIAL = Ranks()


class MPIRanks(Ranks):
    """The ranks of mpi.COMM_WORLD, where mpi is the module mpi4py.MPI. Every method but `cores` and `part` must be
    called by all of them, in one order."""

    def __init__(self, mpi):
        self.mpi, self.communicator = mpi, mpi.COMM_WORLD
        self.rank, self.size = self.communicator.rank, self.communicator.size
        machine = self.communicator.Split_type(mpi.COMM_TYPE_SHARED)
        self.place = machine.rank
        # a launcher may have bound every rank to cores of its own; together they are what there is
        cores = set().union(*machine.allgather(usable_cores()))
        self._cores = max(1, len(cores) // machine.size)
        machine.Free()

    def cores(self):
        return self._cores

    def all_gather_rows(self, x, shares):
        device, order = device_of(x), np.concatenate(shares).astype(int)
        own = np.ascontiguousarray(to_host(x[to_device(np.array(shares[self.rank], int), device)]))
        whole = np.empty((len(order), x.shape[1]), own.dtype)
        self.communicator.Allgatherv(own, [whole, [len(share) * x.shape[1] for share in shares]])
        x[to_device(order, device)] = to_device(whole, device)

    def reduce_scatter_rows(self, x, shares):
        device, own = device_of(x), to_device(np.array(shares[self.rank], int), device_of(x))
        parts = np.ascontiguousarray(to_host(x[to_device(np.concatenate(shares).astype(int), device)]))
        total = np.empty((len(own), x.shape[1]), parts.dtype)
        self.communicator.Reduce_scatter(parts, total, [len(share) * x.shape[1] for share in shares])
        x[own] = to_device(total, device)

    def all_reduce(self, x):
        # not Allreduce, whose result need not have the same bits everywhere
        values = np.ascontiguousarray(to_host(x)).reshape(-1)
        ends = [values.size * (r + 1) // self.size for r in range(self.size)]
        counts = np.diff([0, *ends]).tolist()
        own = np.empty(counts[self.rank], values.dtype)
        self.communicator.Reduce_scatter(values, own, counts)
        self.communicator.Allgatherv(own, [values, counts])
        x[...] = to_device(values.reshape(x.shape), device_of(x))

    def agree(self, flag):
        found = np.array([flag], np.int32)
        self._wait(self.communicator.Iallreduce(self.mpi.IN_PLACE, found, self.mpi.MAX))
        return bool(found[0])

    def broadcast(self, make):
        outcome = None
        if self.rank == 0:
            try:
                outcome = make(), None
            except InputError as error:
                outcome = None, error
        self._wait(self.communicator.Ibarrier())
        value, error = self.communicator.bcast(outcome)
        if error is not None:
            raise error
        return value

    def require_equal(self, value, message):
        content = value.encode() if isinstance(value, str) else np.ascontiguousarray(to_host(value)).tobytes()
        digests = self.communicator.allgather(hashlib.sha256(content).hexdigest())
        if len(set(digests)) > 1:
            raise InputError(message)

    @staticmethod
    def _wait(request):
        """Until the others come, without keeping a core busy that rank 0 evaluates on: the sleeps are a tenth of the
        time waited so far."""
        started = time.monotonic()
        while not request.Test():
            time.sleep(min(0.1 * (time.monotonic() - started), 0.02))


def current_ranks():
    """The ranks of this process: SERIAL unless it is one of several started by `mpiexec -n R python -m mpi4py`.

    Raises InputError where mpiexec started several processes without it: each would do, and write, all the work.
    """
    if "mpi4py.run" in sys.modules or "mpi4py.MPI" in sys.modules:
        return _world()
    for name in LAUNCHERS:
        started = os.environ.get(name, "1")
        if started.isdigit() and int(started) > 1:
            raise InputError(
                f"mpiexec started {started} processes that do not know of each other; expected "
                f"mpiexec -n {started} python -m mpi4py -m nano_simcse train (pip install 'nano_simcse[mpi]')"
            )
    return SERIAL


@cache
def _world():
    from mpi4py import MPI

    return MPIRanks(MPI) if MPI.COMM_WORLD.size > 1 else SERIAL


def speaker():
    """What an error message of this process begins with: nothing on rank 0, else the rank.

    An error that all ranks meet should be read once. So the others give rank 0 a moment to print it first: as soon as
    it ends, the job ends.
    """
    ranks = _world() if "mpi4py.run" in sys.modules or "mpi4py.MPI" in sys.modules else SERIAL
    if ranks.rank == 0:
        return ""
    time.sleep(GRACE)
    return f"rank {ranks.rank}: "
