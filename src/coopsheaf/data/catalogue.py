"""The datasets by name: what they are made of, what is known of them, how they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from coopsheaf.data import known_files as known
from coopsheaf.data.barbell import barbell
from coopsheaf.data.dataset import GraphDataset, NodeDataset, Processing
from coopsheaf.data.directed_communities import told_by_direction
from coopsheaf.data.distances import echo_like
from coopsheaf.data.fb100 import read_fb100
from coopsheaf.data.files import RemoteFile
from coopsheaf.data.geom_gcn import read_geom_gcn
from coopsheaf.data.peptides import (
    LABELS,
    TARGETS,
    read_peptides_func,
    read_peptides_struct,
)
from coopsheaf.data.platonov import read_platonov
from coopsheaf.data.synthetic import minesweeper
from coopsheaf.data.tensors import GraphTensors, NodeTensors
from coopsheaf.data.transfer import transfer

UNDIRECTED = Processing("undirected", "remove", "raw")
NORMALIZED = Processing("undirected", "remove", "row-normalized")
STORED = Processing("stored", "keep", "raw")

Reader = Callable[[Sequence[Path]], NodeTensors | GraphTensors]


@dataclass(frozen=True)
class Published:
    """Counts that a sound copy agrees with: published, or made from the published file.

    Args:
        nodes: number of nodes (of all graphs).
        edges: number of edges as the file lists them.
        features: features per node.
        classes: number of classes, labels or targets.
        splits: number of splits.
        split_sizes: training, validation and test nodes (or graphs) of the first split.
        edge_homophily: share of the edges with one class at both ends, under the default
            processing, to as many decimals as are written.
        class_counts: nodes of each class.
        self_loops: edges from a node to itself, as the file lists them.
        graphs: number of graphs, where there are many.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    splits: int = 10
    split_sizes: tuple[int, int, int] | None = None
    edge_homophily: float | None = None
    class_counts: tuple[int, ...] | None = None
    self_loops: int | None = 0
    graphs: int | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """All that is known of a dataset before it is read.

    Args:
        name: the name to load it by.
        title: what it is, in a line.
        files: what it is read from, in the order the reader wants.
        reader: makes tensors of the files.
        task, metric: keys of ``TASKS`` and ``METRICS``.
        published: counts that a sound copy agrees with.
        processing: what is done to the stored graph unless told otherwise.
        licence: of the files; "none stated" where nobody says.
        source: whom to cite.
        published_name: what papers call it; empty if their numbers are about other data.
        class_names: names of the classes, labels or targets, where known.
        remark: what a table must say beside a number.
        generate: makes it on the spot; then there are no files.
        relations: files with relations of pairs of its nodes, by a key of ``RELATIONS``; they are
            read where somebody asks for them.
    """

    name: str
    title: str
    files: tuple[RemoteFile, ...]
    reader: Reader
    task: str
    metric: str
    published: Published
    processing: Processing
    licence: str
    source: str
    published_name: str = ""
    class_names: tuple[str, ...] = ()
    remark: str = ""
    generate: Callable[[], NodeDataset | GraphDataset] | None = None
    relations: Mapping[str, RemoteFile] = field(default_factory=dict)


def _no_files(paths: Sequence[Path]) -> NodeTensors:
    raise AssertionError("a generated dataset is not read")


def _barbell(size: int) -> DatasetInfo:
    nodes, arcs = 2 * size, 2 * size * (size - 1) + 2
    return DatasetInfo(
        f"barbell-{size}",
        f"generated: two cliques of {size} nodes, each asked for the mean of the other",
        (),
        _no_files,
        "regression",
        "rmse",
        Published(240 * nodes, 240 * arcs, 1, 1, 1, (160 * nodes, 40 * nodes, 40 * nodes)),
        STORED,
        "MIT",
        "generated here",
        generate=partial(barbell, size),
    )


def _transfer(shape: str, hops: int, nodes: int, arcs: int) -> DatasetInfo:
    return DatasetInfo(
        f"{shape}-transfer-{hops}",
        f"generated: carry one of five labels over {hops} hops of a {shape}",
        (),
        _no_files,
        "multiclass",
        "accuracy",
        Published(15 * nodes, 15 * arcs, 5, 5, 1, (5, 5, 5), class_counts=(3,) * 5),
        STORED,
        "MIT",
        "generated here",
        class_names=tuple("01234"),
        remark="training, validation and test hold the same graphs, one for each label",
        generate=partial(transfer, shape, hops),
    )


def _echo_like(target: str, title: str, arcs: int) -> DatasetInfo:
    nodes, block = 13_230, 441
    many = target == "diameter"
    sizes = (120, 30, 30) if many else (20 * block, 5 * block, 5 * block)
    return DatasetInfo(
        f"echo-like-{target}",
        f"generated, after ECHO-Synth: {title}, at most 40",
        (),
        _no_files,
        "regression",
        "mae",
        Published(nodes, arcs, 2, 1, 1, sizes, graphs=180 if many else None),
        STORED,
        "MIT",
        "generated here; not the graphs of ECHO",
        generate=partial(echo_like, target),
    )


