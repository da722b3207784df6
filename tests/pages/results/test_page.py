"""The page of results: whole, closed to scripts, and usable in a real browser."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser.chromium import Browser
from hypothesis import given, settings
from hypothesis import strategies as st
from pages.results.test_run_files import write_run
from report.example import make

from coopsheaf.pages import results_page
from coopsheaf.pages.results.run_files import find_runs
from coopsheaf.report import layout as plain_layout
from coopsheaf.train.records import Record
from lab.published import PAPER

page = partial(results_page, reference=PAPER)
layout = partial(plain_layout, reference=PAPER)

HOSTILE = "</style></script><script>alert('x')</script><img src=x onerror=alert(1)> & \"q\"\n\x00"
RECORDS = [
    *(make(split=split, test=0.8 + split / 100) for split in range(3)),
    make(model="gcn", semantics="", test=0.7),
    make(dataset="squirrel", metric="accuracy", test=0.4),
    make(
        dataset="roman-empire-substitute", metric="accuracy", dataset_remark="substitute features"
    ),
    make(dataset="own-x", metric="mae", test=3.5),
    make(dataset="own-x", metric="mae", model="mlp", semantics="", test=2.5),
]
VOID = {"meta", "br", "link", "img"}


class Page(HTMLParser):
    """Collects tags, attributes, links and tables; checks that tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.policy = ""
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert len(values) == len(attrs)
        self.tags.append(tag)
        self.attributes |= set(values)
        self.links += [values["href"] or ""] if "href" in values else []
        self.ids += [values["id"] or ""] if "id" in values else []
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"] or ""
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")
        if tag == "tr":
            self.cells.append([])
        if tag in ("th", "td"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data
        if "th" in self.open or "td" in self.open:
            self.cells[-1][-1] += data


def check_closed(text: str) -> Page:
    """Nothing from elsewhere, one script and one style, both of them those the policy names."""
    found = Page(text)
    assert found.tags.count("script") == found.tags.count("style") == 1
    assert not {"img", "link", "iframe", "object", "embed", "base", "form", "foreignobject"} & set(found.tags)  # fmt: skip
    assert "style" not in found.attributes
    assert not [name for name in found.attributes if name.startswith("on") or name == "src"]
    assert not re.search(r"https?:|url\(|@import|//[a-z]", re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL))  # fmt: skip
    assert "\x00" not in text
    for tag, source in (("style", "style-src"), ("script", "script-src")):
        digest = base64.b64encode(hashlib.sha256(found.texts[tag][0].encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in found.policy
    assert found.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in found.policy
    assert len(found.ids) == len(set(found.ids))
    return found


def test_the_page_is_whole() -> None:
    text = page(RECORDS, timing=True)
    found = check_closed(text)
    assert text.startswith("<!doctype html>")
    for piece in (
        'lang="en"',
        'name="viewport"',
        "color-scheme: light dark",
        "prefers-color-scheme: dark",
        "@media (max-width: 40rem)",
        "81.00 ± 0.82",
        "85.45 ± 0.53",
        "3 of 10 splits",
        "substitute features",
        "population standard deviation",
        "8 records of 3 models on 4 datasets",
    ):
        assert piece in text
    titles = found.texts["h2"]
    assert titles == [*(t.title for t in layout(RECORDS, timing=True)), "Scores of the runs"]
    assert found.links == [f"#part-{k}" for k in range(1, len(titles) + 1)]
    assert set(found.ids) >= {link.removeprefix("#") for link in found.links}


def test_tables_hold_what_other_formats_hold() -> None:
    (table, *_) = layout(RECORDS)
    cells = Page(page(RECORDS)).cells
    lines = cells[1 : 1 + len(table.lines)]
    for line, shown in zip(table.lines, lines, strict=True):
        assert shown[:2] == [line.model, line.source]
        for cell, said in zip(line.cells, shown[2:], strict=True):
            assert said == cell.text + ",".join(map(str, cell.notes))


def test_numbers_to_sort_by() -> None:
    text = page(RECORDS)
    assert 'data-value="85.45">85.45 ± 0.53</td>' in text
    assert '<td data-value="81.0">81.00 ± 0.82<sup>' in text
    assert re.search(r'data-sort="up">own-x<small>MAE', text)  # less is better
    assert re.search(r'data-sort="down">tolokers<small>AUROC', text)


def test_every_run_is_a_dot_and_the_best_comes_first() -> None:
    text = page(RECORDS)
    plots = dict(re.findall(r"<caption>([^,<]+),[^<]*.*?</caption>(.*?)</table>", text, re.DOTALL))
    assert list(plots) == ["own-x", "roman-empire-substitute", "squirrel", "tolokers"]
    tolokers = plots["tolokers"]
    assert tolokers.count('class="run"') == 4
    assert tolokers.count('class="mean"') == tolokers.count('class="band"') == 1
    assert "<title>split 2: 82.00</title>" in tolokers
    assert tolokers.count('<path class="published"') == 2
    assert plots["roman-empire-substitute"].count("published") == 0  # not the paper's data
    assert "3 of 10" in tolokers
    order = re.findall(r'<th scope="row">([^<]+)', tolokers)
    assert order == ["csnn, paper semantics", "gcn"]
    assert re.findall(r'<th scope="row">([^<]+)', plots["own-x"]) == [
        "mlp",
        "csnn, paper semantics",
    ]
    assert results_page(RECORDS).count('<path class="published"') == 0


def test_seeds_are_told_apart() -> None:
    text = page([make(seed=1), make(seed=2), make(model="gcn", semantics="", seed=1)])
    dots = text[text.index("<caption>") :]
    assert "csnn, paper semantics, seed 1<" in dots
    assert "csnn, paper semantics, seed 2<" in dots
    assert "gcn, seed" not in dots


def test_only_what_was_asked_for_is_shown() -> None:
    text = page(RECORDS, datasets=["tolokers"], models=["gcn"])
    assert "squirrel" not in text
    assert "1 record of 1 model on 1 dataset" in text
    assert check_closed(text).tags.count("caption") == 1


def test_no_records_is_said() -> None:
    assert "There are no results yet" in page([])
    check_closed(page([]))


def with_runs(folder: Path, records: list[Record], **options: Any) -> str:
    return page(records, runs=find_runs(folder), folder=folder, **options)


RUN_RECORD = make(dataset_checksum="c", seconds=12.0)


def test_runs_bring_curves_and_explorers(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one run")
    (tmp_path / "runs" / "one run" / "explorer.html").write_text("")
    write_run(tmp_path / "runs" / "b", split=1)
    write_run(tmp_path / "runs" / "other", config_hash="z")  # belongs to no record
    records = [RUN_RECORD, make(dataset_checksum="c", split=1)]
    text = with_runs(tmp_path, records)
    found = check_closed(text)
    assert found.texts["h2"][-2:] == ["Training curves", "Runs on disk"]
    assert found.tags.count("figure") == 1
    assert text.count('class="curve val"') == 2
    assert text.count('class="curve train"') == 4  # scores and losses
    assert "split 1, seed 43: epoch 2, validation 50.00" in text
    assert "./runs/one%20run/explorer.html" in found.links
    assert text.count("explorer of csnn on tolokers, split 0") == 1
    rows = found.cells[-2:]
    assert [row[-1] for row in rows] == [f"{tmp_path}/runs/one run", f"{tmp_path}/runs/b"]
    assert rows[0][:7] == ["csnn", "tolokers", "0", "86.00", "85.00", "2", "12"]
    assert "Runs on disk" not in with_runs(tmp_path, records, models=["gcn"])


def test_links_start_from_where_the_page_is(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "a" / "explorer.html").write_text("")
    runs = find_runs(tmp_path / "runs")
    text = page([RUN_RECORD], runs=runs, folder=tmp_path / "pages" / "deep")
    assert "./../../runs/a/explorer.html" in Page(text).links


@pytest.mark.parametrize("name", ["javascript:alert(1)", "a?b#c", 'q"><script>', "per%20cent"])
def test_no_folder_can_be_anything_but_a_folder(name: str, tmp_path: Path) -> None:
    write_run(tmp_path / name)
    (tmp_path / name / "explorer.html").write_text("")
    (link,) = [x for x in check_closed(with_runs(tmp_path, [RUN_RECORD])).links if x[0] != "#"]
    assert re.fullmatch(r"\./[A-Za-z0-9%/.()_-]+", link)
    assert (tmp_path / name / "explorer.html").samefile(_follow(tmp_path, link))


def _follow(folder: Path, link: str) -> Path:
    from urllib.parse import unquote, urlsplit

    return folder / unquote(urlsplit(link).path)


def test_runs_without_a_curve_have_no_chart(tmp_path: Path) -> None:
    for history in ([], [[1, 2.0]]):
        write_run(tmp_path, result={"history": history, "best_epoch": 0})
        text = with_runs(tmp_path, [RUN_RECORD])
        assert "Training curves" not in text
        assert "Runs on disk" in text


def test_no_name_can_script_or_break_the_page(tmp_path: Path) -> None:
    plain = check_closed(page([make()], timing=True))
    for field in ("dataset", "model", "dataset_remark", "metric", "semantics", "machine", "recipe"):
        found = check_closed(page([make(**{field: HOSTILE})], timing=True))
        assert found.attributes <= plain.attributes
        assert set(found.tags) <= set(plain.tags) | {"sup", "ol", "li"}
    record = make(model=HOSTILE, dataset=HOSTILE, config_hash=HOSTILE, dataset_checksum=HOSTILE)
    write_run(
        tmp_path,
        model=HOSTILE,
        dataset=HOSTILE,
        config_hash=HOSTILE,
        dataset_checksum=HOSTILE,
    )
    found = check_closed(with_runs(tmp_path, [record]))
    assert found.tags.count("figure") == 1
    versions = make(versions={"torch": HOSTILE, "coopsheaf": HOSTILE})
    check_closed(page([versions]))


@settings(max_examples=40, deadline=None)
@given(
    dataset=st.text(max_size=20),
    model=st.text(max_size=20),
    remark=st.text(max_size=20),
    metric=st.text(max_size=8),
)
def test_any_text_can_be_a_name(dataset: str, model: str, remark: str, metric: str) -> None:
    check_closed(
        page(
            [make(dataset=dataset, model=model, dataset_remark=remark, metric=metric)], timing=True
        )
    )


@pytest.mark.parametrize("score", [None, 1e300, -1.0, 0.0])
def test_any_score_can_be_shown(score: float | None) -> None:
    text = page([make(test=score), make(test=0.5, split=1), make(model="gcn", test=0.5)])
    check_closed(text)
    assert not re.search(r'(x1|x2|cx|x|width)="-?(nan|inf)', text)


# From here on in a real browser.


@pytest.fixture
def browser(browser: Browser) -> Any:
    """Playwright's own."""
    return browser.browser


def opened(browser: Any, file: Path, **options: Any) -> tuple[Any, list[str]]:
    """The page, and everything that went wrong on it."""
    context = browser.new_context(**options)
    tab, troubles = context.new_page(), []
    tab.on("console", lambda message: troubles.append(message.text))
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("dialog", lambda dialog: troubles.append(dialog.message))
    tab.on("request", lambda request: troubles.append(request.url) if request.url != file.as_uri() else None)  # fmt: skip
    tab.goto(file.as_uri())
    return tab, troubles


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "explorer.html").write_text("<!doctype html><title>Explorer</title>")
    path = tmp_path / "report.html"
    many = [make(model=f"m{k}", dataset=d, semantics="", metric="accuracy") for k in range(4) for d in ("texas", "film", "wisconsin", "squirrel", "chameleon")]  # fmt: skip
    path.write_text(with_runs(tmp_path, [*RECORDS, *many, RUN_RECORD], timing=True), "utf-8")
    return path


FIRST = "[...document.querySelector('table.sources').tBodies[0].rows].filter(r => !r.hidden)"


def test_tables_are_sorted_with_the_keyboard(browser: Any, file: Path) -> None:
    tab, troubles = opened(browser, file)
    models = f"{FIRST}.map(r => r.cells[0].textContent)"
    values = f"{FIRST}.map(r => r.cells[2].dataset.value ?? null)"
    before = tab.evaluate(models)
    button = tab.locator("table.sources").first.locator("thead button").nth(2)
    head = button.locator("xpath=..")
    button.focus()
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    numbers = [float(v) for v in tab.evaluate(values) if v is not None]
    assert numbers == sorted(numbers, reverse=True)
    assert None not in tab.evaluate(values)[: len(numbers)]  # what is missing comes last
    tab.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "ascending"
    numbers = [float(v) for v in tab.evaluate(values) if v is not None]
    assert numbers == sorted(numbers)
    assert None not in tab.evaluate(values)[: len(numbers)]
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert tab.evaluate(models) == before
    tab.locator("table.sources").first.locator("thead button").first.click()
    assert tab.evaluate(models) == sorted(before)
    assert troubles == []


def test_lines_can_be_narrowed(browser: Any, file: Path) -> None:
    tab, troubles = opened(browser, file)
    sources = f"[...new Set({FIRST}.map(r => r.className))]"
    assert set(tab.evaluate(sources)) == {"paper", "ours"}
    for source in ("ours", "paper"):
        button = tab.get_by_role("button", name=source, exact=True)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert tab.evaluate(sources) == [source]
    tab.get_by_role("button", name="all lines").click()
    assert set(tab.evaluate(sources)) == {"paper", "ours"}
    tab.get_by_role("link", name="explorer of csnn").click()
    assert tab.title() == "Explorer"
    assert len(troubles) == 1  # the request for the explorer


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_both_colour_schemes(browser: Any, file: Path, scheme: str) -> None:
    phone = {"width": 360, "height": 740}
    tab, troubles = opened(browser, file, viewport=phone, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    ink, paper = (
        tab.evaluate(f"getComputedStyle(document.body).{what}")
        for what in ("color", "backgroundColor")
    )
    light, dark = (sum(map(int, re.findall(r"\d+", colour))) for colour in (paper, ink))
    assert (light > dark) == (scheme == "light")
    assert abs(light - dark) > 500
    widths = tab.evaluate("[...document.querySelectorAll('svg.strip, svg.plot')].map(s => s.clientWidth)")  # fmt: skip
    assert min(widths) > 80
    assert troubles == []


BOLD = "Number(getComputedStyle(cell).fontWeight) >= 600"


def bold(tab: Any, table: int) -> list[tuple[int, str]]:
    """Column and text of every bold number of a table."""
    found = tab.evaluate(
        f"[...document.querySelectorAll('table.sources')[{table}].tBodies[0].rows].filter(r => !r.hidden)"
        f".flatMap(r => [...r.cells].map((cell, k) => [k, cell.textContent, {BOLD}]))"
    )
    return [(column, text) for column, text, strong in found if strong]


def test_bold_is_the_best_of_a_column_that_is_shown(browser: Any, tmp_path: Path) -> None:
    def runs(model: str, tests: list[float], **changes: Any) -> list[Record]:
        return [make(model=model, semantics="", split=k, test=test, **changes) for k, test in enumerate(tests)]  # fmt: skip

    records = [
        *runs("mlp", [0.6, 0.7]),
        *runs("gcn", [0.8, 0.9]),
        *runs("lucky", [0.99]),  # a single run does not compete with means
        *runs("mlp", [2.0, 3.0], dataset="own-x", metric="mae"),
        *runs("gcn", [4.0, 5.0], dataset="own-x", metric="mae"),
    ]
    path = tmp_path / "report.html"
    path.write_text(results_page(records), "utf-8")
    tab, troubles = opened(browser, path)
    texts = [text for _, text in bold(tab, 0)]
    assert len(texts) == 2
    assert any(text.startswith("85.00") for text in texts)
    assert any(text.startswith("2.5") for text in texts)  # the least error
    assert troubles == []
    # Beside published numbers: of all lines, and of those that are left.
    path.write_text(page([*RECORDS, *runs("csnn", [0.1, 0.2], dataset="squirrel")]), "utf-8")
    tab, _ = opened(browser, path)
    for source in ("all lines", "ours", "paper"):
        tab.get_by_role("button", name=source, exact=True).click()
        for column, text in bold(tab, 0):
            values = tab.evaluate(
                f"{FIRST}.map(r => r.cells[{column}]).filter(c => 'value' in c.dataset && !('alone' in c.dataset)).map(c => Number(c.dataset.value))"
            )
            assert len(values) > 1
            assert float(text.split(" ")[0]) == max(values)


@pytest.mark.parametrize("width", [390, 1440])
def test_tables_can_be_read_at_any_width(browser: Any, file: Path, width: int) -> None:
    tab, troubles = opened(browser, file, viewport={"width": width, "height": 850})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    names = tab.evaluate("[...document.querySelectorAll('table.sources tbody th')].map(th => [th.textContent.length, th.offsetWidth, th.offsetHeight])")  # fmt: skip
    # No name is broken letter by letter: a short one has one line (and its source below, on a phone).
    assert all(high <= 60 for long, _, high in names if long <= 8)
    assert all(wide >= 60 for _, wide, _ in names)
    box = tab.locator(".scroll").first
    inside = box.evaluate("box => [box.scrollWidth, box.clientWidth]")
    hint = tab.locator(".scroll + .hint").first
    assert hint.is_visible() == (inside[0] > inside[1] + 1)
    if width == 390:
        # At least one column of numbers beside the names, whole.
        edges = tab.evaluate("[...document.querySelector('table.sources').tBodies[0].rows[0].cells].map(c => c.getBoundingClientRect().right)")  # fmt: skip
        assert sum(0 < edge <= 390 for edge in edges) >= 2
        assert not tab.locator("td.source").first.is_visible()
    else:
        assert tab.locator("td.source").first.is_visible()
    # With a click too.
    button = tab.locator("table.sources").first.locator("thead button:visible").nth(1)
    button.click()
    assert button.locator("xpath=..").get_attribute("aria-sort") in ("ascending", "descending")
    assert troubles == []


def test_it_works_without_its_script(browser: Any, file: Path) -> None:
    tab, _ = opened(browser, file, java_script_enabled=False)
    assert tab.locator("table.sources").first.is_visible()
    assert tab.locator("thead button").count() == 0


def test_hostile_names_do_nothing_in_a_browser(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    changes = {"model": HOSTILE, "dataset": HOSTILE, "dataset_remark": HOSTILE, "metric": HOSTILE}
    path.write_text(page([make(**changes)], timing=True), "utf-8")
    tab, troubles = opened(browser, path)
    assert troubles == []
    assert "<script>alert('x')</script>" in tab.locator("table").first.inner_text()
    # Even if one got in, the policy would not let it run.
    path.write_text(path.read_text("utf-8").replace("</main>", "<script>alert(1)</script></main>"))
    tab, troubles = opened(browser, path)
    assert [trouble for trouble in troubles if "Content Security Policy" in trouble]
    assert "1" not in troubles
