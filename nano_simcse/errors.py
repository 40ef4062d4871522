"""What can go wrong through no fault of the code, one class each, so a caller can tell them apart.

Every message is one sentence that names the offending value and what was expected. The command line prints
it and exits with status 2; a traceback is left for defects.
"""


class InputError(ValueError):
    """A file, option or argument is unusable as given."""


class CheckpointError(InputError):
    """A model folder or checkpoint is missing, truncated, foreign, or lists the wrong parameters."""


class DeviceError(InputError):
    """The requested device cannot be used; the message names the missing part and the extra to install."""


class NonFiniteLoss(ArithmeticError):
    """A loss became NaN or infinite; the message names the step."""


class RepresentationCollapse(RuntimeError):
    """The embeddings no longer tell their inputs apart; the message names every sign that was found."""


class DegenerateTemperature(InputError):
    """A temperature is not a positive number, or below the floor that the objective was given."""


class MetricMismatch(InputError):
    """An index would compare vectors by another measure than the one they were trained with."""


class TooFewNegatives(InputError):
    """A row of the loss has fewer negatives than the objective demands; the message names the row."""


class StaleIndex(InputError):
    """Vectors of one encoder would be compared with vectors of another; the message names both versions."""