def _platonov(
    name: str,
    title: str,
    file: str,
    published: Published,
    *,
    task: str = "multiclass",
    processing: Processing = UNDIRECTED,
    licence: str = "MIT",
    published_name: str = "",
    class_names: tuple[str, ...] = (),
    remark: str = "",
) -> DatasetInfo:
    return DatasetInfo(
        name,
        title,
        (known.platonov_file(file),),
        read_platonov,
        task,
        "auroc" if task == "binary" else "accuracy",
        published,
        processing,
        licence,
        'Platonov et al., "A critical look at the evaluation of GNNs under heterophily", 2023',
        published_name,
        class_names,
        remark,
    )


def _geom_gcn(
    name: str,
    title: str,
    published: Published,
    *,
    folder: str = "",
    splits: str = "",
    indexed_features: int | None = None,
    published_name: str = "",
    remark: str = "",
) -> DatasetInfo:
    return DatasetInfo(
        name,
        title,
        known.geom_gcn_files(folder or name, splits or None),
        partial(read_geom_gcn, indexed_features=indexed_features),
        "multiclass",
        "accuracy",
        published,
        NORMALIZED,
        "none stated",
        'Pei et al., "Geom-GCN: Geometric Graph Convolutional Networks", 2020',
        published_name or name,
        remark=remark,
        relations=known.relation_files(name),
    )


def _fb100(name: str, file: str, published: Published, *more: RemoteFile) -> DatasetInfo:
    remark = "" if more else "random splits: none are published"
    return DatasetInfo(
        name,
        f"friendships at one university ({file.replace('_', ' ')}): the gender of a user",
        (known.fb100_file(file), *more),
        read_fb100,
        "multiclass",
        "accuracy",
        published,
        UNDIRECTED,
        "none stated",
        'Lim et al., "Large Scale Learning on Non-Homophilous Graphs", 2021; '
        'Traud et al., "Social structure of Facebook networks", 2012',
        name,
        ("gender 1", "gender 2"),
        remark,
    )


def _peptides(
    name: str, title: str, file: RemoteFile, reader: Reader, task: str, classes: tuple[str, ...]
) -> DatasetInfo:
    published = Published(
        2_344_859, 4_773_974, 9, len(classes), 1, (10_873, 2_331, 2_331), graphs=15_535
    )
    return DatasetInfo(
        name,
        title,
        (file, known.PEPTIDES_SPLIT),
        reader,
        task,
        "ap" if task == "multilabel" else "mae",
        published,
        STORED,
        "CC BY-NC 4.0",
        'Dwivedi et al., "Long Range Graph Benchmark", 2022',
        name,
        classes,
    )


_ROMAN = "words of a text, joined where they follow or depend on one another: their syntactic role"
_AMAZON = "products often bought together: the class of their mean rating"
_SQUIRREL = (1053, 718, 452)
_CHAMELEON = (409, 287, 194)
_SQUIRREL_CLASSES = (756, 516, 397, 321, 233)
_CHAMELEON_CLASSES = (242, 134, 209, 164, 141)
_AMAZON_CLASSES = (6560, 9010, 5678, 2183, 1061)
_WEB = "pages of a university's computer science department: what kind of page"

