"""The pieces of the explanatory figures: what they say about matrices and vectors is so."""

from __future__ import annotations

import pytest
import torch
from graphs import randn
from hypothesis import given
from hypothesis import strategies as st

from lab.concepts import drawing

pytest.importorskip("matplotlib")

SMALL = st.floats(-2, 2)


@given(a=st.tuples(SMALL, SMALL), b=st.tuples(SMALL, SMALL), centre=st.tuples(SMALL, SMALL))
def test_a_stalk_is_drawn_linearly(a: tuple, b: tuple, centre: tuple) -> None:
    both = drawing.in_stalk(centre, [a[0] + b[0], a[1] + b[1]])
    one, other = (
        drawing.in_stalk(centre, a),
        drawing.in_stalk(centre, torch.tensor(b, dtype=torch.float64)),
    )
    for k in range(2):
        assert both[k] - centre[k] == pytest.approx(one[k] + other[k] - 2 * centre[k], abs=1e-12)
    assert drawing.in_stalk(centre, (0, 0)) == centre


@given(n=st.integers(1, 5), d=st.integers(1, 3))
def test_norms_of_blocks(n: int, d: int) -> None:
    matrix = randn(n * d, n * d, seed=n)
    norms = drawing.block_norms(matrix, d)
    assert norms.shape == (n, n)
    for i in range(n):
        for j in range(n):
            block = matrix[i * d : (i + 1) * d, j * d : (j + 1) * d]
            torch.testing.assert_close(norms[i, j], block.norm(), rtol=1e-14, atol=0)


def test_zero_blocks_are_called_zero_and_others_are_not() -> None:
    matrix = torch.zeros(6, 6, dtype=torch.float64)
    matrix[0, 3] = 1e-300
    axes = drawing.new_figure(2, 2).add_subplot()
    drawing.draw_blocks(axes, matrix, 2, largest=1.0, names=("a", "b", "c"))
    zeros = [text.get_position() for text in axes.texts if text.get_text() == "0"]
    assert len(zeros) == 8
    assert (1.5, 0.5) not in zeros  # the block of row a and column b
    assert torch.equal(torch.as_tensor(axes.images[0].get_array()), matrix)


def test_the_edge_back_lies_beside_the_edge_there() -> None:
    axes = drawing.new_figure(2, 2).add_subplot()
    a, b = (0.0, 0.0), (3.0, 4.0)
    for start, end in ((a, b), (b, a)):
        drawing.draw_link(axes, start, end, live=True, gap=0.5, aside=0.1)
    there, back = (patch._posA_posB for patch in axes.patches)
    for ends in (there, back):
        assert torch.dist(torch.tensor(ends[0]), torch.tensor(ends[1])) == pytest.approx(4.0)
    # They are 0.2 apart: each is 0.1 to the right of the line between the nodes.
    apart = torch.tensor(there[0]) - torch.tensor(back[1])
    assert apart.norm() == pytest.approx(0.2, abs=1e-6)
