"use strict";
// Without this script the page shows everything; with it, tables can be sorted and narrowed.

function compare(way, sign) {
  return (a, b) => {
    if (way === "word") return sign * a.text.localeCompare(b.text, undefined, { numeric: true });
    if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
    return sign * (a.value - b.value);
  };
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const way = head.dataset.sort;
    if (!way) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    // First the best on top (or A to Z), then the other way round, then as it was.
    const turns = way === "down" ? ["descending", "ascending"] : ["ascending", "descending"];
    button.addEventListener("click", () => {
      const next = turns[turns.indexOf(head.getAttribute("aria-sort")) + 1];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (!next) {
        body.append(...original);
        return;
      }
      head.setAttribute("aria-sort", next);
      const entries = original.map((row) => {
        const cell = row.cells[column];
        const value = "value" in cell.dataset ? Number(cell.dataset.value) : null;
        return { row, value, text: cell.textContent };
      });
      entries.sort(compare(way, next === "ascending" ? 1 : -1));
      body.append(...entries.map((entry) => entry.row));
    });
  });
}

// The best of every column among the lines that are shown, in bold.
function markBest(table) {
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const way = head.dataset.sort;
    if (way !== "up" && way !== "down") return;
    for (const row of table.tBodies[0].rows) row.cells[column].classList.remove("best");
    const cells = rows.map((row) => row.cells[column]);
    const values = cells.filter((cell) => "value" in cell.dataset && !("alone" in cell.dataset));
    if (values.length < 2) return;
    const top = Math[way === "up" ? "min" : "max"](...values.map((cell) => Number(cell.dataset.value)));
    for (const cell of values) cell.classList.toggle("best", Number(cell.dataset.value) === top);
  });
}

// What does not fit can be scrolled; where that is so, it is said.
function makeHint(box) {
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = "There are more columns to the right: scroll sideways →";
  box.after(hint);
  const refresh = () => {
    hint.hidden = box.scrollWidth <= box.clientWidth + 1;
  };
  new ResizeObserver(refresh).observe(box);
  refresh();
}

function makeChoice() {
  const tables = [...document.querySelectorAll("table.sources")];
  const sources = new Set(tables.flatMap((t) => [...t.tBodies[0].rows].map((r) => r.className)));
  if (sources.size < 2) return;
  const group = document.createElement("div");
  group.className = "choice";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "Lines of the tables");
  const choices = [["", "all lines"], ["ours", "ours"], ["paper", "paper"]];
  for (const [source, label] of choices) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-pressed", String(source === ""));
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", "true");
      for (const table of tables) {
        for (const row of table.tBodies[0].rows) row.hidden = source !== "" && row.className !== source;
        markBest(table);
      }
    });
    group.append(button);
  }
  document.querySelector("header").append(group);
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll(".scroll").forEach(makeHint);
makeChoice();