_INFOS = (
    _platonov(
        "roman-empire", _ROMAN, "roman_empire",
        Published(22_662, 32_927, 300, 18, 10, (11_331, 5_665, 5_666), 0.05),
        processing=STORED, published_name="roman-empire",
    ),
    _platonov(
        "roman-empire-substitute", _ROMAN, "roman_empire_substitute",
        Published(22_662, 32_927, 300, 18, 10, (11_331, 5_665, 5_666), 0.047),
        processing=STORED, licence="mixed (text: CC BY-SA)",
        remark="substitute features: not comparable with published numbers",
    ),
    _platonov(
        "amazon-ratings", _AMAZON, "amazon_ratings",
        Published(24_492, 93_050, 300, 5, 10, (12_246, 6_123, 6_123), 0.38, _AMAZON_CLASSES),
        published_name="amazon-ratings",
    ),
    _platonov(
        "amazon-ratings-partial", _AMAZON, "amazon_ratings_partial",
        Published(24_492, 91_904, 300, 5, 10, (12_246, 6_123, 6_123), 0.381, _AMAZON_CLASSES),
        licence="none stated", remark="1.2 % of the edges missing",
    ),
    _platonov(
        "minesweeper", "cells of a grid with some numbers hidden: is there a mine", "minesweeper",
        Published(10_000, 39_402, 7, 2, 10, (5_000, 2_500, 2_500), 0.683, (8_000, 2_000)),
        task="binary", published_name="minesweeper", class_names=("free", "mine"),
    ),
    _platonov(
        "tolokers", "workers who shared a task: has one been banned", "tolokers",
        Published(11_758, 519_000, 10, 2, 10, (5_879, 2_939, 2_940), 0.595, (9_192, 2_566)),
        task="binary", published_name="tolokers", class_names=("not banned", "banned"),
    ),
    _platonov(
        "questions", "users who answered one another's questions: did one stay", "questions",
        Published(48_921, 153_540, 301, 2, 10, None, 0.84),
        task="binary", published_name="questions",
    ),
    _platonov(
        "squirrel", "Wikipedia pages about squirrels, without duplicates: class of their traffic",
        "squirrel_filtered",
        Published(2_223, 46_998, 2_089, 5, 10, _SQUIRREL, 0.207, _SQUIRREL_CLASSES),
        published_name="squirrel-filtered",
    ),
    _platonov(
        "squirrel-directed", "squirrel with the direction of its links",
        "squirrel_filtered_directed",
        Published(2_223, 65_718, 2_089, 5, 10, _SQUIRREL, 0.217, _SQUIRREL_CLASSES, 140),
        processing=STORED, published_name="squirrel-filtered-directed",
    ),
    _platonov(
        "chameleon", "Wikipedia pages about chameleons, without duplicates: class of their traffic",
        "chameleon_filtered",
        Published(890, 8_854, 2_325, 5, 10, _CHAMELEON, 0.236, _CHAMELEON_CLASSES),
        published_name="chameleon-filtered",
    ),
    _platonov(
        "chameleon-directed", "chameleon with the direction of its links",
        "chameleon_filtered_directed",
        Published(890, 13_584, 2_325, 5, 10, _CHAMELEON, 0.247, _CHAMELEON_CLASSES, 50),
        processing=STORED, published_name="chameleon-filtered-directed",
    ),
    _geom_gcn(
        "texas", _WEB,
        Published(183, 325, 1_703, 5, 10, (87, 59, 37), 0.061, (33, 1, 18, 101, 30), 16),
    ),
    _geom_gcn(
        "wisconsin", _WEB,
        Published(251, 515, 1_703, 5, 10, (120, 80, 51), 0.178, (10, 70, 118, 32, 21), 16),
    ),
    _geom_gcn(
        "cornell", _WEB,
        Published(183, 298, 1_703, 5, 10, (87, 59, 37), 0.296, (33, 1, 18, 101, 30), 3),
        remark="features and labels are those of Texas (defect upstream)",
    ),
    _geom_gcn(
        "cornell-corrected", _WEB,
        Published(183, 298, 1_703, 5, 10, (87, 59, 37), 0.123, (38, 16, 30, 82, 17), 3),
        folder="cornell_corrected", splits="cornell", published_name="cornell",
    ),
    _geom_gcn(
        "film", "actors who are on one Wikipedia page: class of the words on their own",
        Published(
            7_600, 33_391, 932, 5, 10, (3_648, 2_432, 1_520), 0.217,
            (853, 1_337, 1_630, 1_815, 1_965), 122,
        ),
        indexed_features=932,
    ),
    _fb100(
        "penn94", "Penn94",
        Published(41_554, 2_724_458, 4_814, 2, 5, (19_407, 9_703, 9_705), 0.47),
        known.PENN94_SPLITS,
    ),
    _fb100("reed98", "Reed98", Published(962, 37_624, 745, 2, 5)),
    _fb100("amherst41", "Amherst41", Published(2_235, 181_908, 1_193, 2, 5)),
    _fb100("johns-hopkins55", "Johns_Hopkins55", Published(5_180, 373_172, 2_406, 2, 5)),
    _fb100("cornell5", "Cornell5", Published(18_660, 1_581_554, 4_735, 2, 5)),
    _peptides(
        "peptides-func", "molecular graphs of peptides: ten functions",
        known.PEPTIDES_FUNC, read_peptides_func, "multilabel", LABELS,
    ),
    _peptides(
        "peptides-struct", "molecular graphs of peptides: eleven measures of their shape",
        known.PEPTIDES_STRUCT, read_peptides_struct, "regression", TARGETS,
    ),
    DatasetInfo(
        "minesweeper-generated", "minesweeper by its published recipe, generated on the spot",
        (), _no_files, "binary", "auroc",
        Published(10_000, 39_402, 7, 2, 10, (5_000, 2_500, 2_500), self_loops=0),
        UNDIRECTED, "MIT", "generated here", generate=minesweeper,
    ),
    *(
        DatasetInfo(
            f"directed-communities-{percent}",
            f"generated: the direction of {percent} % of arcs tells the class, of others homophily",
            (), _no_files, "binary", "accuracy",
            Published(1_000, 8_000, 2, 2, 10, (600, 200, 200), None, (500, 500), 0),
            STORED, "MIT", "generated here", generate=partial(told_by_direction, percent),
        )
        for percent in (0, 25, 50, 75, 100)
    ),
    *(_barbell(size) for size in (10, 20, 50)),
    *(_transfer("ring", hops, 2 * hops, 4 * hops) for hops in (5, 10, 20, 35, 50)),
    *(_transfer("tree", hops, 2 ** (hops + 1) - 1, 2 ** (hops + 2) - 4) for hops in (5, 8)),
    _echo_like("sssp", "hops from a source", 30_260),
    _echo_like("ecc", "hops to the furthest node", 30_260),
    _echo_like("diameter", "hops across the graph", 30_260),
)  # fmt: skip

# In the order in which they are listed.
DATASETS: dict[str, DatasetInfo] = {info.name: info for info in _INFOS}
