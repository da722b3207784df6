"""Reading delimited files: what is accepted, and one clear line for everything else."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.reading import inputs
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.inputs import open_table
from coopsheaf.data.tables.reading.table import Table


@pytest.fixture(autouse=True, params=["arrow", "python"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both readers, whatever is read, give the same or say the same."""
    monkeypatch.setattr(inputs, "has_pyarrow", lambda: request.param == "arrow")
    return request.param


def read_table(path: Path | str) -> Table:
    opened = open_table(path, "nodes")
    table = opened.read(opened.names)
    assert len(opened.checksum) == 64
    return table


def texts(cells: Cells) -> list[str]:
    return [cells.text(row) for row in range(len(cells))]


def write(tmp_path: Path, content: str | bytes, name: str = "nodes.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        "id,age,city\na,1,x\nb,2,y\n",
        "id\tage\tcity\na\t1\tx\nb\t2\ty",
        "id;age;city\r\na;1;x\r\nb;2;y\r\n",
        "id,age,city\ra,1,x\rb,2,y\r",
        "\ufeffid,age,city\na,1,x\nb,2,y\n",
        '"id","age","city"\n"a","1","x"\n"b","2","y"\n',
        "\nid, age, city\n\na, 1, x\nb, 2, y\n\n",
    ],
    ids=["comma", "tab", "semicolon", "old-mac", "bom", "quoted", "blank-lines-and-spaces"],
)
def test_one_table_in_many_spellings(tmp_path: Path, content: str) -> None:
    table = read_table(write(tmp_path, content))
    columns = {name: texts(cells) for name, cells in table.columns.items()}
    assert columns == {"id": ["a", "b"], "age": ["1", "2"], "city": ["x", "y"]}


def test_quoted_separators_quotes_and_line_breaks(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, 'id,"a;b;c;d"\n1,"x, ""y""\nz"\n2,w\n'))
    assert texts(table.columns["a;b;c;d"]) == ['x, "y"\nz', "w"]
    assert list(table.lines) == [2, 4]
    assert table.at(1, "a;b;c;d") == f"{table.path}, line 4, column 'a;b;c;d'"


def test_compressed(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"id,x\n1,2\n", mtime=0), "nodes.csv.gz")
    assert texts(read_table(path).columns["x"]) == ["2"]


def test_unnamed_first_column_has_the_name_that_pandas_gives_it(tmp_path: Path) -> None:
    assert list(read_table(write(tmp_path, ",x\n0,2\n")).columns) == ["Unnamed: 0", "x"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "nodes.csv must have a header and rows; it is empty"),
        (" \n\n", "nodes.csv must have a header and rows; it is empty"),
        (b"\xef\xbb\xbf", "nodes.csv must have a header and rows; it is empty"),
        ("id,x\n", "nodes.csv must have rows below its header; it has the header only"),
        ("id|x\n1|2\n", "line 1: the header must have two columns or more.*single column 'id|x'"),
        ("\n\nid x\n1 2\n", "line 3: the header must have two columns or more"),
        (
            "id,x\n1,2\n1,2,3\n",
            "line 3: every row must have 2 fields, as many as the header; got 3",
        ),
        ("id,x\n1,2\n\n3\n", "line 4: every row must have 2 fields, as many as the header; got 1"),
        ("id,x,x\n1,2,3\n", "line 1: column names must differ; columns 2 and 3 are both 'x'"),
        ("id,x,\n1,2,3\n", "line 1: every column must have a name; column 3 of 3 has none"),
        (b"id,x\na,b\nc,\xff\n", "line 3: the text must be UTF-8; byte 0xff at offset 11"),
        (b"\xef\xbb\xbfid,x\na,\xe4\n", "line 2: the text must be UTF-8; byte 0xe4 at offset 10"),
        ("id,x\n1,2\n".encode("utf-16"), "line 1: the text must be UTF-8; byte 0x.. at offset 0"),
        ("id,x\n1,\0\n", "line 2: the text must have no NUL characters"),
        ('id,x\n1,"2\n3,4\n', "line 2: a quoted field must end with a quote"),
        ('id,x\n1,"2"3\n', "line 2: quotes must enclose a whole field"),
        ('id,x\na","\n', "line 2: a quoted field must end with a quote"),
        ("id,x\n1," + "y" * 200_000 + "\n", "line 2: a field must have at most 131072 characters"),
    ],
)
def test_bad_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=message.replace("|", r"\|")) as error:
        read_table(path)
    assert str(error.value).startswith(str(path))
    assert len(str(error.value).splitlines()) == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.csv does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(DataError, match="must be a file; it is a folder"):
        read_table(tmp_path)
    with pytest.raises(DataError, match="cannot be read: not a valid path"):
        read_table("a\0b")
    with pytest.raises(DataError, match="cannot be read: "):
        read_table(write(tmp_path, "id,x\n1,2\n") / "below")


@pytest.mark.parametrize("data", [b"id,x\n1,2\n", gzip.compress(b"id,x\n1,2\n", mtime=0)[:-9], b""])
def test_damaged_gzip(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DataError, match=r"must be a complete gzip file|it is empty"):
        read_table(write(tmp_path, data, "nodes.csv.gz"))


def test_long_names_are_cut_in_messages(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        read_table(write(tmp_path, "a" * 100_000 + "\nb\n"))
    assert len(str(error.value)) < 500


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.binary(max_size=200) | st.text(alphabet=',;\t"\n\r a1é\u2028\x0b\x1c\0', max_size=60)
)
def test_any_bytes_give_a_table_or_one_line(tmp_path: Path, content: bytes | str) -> None:
    path = write(tmp_path, content)
    message = ""
    try:
        table = read_table(path)
    except DataError as error:
        message = str(error)
    if message:
        assert len(message.splitlines()) == 1
        assert str(path) in message
        return
    assert table.num_rows > 0
    assert {len(cells) for cells in table.columns.values()} == {table.num_rows}
