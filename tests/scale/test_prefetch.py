"""What is made ahead: the same in the same order, errors where they belong, no thread left."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import torch
from train.small import node_dataset, recipe

from coopsheaf.scale import sampling
from coopsheaf.scale.feeds import make_batch_feed
from coopsheaf.scale.prefetch import make_ahead
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.run import run_split

DEPTHS = pytest.mark.parametrize("depth", [0, 1, 3, 100])


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("coopsheaf")]


@DEPTHS
def test_all_come_in_their_order(depth: int) -> None:
    assert list(make_ahead(lambda k: k * k, range(20), depth)) == [k * k for k in range(20)]
    assert list(make_ahead(lambda k: k, [], depth)) == []
    assert not ours()


def test_the_next_is_made_while_the_caller_works() -> None:
    made = [threading.Event() for _ in range(5)]
    for k in make_ahead(lambda k: made[k].set() or k, range(4), 1):
        if k < 3:
            assert made[k + 1].wait(10)  # without being asked for
        time.sleep(0.02)
        assert not made[min(k + 2, 4)].is_set()  # and no more than that


@DEPTHS
def test_an_error_comes_where_its_item_would(depth: int) -> None:
    def make(k: int) -> int:
        if k == 3:
            raise ValueError("`k` must not be 3")
        return k

    found: list[int] = []
    with pytest.raises(ValueError, match="must not be 3"):
        found.extend(make_ahead(make, range(9), depth))
    assert found == [0, 1, 2]
    assert not ours()


@DEPTHS
@pytest.mark.parametrize("end", [KeyboardInterrupt, RuntimeError, None], ids=str)
def test_no_thread_stays_when_the_caller_stops(depth: int, end: type[BaseException] | None) -> None:
    def work() -> None:
        for k in make_ahead(lambda k: time.sleep(0.01) or k, range(1000), depth):
            if k == 2:
                if end is None:
                    return
                raise end("enough")

    if end is None:
        work()
    else:
        with pytest.raises(end, match="enough"):
            work()
    assert not ours()


def test_interrupted_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    def make(k: int) -> int:
        if k == 1:
            signal.raise_signal(signal.SIGINT)  # in the thread: Python tells the main one
            time.sleep(0.05)
        return k

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(make_ahead(make, range(5), 1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not ours()


@pytest.mark.parametrize("kind", ["neighbours", "nodes", "ranges"])
def test_training_is_the_same_to_the_last_bit(kind: str, tmp_path: Path) -> None:
    data = node_dataset(n=60)
    results = []
    for depth in (0, 1, 2):
        settings = (f"batch.kind={kind}", "batch.size=9", f"batch.prefetch={depth}")
        settings += ("model.dropout=0.3", "train.epochs=3")
        run, _ = run_split(recipe().set(*settings), data, 0)
        results.append(torch.cat([p.flatten() for p in run.model.parameters()]))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
    assert not ours()


def test_it_is_on_unless_the_settings_or_the_sampler_say_no(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float32}

    def depth(**settings: int) -> int:
        config = BatchConfig("neighbours", size=9, **settings)
        return make_batch_feed(node_dataset(n=60), 0, config, **options).prefetch

    assert [depth(), depth(prefetch=0), depth(prefetch=4)] == [1, 0, 4]
    # pyg-lib draws from the generator of the whole process, as dropout does.
    monkeypatch.setattr(sampling.torch_geometric.typing, "WITH_PYG_LIB", True)
    assert depth() == 0
    with pytest.raises(ValueError, match="`prefetch` must be an integer of at least 0"):
        BatchConfig("nodes", prefetch=-1)


def test_settings_of_before_have_the_hash_of_before() -> None:
    plain = recipe().set("batch.kind=nodes")
    assert "prefetch" not in str(plain.to_mapping())
    assert plain.hash() != plain.set("batch.prefetch=2").hash()
