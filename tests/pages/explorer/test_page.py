"""The file: whole in itself, guarded by its policy, free of what names might smuggle in."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from pages.explorer.pages import HOSTILE, data_of, named_dataset, train

from coopsheaf.pages.explorer import explore, page


@pytest.fixture(scope="module")
def html() -> str:
    data = named_dataset()
    return explore(train(data), data, explain=range(len(HOSTILE))).html


class Reader(HTMLParser):
    """Elements, attributes and the text of scripts and styles, as a browser takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.inside.append((self.tags[-1][0] if self.tags else "", data))


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def test_nothing_comes_from_anywhere(html: str) -> None:
    for tag, attributes in read(html).tags:
        assert tag not in ("iframe", "object", "embed", "base", "img", "form")
        for name in ("src", "href", "action", "data", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), (tag, name, value)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert "style" not in attributes  # the policy would drop it
    outside = set(re.findall(r"https?://[^\s\"'`)]+", html))
    assert outside == {"http://www.w3.org/2000/svg"}  # the name of a language, not an address
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "@import", "url("):
        assert word not in html


def test_the_policy_names_what_is_there(html: str) -> None:
    (policy,) = [attributes["content"] for tag, attributes in read(html).tags if tag == "meta" and attributes.get("http-equiv")]  # fmt: skip
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_names_stay_in_the_data(html: str) -> None:
    assert [name[:40] for name in data_of(html)["nodes"]["names"][: len(HOSTILE)]] == [name[:40] for name in HOSTILE]  # fmt: skip
    reader = read(html)
    scripts = [attributes for tag, attributes in reader.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    for name in ("window.hacked = 1</script>", "<img src=x", "<b>bold", "alert(1)</script>"):
        assert name not in html
    assert html.count("</script>") == 2
    assert "{{" not in re.sub(r'<script type="application/json".*?</script>', "", html, flags=re.S)


def test_titles_are_escaped() -> None:
    content = {"title": "<script>1</script> & more"}
    made = page.render(content)
    assert "<title>&lt;script&gt;1&lt;/script&gt; &amp; more · coopsheaf</title>" in made


def test_data_is_not_filled_in_again() -> None:
    made = page.render({"title": "{{data}}", "names": ["{{title}}", "{{script}}", "\\1"]})
    assert '"names":["{{title}}","{{script}}","\\\\1"]' in made


def test_scripts_write_text_and_never_markup() -> None:
    folder = files("coopsheaf.pages.explorer") / "script"
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(f"{name}.js" for name in page.SCRIPTS)
    for name in names:
        text = (folder / name).read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "</"):  # fmt: skip
            assert word not in text, name
        assert len(text.splitlines()) <= 400, name
