/* Queries: a list that is filled as far as it is read, and an answer that is made when it is opened. */
(() => {
  const { data, at, make, listed, words } = window.bakeoff;
  const STEP = 50;
  const best = data.contenders.indexOf(data.best);
  const missed = (query) => query.wanted.filter(([, , places]) => !places[best] || places[best] > data.depth);
  const spread = (query) => Math.max(...query.values) - Math.min(...query.values);
  const orders = {
    hard: (a, b) => a.values[best] - b.values[best],
    spread: (a, b) => spread(b) - spread(a),
  };

  /** The dots of all contenders, the best one's on top. */
  function strip(query) {
    const dots = make("span", { className: "strip" });
    dots.setAttribute("aria-hidden", "true");
    query.values.forEach((value, place) => {
      const colour = `var(--${data.colours[data.contenders[place]] || "c5"})`;
      const dot = make("i", { style: { left: `${value * 100}%`, background: colour } });
      dot.classList.toggle("top", place === best);
      if (place === best) dots.append(dot);
      else dots.prepend(dot);
    });
    return dots;
  }

  function line(query) {
    const summary = make(
      "summary",
      {},
      make("span", { className: "asked" }, query.text),
      make("span", { className: "cat" }, query.category),
      strip(query),
      make("span", { className: "val" }, query.values[best].toFixed(3)),
    );
    const details = make("details", { className: "query" }, summary);
    details.dataset.query = query.id;
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(answer(query));
    });
    return details;
  }

  function grade(value, highest) {
    const shade = value === null || value === 0 ? "none" : value >= highest ? "full" : "some";
    const chip = make("span", { className: `grade ${shade}` }, value === null ? "–" : String(value));
    chip.title = value === null ? "not judged" : `grade ${value}`;
    return chip;
  }

  /** Contenders that returned the same documents share one list. */
  function answer(query) {
    const highest = Math.max(1, ...query.wanted.map(([, value]) => value));
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
    for (const places of order) {
      const rows = query.top[places[0]].map((number, place) =>
        make(
          "li",
          {},
          make("span", {}, String(place + 1)),
          grade(query.grades[places[0]][place], highest),
          make("span", {}, data.titles[number]),
        ),
      );
      lists.append(
        make(
          "div",
          {},
          make("h3", {}, listed(places.map((place) => data.contenders[place]))),
          make("p", { className: "score" }, `${data.measure} ${value(places).toFixed(3)}`),
          rows.length ? make("ol", {}, ...rows) : make("p", { className: "note" }, "No answer."),
        ),
      );
    }
    return make("div", { className: "answer" }, lists, ...lost(query, highest));
  }

  const note = (text) => [make("p", { className: "note" }, text)];

  function lost(query, highest) {
    if (!query.relevant) return note("No document of the task is relevant here.");
    const away = missed(query);
    if (!away.length) {
      const all = query.relevant > query.wanted.length ? `the ${query.wanted.length} best` : `all ${query.relevant}`;
      return note(`${data.best} has ${all} relevant documents in its first ${data.depth}.`);
    }
    const rows = away.map(([number, value, places]) => {
      const mine = places[best] ? `place ${places[best]}` : `not among its first ${data.asked}`;
      const first = Math.min(...places.map((place) => place || Infinity));
      const others = places.flatMap((place, which) => (place === first ? [data.contenders[which]] : []));
      const better = first < (places[best] || Infinity) ? `; best place ${first}, in ${listed(others)}` : "";
      const title = make("span", {}, data.titles[number], " ", make("small", {}, mine + better));
      return make("li", {}, grade(value, highest), title);
    });
    return [
      make("h3", {}, `What ${data.best} missed in its first ${data.depth}`),
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
      at("more").hidden = shown.length <= upTo;
    }
    for (const control of ["find", "category", "order", "missed"].map(at).filter(Boolean)) {
      control.addEventListener("input", () => {
        upTo = STEP;
        update();
      });
    }
    at("more").addEventListener("click", () => {
      upTo += STEP;
      update();
    });
    update();
  };
})();
