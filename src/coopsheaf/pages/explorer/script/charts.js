// Small charts, drawn as vector graphics.

function svgChart(width, height, title) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": title });
}

function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((value) => value >= raw * 0.999);
  const marks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) marks.push(at);
  return marks;
}

// Two outlines over the same bins: how strongly nodes broadcast, how strongly they listen.
function histogramChart(counts, high, most, caption) {
  const [width, height, base] = [330, 74, 58];
  const chart = svgChart(width, height, caption);
  const names = Object.keys(counts);
  const bins = counts[names[0]].length;
  const step = (width - 8) / bins;
  for (const name of names) {
    let line = `M4 ${base}`;
    counts[name].forEach((count, k) => {
      const y = base - (base - 6) * Math.sqrt(count / most);
      line += `V${y.toFixed(1)}H${(4 + (k + 1) * step).toFixed(1)}`;
    });
    chart.append(draw("path", { d: `${line}V${base}Z`, class: `outline ${name}` }));
  }
  chart.append(draw("path", { d: `M4 ${base}H${width - 4}`, class: "axis" }));
  for (const at of ticks(0, high, 5)) {
    const x = 4 + ((width - 8) * at) / high;
    const anchor = at === 0 ? "start" : x > width - 20 ? "end" : "middle";
    chart.append(draw("text", { x, y: height - 3, "text-anchor": anchor }, number(at)));
  }
  return chart;
}

// Shares of the actions in one layer, as one bar.
function shareBar(counts, names, theme) {
  const total = counts.reduce((sum, count) => sum + count, 0) || 1;
  const words = counts.map((count, k) => `${names[k]} ${percent(count / total)}`).join(", ");
  const bar = make("div", { class: "shares", role: "img", "aria-label": words });
  counts.forEach((count, k) => {
    if (!count) return;
    const [colour] = ACTION_LOOKS[names[k]];
    const piece = make(
      "span",
      { title: `${names[k]}: ${whole(count)} nodes, ${percent(count / total)}` },
      count / total > 0.12 ? percent(count / total) : "",
    );
    piece.style.flexGrow = String(count / total);
    piece.style.background = PALETTES[theme][colour];
    bar.append(piece);
  });
  return bar;
}

// Lines over epochs: the metric of each part above, the loss below.
function curveChart(training) {
  const [width, height, left, right] = [340, 190, 38, 6];
  const chart = svgChart(width, height, `Training curve: ${training.metric} and loss by epoch`);
  const rows = training.history;
  const epochs = rows.map((row) => row[0]);
  const last = Math.max(...epochs, 1);
  const x = (epoch) => left + ((width - left - right) * epoch) / last;
  const panel = (top, bottom, columns, title) => {
    const values = columns.flatMap(([, k]) => rows.map((row) => row[k])).filter(Number.isFinite);
    if (!values.length) return;
    const low = Math.min(...values);
    const high = Math.max(...values, low + 1e-9);
    const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low);
    for (const at of ticks(low, high, 3)) {
      chart.append(
        draw("path", { d: `M${left} ${y(at)}H${width - right}`, class: "gridline" }),
        draw("text", { x: left - 4, y: y(at) + 3, "text-anchor": "end" }, number(at)),
      );
    }
    for (const [name, k] of columns) {
      let line = "";
      rows.forEach((row) => {
        if (Number.isFinite(row[k]))
          line += `${line ? "L" : "M"}${x(row[0]).toFixed(1)} ${y(row[k]).toFixed(1)}`;
      });
      chart.append(draw("path", { d: line, class: `curve ${name}` }));
    }
    chart.append(draw("text", { x: left + 4, y: top + 3, class: "panel-title" }, title));
  };
  const best = x(training.best_epoch);
  chart.append(draw("path", { d: `M${best} 6V${height - 16}`, class: "best" }));
  panel(
    10,
    108,
    [
      ["train", 2],
      ["test", 4],
      ["val", 3],
    ],
    training.metric,
  );
  panel(126, height - 20, [["loss", 1]], "loss");
  for (const at of ticks(0, last, 5)) {
    const anchor = at === 0 ? "start" : x(at) > width - 16 ? "end" : "middle";
    chart.append(draw("text", { x: x(at), y: height - 4, "text-anchor": anchor }, number(at)));
  }
  return chart;
}

