/* Queries: a list filled while scrolling, with answers built when opened. */
(() => {
  const { data, at, make, listed, words } = window.bakeoff;
  const STEP = 10;
  const LISTS = 4; // shown at first
  const best = data.contenders.indexOf(data.best);
  const nameOf = new Map(data.rows.map((row) => [row.label, row.name]));
  const missed = (query) => query.wanted.filter(([, , places]) => !places[best] || places[best] > data.depth);
  const spread = (query) => Math.max(...query.values) - Math.min(...query.values);
  const orders = {
    hard: (a, b) => a.values[best] - b.values[best],
    spread: (a, b) => spread(b) - spread(a),
  };

  /** The two best contenders that beat the leader on this query; equal rows count once. */
  function better(query) {
    const names = new Map();
    query.values.forEach((value, place) => {
      if (value > query.values[best] + 1e-9) names.set(nameOf.get(data.contenders[place]), value);
    });
    const first = [...names].sort((a, b) => b[1] - a[1]).slice(0, 2);
    return first.length ? `better: ${first.map(([name, value]) => `${name} ${value.toFixed(2)}`).join(" · ")}` : "";
  }

  function line(query) {
    const summary = make(
      "summary",
      {},
      make("span", { className: "asked" }, query.text),
      make("span", { className: "cat" }, query.category),
      make("span", { className: "val" }, query.values[best].toFixed(3)),
      make("span", { className: "better" }, better(query)),
    );
    const details = make("details", { className: "query" }, summary);
    details.dataset.query = query.id;
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(answer(query));
    });
    return details;
  }

  function grade(value) {
    const shade = value === null || value === 0 ? "none" : value >= data.highest ? "full" : "some";
    const chip = make("span", { className: `grade ${shade}` }, value === null ? "–" : String(value));
    chip.title = value === null ? "not judged" : `grade ${value}`;
    return chip;
  }

  /** A title that expands to the beginning of the text, if the result has it. */
  function title(number, query, ...after) {
    const text = data.texts[number];
    if (!text) return make("span", {}, data.titles[number], ...after);
    const details = make("details", { className: "doc" }, make("summary", {}, data.titles[number], ...after));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(make("p", {}, ...window.markWords(text, query.text)));
    });
    return details;
  }

  /** Contenders that returned the same documents share one list. */
  function answer(query) {
    const groups = new Map();
    query.top.forEach((documents, place) => {
      const key = documents.join(" ");
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(place);
    });
    const value = (places) => query.values[places[0]];
    const order = [...groups.values()].sort((a, b) => b.includes(best) - a.includes(best) || value(b) - value(a));
    const lists = make("div", { className: "lists", tabIndex: 0 });
    lists.setAttribute("role", "region");
    lists.setAttribute("aria-label", `What each contender returned for ${query.id}`);
    const column = (places) => {
      const rows = query.top[places[0]].map((number, place) =>
        make(
          "li",
          {},
          make("span", {}, String(place + 1)),
          grade(query.grades[places[0]][place]),
          title(number, query),
        ),
      );
      return make(
        "div",
        {},
        make("h3", {}, named(places)),
        make("p", { className: "score" }, `${data.measure} ${value(places).toFixed(3)}`),
        rows.length ? make("ol", {}, ...rows) : make("p", { className: "note" }, "No answer."),
      );
    };
    lists.append(...order.slice(0, LISTS).map(column));
    const rest = order.slice(LISTS);
    const all = make("button", { type: "button", hidden: !rest.length }, `Show ${rest.length} more lists`);
    all.addEventListener("click", () => {
      lists.append(...rest.map(column));
      all.remove();
    });
    return make("div", { className: "answer" }, lists, all, ...lost(query));
  }

  const note = (text) => [make("p", { className: "note" }, text)];

  /** The names of rows, equal rows once; only the first two of many. */
  function named(places) {
    const names = [...new Set(places.map((place) => nameOf.get(data.contenders[place])))];
    return names.length > 3 ? `${names.slice(0, 2).join(", ")} and ${names.length - 2} others` : listed(names);
  }

  function lost(query) {
    if (!query.relevant) return note("No document in this task is relevant to this query.");
    const away = missed(query);
    if (!away.length) {
      const all = query.relevant > query.wanted.length ? `the ${query.wanted.length} best` : `all ${query.relevant}`;
      const documents = query.relevant === 1 ? "the relevant document" : `${all} relevant documents`;
      return note(`${nameOf.get(data.best)} has ${documents} in its first ${data.depth}.`);
    }
    const rows = away.map(([number, value, places]) => {
      const mine = places[best] ? `place ${places[best]}` : `not among its first ${data.asked}`;
      const first = Math.min(...places.map((place) => place || Infinity));
      const others = places.flatMap((place, which) => (place === first ? [which] : []));
      const elsewhere = first < (places[best] || Infinity) ? `; place ${first} in ${named(others)}` : "";
      return make("li", {}, grade(value), title(number, query, " ", make("small", {}, mine + elsewhere)));
    });
    return [
      make("h3", {}, `What ${nameOf.get(data.best)} missed in its first ${data.depth}`),
      make("ul", { className: "missed" }, ...rows),
    ];
  }

  window.bakeoff.startQueries = () => {
    const list = at("list");
    if (!list) return;
    for (const query of data.queries) {
      const titles = new Set(query.top.flat().map((number) => data.titles[number]));
      query.search = [query.id, query.text, ...titles].join("\n").toLowerCase();
    }
    let upTo = STEP;
    function update() {
      const wanted = words("find");
      const category = at("category") ? at("category").value : "";
      const shown = data.queries.filter(
        (query) =>
          wanted.every((word) => query.search.includes(word)) &&
          (!category || query.category === category) &&
          (!at("missed").checked || missed(query).length),
      );
      const order = orders[at("order").value];
      if (order) shown.sort(order);
      at("count").textContent = `${shown.length} of ${data.queries.length} queries.`;
      list.replaceChildren(...shown.slice(0, upTo).map(line));
      at("next").hidden = shown.length <= upTo;
    }
    for (const control of ["find", "category", "order", "missed"].map(at).filter(Boolean)) {
      control.addEventListener("input", () => {
        upTo = STEP;
        update();
      });
    }
    at("next").addEventListener("click", () => {
      upTo += STEP;
      update();
    });
    update();
  };
})();
