"""What comes next is made in a thread while the caller works with what there is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def make_ahead(
    make: Callable[[Item], Made], items: Iterable[Item], depth: int = 1
) -> Iterator[Made]:
    """``make`` of all items in their order, up to ``depth`` of them before they are asked for.

    One thread makes one after the other. What it raises is raised where the item would have come.
    However the caller ends, also half-way or by Ctrl-C, it first waits for the item that is being
    made, and no thread stays behind.

    Args:
        make: depends on its item alone, and changes nothing that the caller looks at. Of the modes
            of PyTorch it sees those of a new thread.
        items: what to make things from.
        depth: 0 makes each when it is asked for, in the caller's thread.
    """
    if depth == 0:
        yield from map(make, items)
        return
    rest = iter(items)
    waiting: deque[Future[Made]] = deque()
    threads = ThreadPoolExecutor(1, thread_name_prefix="coopsheaf-ahead")
    try:
        waiting.extend(threads.submit(make, item) for item in islice(rest, depth))
        while waiting:
            made = waiting.popleft().result()
            waiting.extend(threads.submit(make, item) for item in islice(rest, 1))
            yield made
            del made  # not to be held while the next one is waited for
    finally:
        threads.shutdown(cancel_futures=True)
