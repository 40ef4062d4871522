"""Training in several processes: one batch of negatives, one run, whatever the number of ranks.

Most tests simulate the ranks with threads; those at the end start real ones where mpi4py and mpiexec are installed.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from simulated_mpi import simulate
from tiny import TINY, pairs, sentences, write_sentences

from nano_simcse import TrainingConfig, train
from nano_simcse import ranks as ranks_module
from nano_simcse.errors import InputError
from nano_simcse.losses import info_nce
from nano_simcse.losses import info_nce_rows as rows_module
from nano_simcse.losses.info_nce_rows import info_nce_rows
from nano_simcse.ranks import SERIAL, MPIRanks, current_ranks
from nano_simcse.training import initial, loop, runs, step

# random word vectors: from counted ones a few weights have a first gradient that cancels to rounding, of which Adam
# makes a whole step (1 of 31,104 then differs by more than 1e-6)
OPTIONS = TINY | {"layers": 2, "width": 32, "batch": 12, "steps": 20, "eval_every": 10, "dropout": 0.1,
                  "word_vectors": "random"}  # fmt: skip
LOSS, PARAMETERS = 1e-6, 1e-5  # allowed differences between numbers of ranks after 20 steps


@pytest.fixture
def text(tmp_path):
    return write_sentences(tmp_path / "text.txt")


@pytest.fixture
def bits(monkeypatch):
    """{rank: [digest of the parameters after each step]}; every step is logged."""
    seen, one_step = {}, loop.Training.one_step

    def record(self, workers):
        line = one_step(self, workers)
        digest = hashlib.sha256(self.encoder.params.flat.tobytes()).hexdigest()
        seen.setdefault(self.ranks.rank, []).append(digest)
        return line

    monkeypatch.setattr(loop.Training, "one_step", record)
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    return seen


def train_on(size, monkeypatch, *arguments, **options):
    """The results of `train` on each of `size` simulated ranks."""
    mine = threading.local()
    monkeypatch.setattr(runs, "current_ranks", lambda: mine.ranks)

    def one(ranks):
        mine.ranks = ranks
        return train(*arguments, **options)

    try:
        return simulate(size, one)
    finally:
        monkeypatch.setattr(runs, "current_ranks", current_ranks)


def outcome(folder):
    """(losses of all steps, parameters) at the end of a run."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line["loss"] for line in lines if "loss" in line], load_file(folder / "last.safetensors")["parameters"]


def differences(one, other):
    losses = np.subtract(one[0], other[0])
    return np.abs(losses).max(), np.abs(one[1] - other[1]).max()