// Predicted over true values of the nodes shown.
function scatterChart(target) {
  const [size, left, bottom] = [330, 40, 300];
  const chart = svgChart(size, 330, "Predicted over true values");
  const known = [];
  for (let i = 0; i < nodes.count; i++) if (Number.isFinite(target.truth[i])) known.push(i);
  const every = Math.max(1, Math.ceil(known.length / 3000));
  const values = known.flatMap((i) => [target.truth[i], target.predicted[i]]);
  if (!values.length) return null;
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (high <= low) high = low + 1;
  const x = (value) => left + ((size - left - 8) * (value - low)) / (high - low);
  const y = (value) => bottom - ((bottom - 8) * (value - low)) / (high - low);
  for (const at of ticks(low, high, 5)) {
    chart.append(
      draw("path", { d: `M${left} ${y(at)}H${size - 8}`, class: "gridline" }),
      draw("text", { x: left - 4, y: y(at) + 3, "text-anchor": "end" }, number(at)),
      draw("text", { x: x(at), y: bottom + 14, "text-anchor": "middle" }, number(at)),
    );
  }
  chart.append(draw("path", { d: `M${x(low)} ${y(low)}L${x(high)} ${y(high)}`, class: "axis" }));
  let dots = "";
  for (let k = 0; k < known.length; k += every) {
    const i = known[k];
    dots += `M${x(target.truth[i]).toFixed(1)} ${y(target.predicted[i]).toFixed(1)}h0`;
  }
  chart.append(
    draw("path", { d: dots, class: "dots" }),
    draw("text", { x: size / 2, y: 328, "text-anchor": "middle" }, "true value; up: predicted value"),
  );
  return chart;
}

// How often each class was taken for each: truth down, prediction across.
function confusionTable(classes, table) {
  const head = make(
    "tr",
    {},
    make("th", { scope: "col", class: "corner" }, "true ↓ predicted →"),
    classes.map((name) => make("th", { scope: "col" }, label(name, 12))),
    make("th", { scope: "col" }, "right"),
  );
  const rows = classes.map((name, row) => {
    const total = table[row].reduce((sum, count) => sum + count, 0);
    const cells = table[row].map((count, column) => {
      const share = total ? count / total : 0;
      const cell = make(
        "td",
        {
          title: `${name} taken for ${classes[column]}: ${whole(count)}, ${percent(share)}`,
          class: row === column ? "hit" : "miss",
        },
        whole(count),
      );
      cell.style.setProperty("--share", share.toFixed(3));
      return cell;
    });
    const right = make("td", { class: "total" }, total ? percent(table[row][row] / total) : "–");
    return make("tr", {}, make("th", { scope: "row" }, label(name, 14)), cells, right);
  });
  return make(
    "div",
    { class: "wide" },
    make("table", { class: "confusion" }, make("thead", {}, head), make("tbody", {}, rows)),
  );
}

function dataTable(header, rows) {
  const numeric = header.map(
    (_, k) => rows.length > 0 && rows.every((row) => /^[−+–-]?[\d.,e %<∞−-]*$/.test(String(row[k]))),
  );
  const head = make(
    "tr",
    {},
    header.map((name, k) => make("th", { scope: "col", class: numeric[k] ? "numeric" : null }, name)),
  );
  const body = rows.map((row) =>
    make(
      "tr",
      {},
      row.map((cell, k) => {
        const text = String(cell);
        return make(
          k === 0 ? "th" : "td",
          { scope: k === 0 ? "row" : null, class: numeric[k] ? "numeric" : null },
          label(text, 60),
        );
      }),
    ),
  );
  return make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, body)));
}
