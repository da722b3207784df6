"""Datasets by name: the real files have the published counts, generated ones load alike."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from published import (
    REAL_DATA,
    SMILES,
    needs_real_data,
    peptides_func_text,
    peptides_struct_text,
    platonov_arrays,
    write_fb100,
    write_fb100_splits,
    write_npz,
    write_peptides_split,
    write_text_gz,
)

from coopsheaf.data import registry
from coopsheaf.data.catalogue import Published
from coopsheaf.data.dataset import METRICS, TASKS, GraphDataset, NodeDataset, Processing
from coopsheaf.data.errors import DataError
from coopsheaf.data.importing import known_files
from coopsheaf.data.peptides import TARGETS
from coopsheaf.data.registry import (
    DATASETS,
    compare,
    load,
    load_dataset,
    missing_files,
    statistics,
    verify,
)

NAMES = [
    "roman-empire", "roman-empire-substitute", "amazon-ratings", "amazon-ratings-partial",
    "minesweeper", "tolokers", "questions", "squirrel", "squirrel-directed", "chameleon",
    "chameleon-directed", "texas", "wisconsin", "cornell", "cornell-corrected", "film", "penn94",
    "reed98", "amherst41", "johns-hopkins55", "cornell5", "peptides-func", "peptides-struct",
]  # fmt: skip
LONG_RANGE = [
    "barbell-10", "barbell-20", "barbell-50", "ring-transfer-5", "ring-transfer-10",
    "ring-transfer-20", "ring-transfer-35", "ring-transfer-50", "tree-transfer-5",
    "tree-transfer-8", "echo-like-sssp", "echo-like-ecc", "echo-like-diameter",
]  # fmt: skip
ABSENT = {
    "roman-empire",
    "amazon-ratings",
    "questions",
    "penn94",
    "peptides-func",
    "peptides-struct",
}
REAL = [name for name in NAMES if name not in ABSENT]

# name: nodes, edges as listed, features, classes, homophily, first split; then under the default
# processing: edges, self-loops, share of reciprocated edges
COUNTS: dict[
    str, tuple[int, int, int, int, float | None, tuple[int, int, int], int, int, float]
] = {
    "roman-empire-substitute": (
        22_662,
        32_927,
        300,
        18,
        0.047,
        (11_331, 5_665, 5_666),
        32_927,
        0,
        0.0,
    ),
    "amazon-ratings-partial": (
        24_492,
        91_904,
        300,
        5,
        0.381,
        (12_246, 6_123, 6_123),
        183_808,
        0,
        1.0,
    ),
    "minesweeper": (10_000, 39_402, 7, 2, 0.683, (5_000, 2_500, 2_500), 78_804, 0, 1.0),
    "tolokers": (11_758, 519_000, 10, 2, 0.595, (5_879, 2_939, 2_940), 1_038_000, 0, 1.0),
    "squirrel": (2_223, 46_998, 2_089, 5, 0.207, (1_053, 718, 452), 93_996, 0, 1.0),
    "squirrel-directed": (
        2_223,
        65_718,
        2_089,
        5,
        0.217,
        (1_053, 718, 452),
        65_718,
        140,
        37_160 / 65_578,
    ),
    "chameleon": (890, 8_854, 2_325, 5, 0.236, (409, 287, 194), 17_708, 0, 1.0),
    "chameleon-directed": (
        890,
        13_584,
        2_325,
        5,
        0.247,
        (409, 287, 194),
        13_584,
        50,
        9_360 / 13_534,
    ),
    "texas": (183, 325, 1_703, 5, 0.061, (87, 59, 37), 558, 0, 1.0),
    "wisconsin": (251, 515, 1_703, 5, 0.178, (120, 80, 51), 900, 0, 1.0),
    "cornell": (183, 298, 1_703, 5, 0.296, (87, 59, 37), 554, 0, 1.0),
    "cornell-corrected": (183, 298, 1_703, 5, 0.123, (87, 59, 37), 554, 0, 1.0),
    "film": (7_600, 33_391, 932, 5, 0.217, (3_648, 2_432, 1_520), 53_318, 0, 1.0),
    "reed98": (962, 37_624, 745, 2, None, (432, 216, 217), 37_624, 0, 1.0),
    "amherst41": (2_235, 181_908, 1_193, 2, None, (1_016, 508, 508), 181_908, 0, 1.0),
    "johns-hopkins55": (5_180, 373_172, 2_406, 2, None, (2_381, 1_190, 1_191), 373_172, 0, 1.0),
    "cornell5": (18_660, 1_581_554, 4_735, 2, None, (8_411, 4_205, 4_206), 1_581_554, 0, 1.0),
}
CLASS_COUNTS = {
    "minesweeper": (8_000, 2_000),
    "tolokers": (9_192, 2_566),
    "texas": (33, 1, 18, 101, 30),
    "wisconsin": (10, 70, 118, 32, 21),
    "cornell": (33, 1, 18, 101, 30),
    "cornell-corrected": (38, 16, 30, 82, 17),
}


def test_every_promised_name_is_there() -> None:
    shares = [f"directed-communities-{percent}" for percent in (0, 25, 50, 75, 100)]
    assert list(DATASETS) == [*NAMES, "minesweeper-generated", *shares, *LONG_RANGE]
    assert set(COUNTS) == set(REAL)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_is_complete(name: str) -> None:
    info = DATASETS[name]
    assert info.name == name
    assert info.title
    assert info.source
    assert info.licence
    assert info.task in TASKS
    assert info.metric in METRICS
    for file in info.files:
        assert file.url is None or file.url.startswith("https://")
        assert file.url is not None or info.remark
        known = file.sha256 or file.md5
        assert known or name == "penn94"
        assert file.sha256 is None or len(file.sha256) == 64
    assert bool(info.published_name) == (
        name not in ("roman-empire-substitute", "amazon-ratings-partial")
    )


def test_defaults_are_those_of_the_paper() -> None:
    stored = {
        name for name in NAMES if DATASETS[name].processing == Processing("stored", "keep", "raw")
    }
    assert stored == {
        "roman-empire", "roman-empire-substitute", "squirrel-directed", "chameleon-directed",
        "peptides-func", "peptides-struct",
    }  # fmt: skip
    normalized = {name for name in NAMES if DATASETS[name].processing.features == "row-normalized"}
    assert normalized == {"texas", "wisconsin", "cornell", "cornell-corrected", "film"}
    for name in set(NAMES) - stored:
        assert DATASETS[name].processing.direction == "undirected"
        assert DATASETS[name].processing.self_loops == "remove"
    assert DATASETS["cornell"].remark == "features and labels are those of Texas (defect upstream)"
    assert DATASETS["amazon-ratings-partial"].remark == "1.2 % of the edges missing"
    assert "not comparable" in DATASETS["roman-empire-substitute"].remark


def test_one_path_is_one_file() -> None:
    infos = DATASETS.values()
    paths = [file for info in infos for file in (*info.files, *info.relations.values())]
    assert {file.path: file for file in paths} == known_files()
    assert len(set(paths)) == len(known_files())


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Texas", "texas"), ("minesweper", "minesweeper"), ("peptides_func", "peptides-func")],
)
def test_an_unknown_name_gets_a_hint_and_the_choices(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{hint}'") as error:
        load(name)
    assert "'roman-empire', 'roman-empire-substitute'" in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"must be one of .*; got 'zzzz'$"):
        load("zzzz")


# The real files


@needs_real_data
@pytest.mark.parametrize("name", REAL)
def test_a_real_dataset_has_the_published_counts(name: str) -> None:
    nodes, edges, features, classes, homophily, split, processed_edges, loops, reciprocated = (
        COUNTS[name]
    )
    dataset = load(name, REAL_DATA)
    assert isinstance(dataset, NodeDataset)
    found = statistics(dataset)
    assert (found["nodes"], found["features"], found["classes"]) == (nodes, features, classes)
    assert found["edges"] == processed_edges
    assert found["split_sizes"][0] == split
    assert found["splits"] == DATASETS[name].published.splits
    if homophily is not None:
        assert found["edge_homophily"] == pytest.approx(homophily, abs=5.1e-4)
    assert found["self_loops"] == loops
    assert found["reciprocated"] == pytest.approx(reciprocated)
    assert sum(found["class_counts"]) == int((dataset.y >= 0).sum())
    assert found["class_counts"] == CLASS_COUNTS.get(name, found["class_counts"])
    assert dataset.processing == DATASETS[name].processing
    assert dataset.remark == DATASETS[name].remark
    assert len(dataset.checksum) == 64
    assert dataset.x.dtype == torch.float32
    labelled = dataset.y >= 0
    assert torch.equal((dataset.train | dataset.val | dataset.test).all(0), labelled)
    if dataset.processing.features == "row-normalized":
        sums = dataset.x.sum(1)
        assert torch.allclose(sums[sums > 0], torch.ones(()), atol=1e-5)
    assert edges == DATASETS[name].published.edges


@needs_real_data
@pytest.mark.parametrize(
    "name", [name for name in REAL if name not in ("tolokers", "johns-hopkins55", "cornell5")]
)
def test_a_real_dataset_is_verified(name: str) -> None:
    outcome = verify(name, REAL_DATA)
    assert outcome.differences == ()
    assert [path.relative_to(REAL_DATA).as_posix() for path in outcome.paths] == [
        file.path for file in DATASETS[name].files
    ]


@needs_real_data
def test_the_environment_names_the_folder_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COOPSHEAF_DATA", str(REAL_DATA))
    assert load("texas").name == "texas"
    assert missing_files("texas") == ()
    assert missing_files("penn94") == ("fb100/Penn94.mat",)


@needs_real_data
def test_cornell_has_the_nodes_of_texas_and_the_corrected_one_its_own() -> None:
    texas, cornell, corrected = (
        load(name, REAL_DATA) for name in ("texas", "cornell", "cornell-corrected")
    )
    assert isinstance(texas, NodeDataset)
    assert isinstance(cornell, NodeDataset)
    assert isinstance(corrected, NodeDataset)
    assert torch.equal(texas.x, cornell.x)
    assert torch.equal(texas.y, cornell.y)
    assert not torch.equal(cornell.y, corrected.y)
    assert torch.equal(cornell.train, corrected.train)
    pairs = [{tuple(edge) for edge in data.edge_index.T.tolist()} for data in (cornell, corrected)]
    assert len(pairs[0]) == len(pairs[1]) == 554
    assert len({texas.checksum, cornell.checksum, corrected.checksum}) == 3


@needs_real_data
def test_processing_can_be_chosen() -> None:
    stored = load("film", REAL_DATA, Processing())
    assert isinstance(stored, NodeDataset)
    assert stored.num_edges == 33_391
    assert set(stored.x.unique().tolist()) == {0.0, 1.0}
    assert statistics(stored)["self_loops"] == 122
    assert statistics(stored)["edge_homophily"] == pytest.approx(0.219, abs=5e-4)


@needs_real_data
@pytest.mark.parametrize(
    ("name", "edges", "latent"),
    [
        ("texas", 1089, 540),
        ("wisconsin", 1390, 503),
        ("cornell", 1064, 519),
        ("film", 54_782, 1465),
    ],
)
def test_relations_of_geom_gcn_are_read_where_they_are_asked_for(
    name: str, edges: int, latent: int
) -> None:
    plain = load_dataset(name, REAL_DATA)
    data = load_dataset(name, REAL_DATA, relations="poincare")
    assert isinstance(data, NodeDataset)
    assert isinstance(plain, NodeDataset)
    assert data.num_edges == edges
    assert data.edge_attr is not None
    assert torch.equal(data.edge_attr.sum(1), torch.ones(edges))
    columns = [name.startswith("latent") for name in data.edge_names]
    assert len(columns) == 8
    assert int(data.edge_attr[:, columns].sum()) == latent
    assert data.processing == Processing("stored", "remove", "row-normalized", "poincare")
    assert data.checksum != plain.checksum
    assert plain.edge_attr is None


@needs_real_data
def test_a_dataset_without_relations_refuses_them() -> None:
    for name in ("cornell-corrected", "minesweeper", "minesweeper-generated"):
        with pytest.raises(ValueError, match=f"`relations` of '{name}' must be one that was"):
            load_dataset(name, REAL_DATA, relations="poincare")


@needs_real_data
def test_the_conventions_of_the_lab_have_names() -> None:
    """Rows hear, repeated lines count once, and a stored loop twice."""
    for name, edges, loops in (("texas", 325, 16), ("wisconsin", 515, 16), ("film", 30_019, 93)):
        data = load_dataset(name, REAL_DATA, direction="rows", self_loops="double")
        assert isinstance(data, NodeDataset)
        assert data.num_edges == edges
        assert data.edge_weight is not None
        assert int(data.edge_weight.sum()) == edges + loops


@needs_real_data
def test_the_checksum_is_that_of_the_file() -> None:
    dataset = load("minesweeper", REAL_DATA)
    data = (REAL_DATA / "platonov/minesweeper.npz").read_bytes()
    assert dataset.checksum == hashlib.sha256(data).hexdigest()


# Generated files in the places of those that are not here


def forget_checksums(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """Accept any file under this name."""
    info = DATASETS[name]
    files = tuple(replace(file, sha256=None, md5=None, size=None) for file in info.files)
    monkeypatch.setitem(DATASETS, name, replace(info, files=files, **changes))


@pytest.mark.parametrize(
    ("name", "classes", "out"),
    [("roman-empire", 18, 18), ("amazon-ratings", 5, 5), ("questions", 2, 1)],
)
def test_a_generated_npz_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, classes: int, out: int
) -> None:
    arrays = platonov_arrays(40, 6, classes)
    write_npz(tmp_path / DATASETS[name].files[0].path, arrays)
    published = Published(40, 120, 6, classes, 10, (20, 10, 10))
    forget_checksums(monkeypatch, name, published=published)
    assert verify(name, tmp_path).differences == ()
    dataset = load(name, tmp_path)
    assert isinstance(dataset, NodeDataset)
    assert dataset.out_channels == out
    assert dataset.num_edges == (120 if name == "roman-empire" else 240)
    assert dataset.metric == ("auroc" if name == "questions" else "accuracy")
    monkeypatch.setitem(
        DATASETS, name, replace(DATASETS[name], published=replace(published, nodes=41, classes=3))
    )
    assert verify(name, tmp_path).differences == (
        "nodes must be 41; found 40",
        f"classes must be 3; found {classes}",
    )


def test_a_generated_penn94_loads_and_a_change_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "fb100").mkdir()
    mat = write_fb100(tmp_path / "fb100/Penn94.mat")
    write_fb100_splits(tmp_path / "fb100/fb100-Penn94-splits.npy")
    with pytest.raises(DataError, match=r"fb100-Penn94-splits\.npy: must have"):
        load("penn94", tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        forget_checksums(patch, "penn94")
        dataset = load("penn94", tmp_path)
        assert isinstance(dataset, NodeDataset)
        assert dataset.num_splits == 5
        assert dataset.out_channels == 2
        assert statistics(dataset)["class_counts"] == (10, 10)
        assert (tmp_path / "fb100/Penn94.mat.sha256").exists()
        mat.write_bytes(mat.read_bytes() + b" ")
        with pytest.raises(DataError, match="as at its first use"):
            load("penn94", tmp_path)


@pytest.mark.parametrize("name", ["peptides-func", "peptides-struct"])
def test_generated_peptides_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    text = peptides_func_text() if name == "peptides-func" else peptides_struct_text(TARGETS)
    (tmp_path / "lrgb").mkdir()
    write_text_gz(tmp_path / DATASETS[name].files[0].path, text)
    write_peptides_split(tmp_path / DATASETS[name].files[1].path)
    forget_checksums(monkeypatch, name)
    dataset = load(name, tmp_path)
    assert isinstance(dataset, GraphDataset)
    assert (
        dataset.out_channels == len(dataset.class_names) == (10 if name == "peptides-func" else 11)
    )
    found = statistics(dataset)
    assert (found["graphs"], found["features"], found["splits"]) == (len(SMILES), 9, 1)
    assert found["split_sizes"] == ((4, 1, 1),)
    assert any(
        "graphs must be 15535; found 6" in line for line in verify(name, tmp_path).differences
    )
    with pytest.raises(ValueError, match=r"`processing` of 'peptides-.*' must be"):
        load(name, tmp_path, Processing("undirected"))


def test_a_missing_file_is_named_and_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"questions\.npz.*COOPSHEAF_OFFLINE is set"):
        load("questions", tmp_path)
    with pytest.raises(DataError, match=r"missing platonov/questions\.npz"):
        verify("questions", tmp_path)
    with pytest.raises(DataError, match="is not published for download"):
        load("roman-empire-substitute", tmp_path)


@pytest.mark.parametrize("name", ["minesweeper", "texas", "reed98", "peptides-func"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    for file in DATASETS[name].files:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"damaged")
    with pytest.raises(
        DataError, match=f"{DATASETS[name].files[0].name}: must have .* bytes; found 7 bytes"
    ):
        load(name, tmp_path)


# Counting


def small_dataset(**changes: Any) -> NodeDataset:
    masks = torch.eye(4, dtype=torch.bool)
    fields: dict[str, Any] = {
        "name": "small",
        "x": torch.ones(4, 2),
        "edge_index": torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 2, 0]]),
        "y": torch.tensor([0, 0, 1, -1]),
        "train": masks[:1],
        "val": masks[1:2],
        "test": masks[2:3],
        "task": "multiclass",
        "metric": "accuracy",
    }
    return NodeDataset(**{**fields, **changes})


def test_statistics_of_a_small_graph() -> None:
    assert statistics(small_dataset()) == {
        "graphs": None,
        "nodes": 4,
        "edges": 5,
        "features": 2,
        "classes": 2,
        "class_counts": (2, 1),
        "splits": 1,
        "split_sizes": ((1, 1, 1),),
        "edge_homophily": pytest.approx(3 / 4),  # the edge of the unlabelled node does not count
        "self_loops": 1,
        "reciprocated": pytest.approx(2 / 4),
    }


def test_statistics_of_odd_graphs() -> None:
    empty = torch.empty(2, 0, dtype=torch.int64)
    assert statistics(small_dataset(edge_index=empty))["edge_homophily"] is None
    unknown = statistics(small_dataset(y=torch.full((4,), -1), class_names=("a", "b")))
    assert (unknown["classes"], unknown["class_counts"]) == (2, (0, 0))
    real = statistics(small_dataset(y=torch.rand(4, 3), task="regression", metric="mae"))
    assert (real["classes"], real["class_counts"], real["edge_homophily"]) == (3, None, None)


def test_published_homophily_counts_to_its_last_decimal() -> None:
    found = {**statistics(small_dataset()), "edge_homophily": 0.0469}
    published = Published(4, 5, 2, 2, 1, (1, 1, 1), 0.05, self_loops=1)
    assert compare(published, found) == ()
    assert compare(replace(published, edge_homophily=0.047), found) == ()
    assert compare(replace(published, edge_homophily=0.046), found) == (
        "edge_homophily must be 0.046; found 0.047",
    )


def test_names_are_exported() -> None:
    assert all(hasattr(registry, name) for name in registry.__all__)


@pytest.mark.parametrize("name", [name for name in DATASETS if DATASETS[name].generate])
def test_what_is_generated_is_what_its_entry_says(name: str) -> None:
    info, dataset = DATASETS[name], load(name)
    assert (dataset.name, dataset.task, dataset.metric) == (name, info.task, info.metric)
    assert verify(name).differences == ()


def test_many_generated_graphs_are_taken_as_they_are() -> None:
    with pytest.raises(ValueError, match="as it is generated as many graphs"):
        load_dataset("echo-like-diameter", direction="undirected")