def write_triples(path):
    rows = [(a, p, f"nothing of {i} is true {a}") for i, (a, p) in enumerate(pairs(120))]
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("block", [0, 2])
def test_the_parts_of_the_loss_add_up_to_the_whole(size, block, monkeypatch):
    """float64, with hard negatives, their weight, known duplicates and a queue; 4 queries for up to 5 ranks."""
    monkeypatch.setattr(rows_module, "rows_per_block", lambda *arguments: block)
    generator = np.random.default_rng(0)
    queries, keys, negatives, past = (generator.normal(size=(n, 6)) for n in (4, 4, 8, 3))
    exclude = np.zeros((4, 15), bool)
    exclude[0, [2, 13]] = exclude[3, [0, 5]] = True
    options = {"hard_negatives": negatives, "log_weight": 0.7, "exclude": exclude, "queue": past}
    loss, backward = info_nce(queries, keys, 0.3, **options)
    slices = [slice(4 * r // size, 4 * (r + 1) // size) for r in range(size)]
    parts = [info_nce_rows(queries, keys, 0.3, rows, **options) for rows in slices]
    assert sum(float(part) for part, _ in parts) == pytest.approx(float(loss), abs=1e-14)
    for whole, *shares in zip(backward(), *(part_backward() for _, part_backward in parts), strict=True):
        np.testing.assert_allclose(sum(shares), whole, rtol=0, atol=1e-14)
        assert all(np.abs(share - whole).max() > 1e-3 for share in shares)  # no part has it all
    plain = [info_nce_rows(queries, keys, 0.3, rows)[1]() for rows in slices]
    for i, whole in enumerate(info_nce(queries, keys, 0.3)[1]()):
        np.testing.assert_allclose(sum(part[i] for part in plain), whole, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (2, {}),
        (4, {}),
        (3, {"threads": 2, "pooling": "cls", "head": True}),
        (2, {"positives": "pairs", "log_weight": 1.0}),
        (2, {"chunk": 4}),
        (3, {"queue": 20}),
        (3, {"queue": 20, "chunk": 4, "threads": 2}),
    ],
)
def test_any_number_of_ranks_is_the_same_run(size, options, text, tmp_path, monkeypatch, bits):
    files = write_triples(tmp_path / "triples.tsv") if "positives" in options else text
    train(files, out=tmp_path / "one", **OPTIONS | options)
    bits.clear()
    results = train_on(size, monkeypatch, files, out=tmp_path / "many", **OPTIONS | options)
    loss, parameters = differences(outcome(tmp_path / "one"), outcome(tmp_path / "many"))
    assert loss <= LOSS and parameters <= PARAMETERS
    assert sorted(bits) == list(range(size)) and len(bits[0]) == 20
    assert all(bits[rank] == bits[0] for rank in bits)
    assert len({result.encoder.fingerprint() for result in results}) == 1
    assert all(result.report == results[0].report for result in results)


def test_one_rank_counts_the_word_vectors_of_all(monkeypatch):
    count, counted = initial.cooccurrences, []
    monkeypatch.setattr(initial, "cooccurrences", lambda *a, **k: counted.append(1) or count(*a, **k))
    config, texts = TrainingConfig(**OPTIONS | {"word_vectors": "ppmi"}), sentences(100)
    alone = initial.initial_encoder(config, texts, "cpu").params.flat
    many = simulate(3, lambda ranks: initial.initial_encoder(config, texts, "cpu", ranks=ranks).params.flat)
    assert len(counted) == 2
    assert [flat.tobytes() for flat in many] == [alone.tobytes()] * 3


def test_ranks_without_rows_take_part(text, tmp_path, monkeypatch, bits):
    """Four rows of a step for five ranks."""
    options = OPTIONS | {"batch": 2, "steps": 5}
    train(text, out=tmp_path / "one", **options)
    train_on(5, monkeypatch, text, out=tmp_path / "many", **options)
    loss, parameters = differences(outcome(tmp_path / "one"), outcome(tmp_path / "many"))
    assert loss <= LOSS and parameters <= PARAMETERS
    assert all(bits[rank] == bits[0][-5:] for rank in range(1, 5))


def test_negatives_of_the_own_rank_alone_would_be_another_run(text, tmp_path, monkeypatch, bits):
    def own_negatives(queries, keys, temperature, rows, **options):
        loss, backward = info_nce(queries[rows], keys[rows], temperature)
        share = np.float32(len(range(len(queries))[rows]) / len(queries))

        def scattered():
            gradients = np.zeros_like(queries), np.zeros_like(keys)
            for whole, part in zip(gradients, backward(), strict=True):
                whole[rows] = share * part
            return gradients

        return np.asarray(loss * share), scattered

    train(text, out=tmp_path / "one", **OPTIONS)
    monkeypatch.setattr(step, "info_nce_rows", own_negatives)
    train_on(2, monkeypatch, text, out=tmp_path / "many", **OPTIONS)
    one, many = outcome(tmp_path / "one"), outcome(tmp_path / "many")
    assert one[0][0] - many[0][0] > 0.5 * np.log(2)  # half the candidates: an easier question
    assert differences(one, many)[1] > 100 * PARAMETERS


def test_gradients_must_return_to_the_owners_of_the_rows(text, tmp_path, monkeypatch, bits):
    """With a gather that is not differentiated through, the first loss is right and the training is not."""
    train(text, out=tmp_path / "one", **OPTIONS)
    monkeypatch.setattr(MPIRanks, "reduce_scatter_rows", lambda self, x, shares: None)
    train_on(2, monkeypatch, text, out=tmp_path / "many", **OPTIONS)
    one, many = outcome(tmp_path / "one"), outcome(tmp_path / "many")
    assert one[0][0] == pytest.approx(many[0][0], abs=LOSS)
    assert differences(one, many)[1] > 100 * PARAMETERS


def test_one_interrupted_rank_stops_all_and_another_number_of_ranks_goes_on(text, tmp_path, monkeypatch, bits):
    """Three ranks stop, two go on, one goes on to the end."""
    train(text, out=tmp_path / "whole", **OPTIONS)
    event, record = threading.Event(), loop.Training.one_step

    @contextlib.contextmanager
    def interruptible(ranks):
        yield event if ranks.rank == ranks.size - 1 else threading.Event()

    def interrupt(self, workers):
        record(self, workers)
        if self.done in (7, 11) and self.ranks.rank == self.ranks.size - 1:
            event.set()

    monkeypatch.setattr(loop, "interruptible", interruptible)
    monkeypatch.setattr(loop.Training, "one_step", interrupt)
    for size, arguments in ((3, {**OPTIONS, "files": text}), (2, {"resume": True})):
        bits.clear()
        event.clear()
        results = train_on(size, monkeypatch, out=tmp_path / "parts", **arguments)
        assert [result.finished for result in results] == [False] * size
        assert len({tuple(bits[rank]) for rank in range(size)}) == 1
    monkeypatch.setattr(loop.Training, "one_step", record)
    event.clear()
    assert train(out=tmp_path / "parts", resume=True).finished
    loss, parameters = differences(outcome(tmp_path / "whole"), outcome(tmp_path / "parts"))
    assert loss <= LOSS and parameters <= PARAMETERS


def test_threads_are_chosen_anew_for_another_number_of_ranks(text, tmp_path, monkeypatch):
    options = OPTIONS | {"steps": 2}
    del options["threads"]
    monkeypatch.setattr(ranks_module, "usable_cores", lambda: {0, 1, 2, 3, 4, 5})
    train_on(2, monkeypatch, text, out=tmp_path / "run", **options)
    saved = json.loads((tmp_path / "run" / "training.json").read_text(encoding="utf-8"))
    assert (saved["ranks"], saved["config"]["threads"]) == (2, 3)
    used, training = [], loop.Training.__init__
    monkeypatch.setattr(loop.Training, "__init__", lambda self, *a: (used.append(a[2].threads), training(self, *a))[1])
    train_on(3, monkeypatch, out=tmp_path / "run", resume=True)
    train_on(2, monkeypatch, out=tmp_path / "run", resume=True)
    train(out=tmp_path / "run", resume=True)
    assert used == [2, 2, 2, 3, 3, 6]


def test_cores_of_ranks_that_are_bound_to_some_are_counted_once(monkeypatch):
    def cores(size):
        return simulate(size, lambda ranks: ranks.cores())

    monkeypatch.setattr(ranks_module, "usable_cores", lambda: {0, 1, 2, 3})
    assert cores(2) == [2, 2] and cores(4) == [1, 1, 1, 1] and cores(8) == [1] * 8
    assert [ranks.place for ranks in simulate(3, lambda ranks: ranks)] == [0, 1, 2]
    halves = iter([{0, 1}, {2, 3}])
    monkeypatch.setattr(ranks_module, "usable_cores", lambda: next(halves))
    assert cores(2) == [2, 2]


def test_an_error_of_rank_0_is_raised_on_every_rank(text, tmp_path, monkeypatch):
    train(text, out=tmp_path / "run", **OPTIONS | {"steps": 1})
    raised = []

    def attempt(ranks):
        try:
            ranks.broadcast(lambda: runs.RunFolder(tmp_path / "run").check())
        except InputError as error:
            raised.append(str(error))
        return ranks.broadcast(lambda: "made on rank 0" if ranks.rank == 0 else "made elsewhere")

    assert simulate(3, attempt) == ["made on rank 0"] * 3
    assert len(raised) == 3 and len(set(raised)) == 1 and "already holds a run" in raised[0]


def test_what_cannot_be_one_run_is_refused(text, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"mlm_weight is 0\.1 with 2 ranks"):
        train_on(2, monkeypatch, text, out=tmp_path / "mlm", **OPTIONS | {"mlm_weight": 0.1})
    mine = threading.local()
    monkeypatch.setattr(runs, "current_ranks", lambda: mine.ranks)

    def seeds(ranks):
        mine.ranks = ranks
        train(text, out=tmp_path / "seeds", **OPTIONS | {"seed": ranks.rank})

    with pytest.raises(InputError, match="the ranks differ in their options"):
        simulate(2, seeds)
    with pytest.raises(InputError, match="different parameters"):
        simulate(2, lambda ranks: ranks.require_equal(np.zeros(3) + 1e-7 * ranks.rank, "different parameters"))


def test_one_process_is_serial_and_does_without_mpi4py(monkeypatch):
    for name in ranks_module.LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    assert current_ranks() is SERIAL
    assert "mpi4py" not in sys.modules
    x = np.arange(6.0).reshape(3, 2)
    for change in (SERIAL.all_reduce, lambda x: SERIAL.all_gather_rows(x, [[0, 1, 2]])):
        change(x)
        np.testing.assert_array_equal(x, np.arange(6.0).reshape(3, 2))
    assert SERIAL.agree(True) and not SERIAL.agree(False) and SERIAL.part(7) == slice(0, 7)


@pytest.mark.parametrize("name", ranks_module.LAUNCHERS)
def test_processes_that_do_not_know_of_each_other_are_refused(name, monkeypatch, text, tmp_path):
    monkeypatch.setenv(name, "4")
    with pytest.raises(InputError, match=r"expected mpiexec -n 4 python -m mpi4py -m nano_simcse train"):
        train(text, out=tmp_path / "run", **OPTIONS)
    monkeypatch.setenv(name, "1")
    assert current_ranks() is SERIAL


# Real ranks

MPIEXEC = Path(sys.executable).parent / "mpiexec"
MPIEXEC = str(MPIEXEC) if MPIEXEC.exists() else shutil.which("mpiexec")


@pytest.fixture
def mpi():
    """run(size, *arguments) -> finished process of `mpiexec -n size python -m mpi4py *arguments`."""
    pytest.importorskip("mpi4py", reason="needs mpi4py: pip install -e '.[mpi]' mpich")
    if MPIEXEC is None:
        pytest.skip("needs mpiexec: pip install mpich")
    root = Path(__file__).resolve().parents[1]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = {**os.environ, **allowed, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(root)}

    def run(size, *arguments):
        command = [MPIEXEC, "-n", str(size), sys.executable, "-m", "mpi4py", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    return run


PROGRAM = Path(__file__).with_name("mpi_program.py")


def test_two_processes_are_the_same_run_as_one(mpi, text, tmp_path, bits):
    train(text, out=tmp_path / "one", **OPTIONS)
    done = mpi(2, PROGRAM, text, tmp_path / "many", json.dumps(OPTIONS))
    assert done.returncode == 0, done.stderr
    loss, parameters = differences(outcome(tmp_path / "one"), outcome(tmp_path / "many"))
    assert loss <= LOSS and parameters <= PARAMETERS
    first, second = ((tmp_path / f"many-{rank}.txt").read_text(encoding="utf-8").split() for rank in range(2))
    assert first == second and len(first) == 20
    assert len(set(first)) == 20


def test_the_command_speaks_once_stops_together_and_resumes(mpi, text, tmp_path):
    """SIGTERM to rank 1 alone after step 3; the whole run, by two processes, is written by rank 0."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in OPTIONS.items()]
    out = tmp_path / "run"
    done = mpi(2, PROGRAM, "stop", text, out, json.dumps(OPTIONS))
    assert done.returncode == 130, done.stderr
    assert json.loads((out / "result.json").read_text(encoding="utf-8"))["steps"] == 3
    done = mpi(2, "-m", "nano_simcse", "train", "--resume", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("recall@1 (%)") == 1 and done.stdout.count("text.txt:") == 1
    train(text, out=tmp_path / "one", **OPTIONS)
    assert np.abs(outcome(tmp_path / "one")[1] - outcome(out)[1]).max() <= PARAMETERS
    done = mpi(2, "-m", "nano_simcse", "train", text, *options, "--out", out)
    assert done.returncode == 2
    assert done.stderr.count("already holds a run; give --resume, --overwrite or another --out") == 1


def test_a_rank_that_dies_ends_the_job_with_its_error(mpi, text, tmp_path):
    done = mpi(2, PROGRAM, "die", text, tmp_path / "run", json.dumps(OPTIONS))
    assert done.returncode not in (0, 124)
    assert "ZeroDivisionError: rank 1 died at step 4" in done.stderr
