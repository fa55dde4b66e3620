"""Many threads that do the same thing at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def crowd(size: int, run: Callable[[], object]) -> None:
    """Run something in so many threads side by side; raises what any of them raises."""
    with ThreadPoolExecutor(size) as pool:
        for each in [pool.submit(run) for _ in range(size)]:
            each.result()
