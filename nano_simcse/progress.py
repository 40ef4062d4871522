"""When a progress bar shows: one rule for everything that takes a `progress` argument."""


def hidden(progress):
    """tqdm's `disable`, from a `progress` that is True for a bar, False for none, None for a bar on a terminal."""
    return None if progress is None else not progress
