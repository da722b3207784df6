// Which columns moved the prediction of a node: bars to either side, numbers, and what muting does.

function columnTables(why) {
  const most = Math.max(...why.columns.flatMap(({ rows }) => rows.map((row) => Math.abs(row.attribution))));
  return make(
    "div",
    { class: "why-columns" },
    make(
      "p",
      { class: "quiet" },
      `By how much ${why.score} would fall if a column were at its mean (a derivative), and by how much it fell when it was muted: set to its mean.`,
    ),
    why.columns.flatMap((part) => [make("h4", {}, part.title), ...columnTable(part, most)]),
  );
}

function columnTable(part, most) {
  if (!part.rows.length) return [make("p", { class: "quiet" }, "none that moves it")];
  const head = columnHead(["column", "\u00a0", "attribution", "muted"]);
  const rows = part.rows.map((row) =>
    make(
      "tr",
      { title: throughText(row) },
      make(
        "th",
        { scope: "row" },
        label(row.name, 20),
        " ",
        row.value ? make("span", { class: "value" }, label(row.value, 14)) : null,
      ),
      make("td", { class: "sign" }, signedBar(row.attribution, most)),
      make("td", { class: `numeric ${row.attribution < 0 ? "against" : "for"}` }, signed(row.attribution)),
      make("td", { class: "numeric" }, signed(row.muted)),
    ),
  );
  return [
    columnGrid(head, rows),
    part.others > 0
      ? make("p", { class: "quiet" }, `and ${whole(part.others)} more that move it less`)
      : null,
  ];
}

function columnHead(names) {
  return make(
    "tr",
    {},
    names.map((name, k) => make("th", { scope: "col", class: k > 1 ? "numeric" : null }, name)),
  );
}

function columnGrid(head, rows) {
  return make(
    "div",
    { class: "wide" },
    make("table", { class: "by-column" }, make("thead", {}, head), make("tbody", {}, rows)),
  );
}

function throughText(row) {
  if (row.diffusion === null) return null;
  return `through the diffusion ${signed(row.diffusion)}, through the map learners ${signed(row.learners)}`;
}

// To the right of the middle if positive, to the left if negative.
function signedBar(value, most) {
  const bar = make("span", {});
  bar.style.setProperty("--share", most > 0 ? (Math.abs(value) / most).toFixed(3) : "0");
  return make("span", { class: `signed-bar ${value < 0 ? "against" : "for"}` }, bar);
}

// By how much the score gets worse without each column, for all nodes together.
function importancePanel() {
  const { metric, where, score, repeats, rows, others } = content.importance;
  const most = Math.max(...rows.map((row) => Math.abs(row.drop)));
  const lines = rows.map((row) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, label(row.name, 24)),
      make("td", { class: "sign" }, signedBar(row.drop, most)),
      make("td", { class: "numeric" }, signed(row.drop)),
      make("td", { class: "numeric quiet" }, number(row.spread, 2)),
    ),
  );
  return [
    make(
      "p",
      { class: "quiet" },
      `The ${metric} on ${where} is ${number(score)}; by how much it gets worse when a column is shuffled among the nodes, ${repeats} times.`,
    ),
    columnGrid(columnHead(["column", "\u00a0", "worse by", "±"]), lines),
    others > 0 ? make("p", { class: "quiet" }, `and ${whole(others)} more columns`) : null,
  ];
}
