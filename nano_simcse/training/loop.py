"""The training loop: steps, logging, evaluation, checkpoints, Ctrl-C, resume.

Step k depends on the parameters, the moments and k alone (with a queue, also on the slow encoder and the ring): its
texts come from (seed, k) and its masks from (seed, k). So the state to save is a few buffers, k, and which step was the
best so far; a run that was stopped and resumed, or killed and resumed, ends in the same bytes as one that was not.
"""

import math
import signal
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
from tqdm import tqdm

from ..backend import array_module, keep_freed_memory, to_host
from ..checkpoint import load_state, save_parameters, save_state
from ..errors import InputError, NonFiniteLoss
from ..geometry import alignment, effective_rank, uniformity
from ..masks import Masks
from ..optim import AdamW, clip_factor, global_norm, learning_rate
from ..parallel import Workers
from ..ranks import SERIAL
from .gradient_cache import cached_step
from .queue import MomentumQueue
from .step import Objective, add_masked_lm, contrastive_step, gradient_buffers

LOG_EVERY = 10
GEOMETRY_ROWS = 1024  # of a view that the logged geometry is read from: it compares all pairs


class Training:
    """The state of a run and the steps that change it.

    encoder: SentenceEncoder, whose parameters are updated in place; sampler: samplers.Sampler; config:
    TrainingConfig with steps, lr and threads filled in; folder: RunFolder; judge: report.Judge to choose the best
    checkpoint by; ranks: the processes that take these steps together, of which rank 0 alone measures and writes.
    """

    def __init__(self, encoder, sampler, config, folder, judge, ranks=SERIAL):
        self.encoder, self.sampler, self.config, self.folder, self.judge = encoder, sampler, config, folder, judge
        self.ranks = ranks
        self.optimizer = AdamW(encoder.params, weight_decay=config.weight_decay)
        self.in_chunks = 0 < config.chunk < config.batch
        self.gradients = gradient_buffers(encoder.params, config.threads, self.in_chunks)
        self.queue = None
        if config.queue:
            self.queue = MomentumQueue(encoder.params, config.queue, encoder.config.width, config.momentum)
        self.objective = Objective(
            config.pooling, config.temperature, config.log_weight, config.mlm_weight, self.queue
        )
        self.done, self.seconds, self.best_step, self.best_score = 0, 0.0, None, None

    def run(self, progress=None):
        """Steps until the end or the first Ctrl-C; True where the run is finished.

        progress: None shows a bar on a terminal. Raises NonFiniteLoss, with the last good checkpoint on disk.
        """
        keep_freed_memory()
        config = self.config
        hide = (not sys.stderr.isatty() if progress is None else not progress) or self.ranks.rank > 0
        with (
            Workers(config.threads, self.ranks) as workers,
            interruptible(self.ranks) as interrupted,
            tqdm(total=config.steps, initial=self.done, desc="train", unit="step", disable=hide) as bar,
        ):
            started = time.perf_counter() - self.seconds
            while self.done < config.steps and not self.ranks.agree(interrupted.is_set()):
                line = self.one_step(workers)
                self.seconds = time.perf_counter() - started
                bar.update()
                if line:
                    bar.set_postfix(loss=f"{line['loss']:.3f}", refresh=False)
                if self.done % config.eval_every == 0 and self.done < config.steps:
                    self.consider_best()
                    self.save()
            if self.done == config.steps or not self.judge.chooses:
                self.consider_best()
            self.save()
            if self.done == config.steps and self.ranks.agree(interrupted.is_set()):
                raise KeyboardInterrupt  # too late to stop this run, and in time for what was to come after it
        return self.done == config.steps

    def begin(self):
        """Write the first checkpoint, so that the run can be resumed from its first moment on."""
        self.consider_best()
        self.save()

    def one_step(self, workers):
        """Step number `done`; returns the logged line, or None where the step is not logged."""
        config, k = self.config, self.done
        step = self.sampler.step(k)
        masks = Masks(config.seed, k, config.dropout, config.masks)
        arguments = self.encoder, step, self.objective, masks, self.gradients, workers
        try:
            loss, z = cached_step(*arguments, config.chunk) if self.in_chunks else contrastive_step(*arguments)
        except InputError as error:  # a zero row, say, where dropout has left nothing of it
            raise InputError(f"step {k + 1} of training: {error}") from None
        total = self.gradients[0]
        mlm = None
        if config.mlm_weight:
            generator = np.random.default_rng([config.seed, k, 2])
            mlm = add_masked_lm(self.encoder, step, self.objective, masks, total, generator)
        self.ranks.all_reduce(total.flat)
        norm = global_norm(total)
        logged = (k + 1) % LOG_EVERY == 0 or k == 0 or k + 1 == config.steps
        if logged or isinstance(z, np.ndarray):
            # the one look at a value of the step, and on a device only every LOG_EVERY steps
            self._require_finite(loss if mlm is None else loss + mlm, norm)
        rate = learning_rate(config.lr, k, config.steps, round(config.warmup * config.steps), config.schedule)
        self.optimizer.step(total, rate, workers, clip_factor(norm, config.clip))
        if self.queue:
            self.queue.advance(self.encoder.params, step, z)
        self.done = k + 1
        if not logged or self.ranks.rank:
            return None
        line = {"step": self.done, "loss": float(loss), "lr": rate, "gradient_norm": float(norm)}
        if mlm is not None:
            line["mlm_loss"] = float(mlm)
        views = [view[:GEOMETRY_ROWS] for view in np.split(to_host(z), step.views)]
        line.update(
            alignment=alignment(views[0], views[1]),
            uniformity=uniformity(views[0]),
            effective_rank=effective_rank(views[0]),
        )
        self.folder.log(line)
        return line

    def consider_best(self):
        """Measure the model on what it is chosen by; where it is the best so far, `save` will keep it."""
        flat = self.encoder.params.flat
        if not array_module(flat).isfinite(flat).all():
            raise NonFiniteLoss(
                f"the parameters are not finite after step {self.done}; training stopped, and the last good checkpoint "
                f"is in {self.folder.path}"
            )
        self.ranks.require_equal(flat, f"the ranks have different parameters at step {self.done}")
        if self.ranks.rank:
            self.best_step = self.done
            return
        score = self.judge.score(self.encoder)
        if score is not None:
            self.folder.log({"step": self.done, "score": score})
            better = self.best_score is None or math.isnan(self.best_score) or score >= self.best_score
        else:
            better = True
        if better:
            self.best_step, self.best_score = self.done, score

    def save(self):
        """Write the resumable state, and the model where it is the best so far.

        The state goes first and knows the best step: killed before the second write, `restore` can make it again.
        """
        if self.ranks.rank:
            return
        best = {"best_step": self.best_step, "best_score": self.best_score}
        save_state(self.folder.last, self._buffers(), {"step": self.done, **best})
        self._keep_best()
        self.folder.write_progress(seconds=self.seconds, steps=self.config.steps, **best)

    def restore(self):
        """Go on from what `save` wrote."""
        saved = load_state(self.folder.last, self._buffers())
        self.done = self.optimizer.steps = saved["step"]
        self.best_step, self.best_score = saved["best_step"], saved["best_score"]
        if self.queue:
            self.queue.pushed = self.done * self.config.batch
        self.seconds = self.folder.read_progress()["seconds"]
        if self.ranks.rank == 0:
            self._keep_best()
            self.folder.keep_metrics(self.done)
            self.folder.result.unlink(missing_ok=True)  # it told of the earlier stop

    def _keep_best(self):
        if self.best_step == self.done:
            save_parameters(self.folder.best, self.encoder.params)

    def _buffers(self):
        queue = self.queue.buffers() if self.queue else {}
        return {"parameters": self.encoder.params, **self.optimizer.buffers(), **queue}

    def _require_finite(self, loss, norm):
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise NonFiniteLoss(
                f"the loss is {float(loss)} and the gradient norm {float(norm)} at step {self.done + 1}; "
                f"training stopped, and the last good checkpoint is in {self.folder.path}"
            )


@contextmanager
def interruptible(ranks=SERIAL):
    """An Event that the first Ctrl-C sets; a second one interrupts at once. Outside the main thread, never set.

    With several ranks SIGTERM, by which some launchers pass Ctrl-C on, sets it too.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def stop(signum, frame):
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    signals = [signal.SIGINT] if ranks.size == 1 else [signal.SIGINT, signal.SIGTERM]
    previous = {number: signal.signal(number, stop) for number in signals}
    try:
        yield event
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
