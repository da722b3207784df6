// Finds nodes by number or name while one types.

const FOUND = 12;

const searchTexts = lazily(() => (nodes.names ? nodes.names.map((name) => name.toLowerCase()) : null));

// Exact matches first, then beginnings, then whatever contains the words.
function findNodes(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const best = [[], [], []];
  const names = searchTexts();
  const rank = (candidate) =>
    candidate === wanted ? 0 : candidate.startsWith(wanted) ? 1 : candidate.includes(wanted) ? 2 : 3;
  for (let i = 0; i < nodes.count; i++) {
    let place = names ? rank(names[i]) : 3;
    const id = String(nodes.id[i]);
    if (id === wanted) place = 0;
    else if (!names && id.startsWith(wanted)) place = Math.min(place, 1);
    if (place < 3 && best[place].length < FOUND) best[place].push(i);
  }
  return best.flat().slice(0, FOUND);
}

function setUpSearch() {
  const box = byId("search");
  const list = byId("found");
  let found = [];
  let active = -1;

  const close = () => {
    list.hidden = true;
    active = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const take = (node) => {
    close();
    choose(node, { center: true });
  };
  const mark = (next) => {
    active = next;
    [...list.children].forEach((item, k) => item.setAttribute("aria-selected", String(k === active)));
    if (active >= 0) {
      box.setAttribute("aria-activedescendant", `found-${active}`);
      list.children[active].scrollIntoView({ block: "nearest" });
    }
  };
  const show = () => {
    found = findNodes(box.value);
    const items = found.map((node, k) =>
      make(
        "li",
        {
          id: `found-${k}`,
          role: "option",
          "aria-selected": "false",
          onpointerdown: (event) => {
            event.preventDefault();
            take(node);
          },
        },
        label(nodeTitle(node), 40),
        make("span", { class: "quiet" }, nodes.names ? ` ${nodes.id[node]}` : ` ${outcomeText(node)}`),
      ),
    );
    if (box.value.trim() && !items.length)
      items.push(
        make("li", { class: "quiet", role: "option", "aria-disabled": "true" }, "No such node is shown"),
      );
    replace(list, items);
    list.hidden = items.length === 0;
    box.setAttribute("aria-expanded", String(!list.hidden));
    active = -1;
  };
  box.addEventListener("input", show);
  box.addEventListener("focus", show);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && found.length) mark((active + 1) % found.length);
    else if (event.key === "ArrowUp" && found.length) mark((active + found.length - 1) % found.length);
    else if (event.key === "Enter" && found.length) {
      take(found[Math.max(active, 0)]);
      byId("canvas").focus({ preventScroll: true });
    } else if (event.key === "Escape") {
      box.value = "";
      close();
      box.blur();
      event.stopPropagation();
      byId("canvas").focus({ preventScroll: true });
      choose(-1);
    } else return;
    event.preventDefault();
  });
}
