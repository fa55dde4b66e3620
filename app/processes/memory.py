"""The memory of a process that has started."""

import gc


def settle_memory() -> None:
    """Look at what is here to stay no more: collecting it again took a tenth of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
