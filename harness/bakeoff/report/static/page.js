"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const at = (id) => document.getElementById(id);

  /** An element from parts; text is always set as text, never as markup. */
  function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (name === "style") Object.assign(element.style, value);
      else element[name] = value;
    }
    element.append(...children);
    return element;
  }

  const listed = (names) =>
    names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;

  /* Limits: the same rule as bakeoff/results/recommend.py; a browser test holds the two together. */
  function choose(limits) {
    const keeps = (figure, limit) => limit === null || (figure !== null && figure <= limit);
    const kept = data.rows.filter(
      (row) =>
        (row.local || !limits.offline) &&
        ["p95", "cost", "index"].every((key) => keeps(row[key], limits[key])),
    );
    if (!kept.length) return { label: null, feasible: [], sentence: "Nothing that ran keeps these limits." };
    const best = kept.reduce((a, b) => (b.mean > a.mean + 1e-12 ? b : a));
    const names = new Set(kept.map((row) => row.label));
    const tied = data.pairs
      .filter((pair) => (pair[0] === best.label || pair[1] === best.label) && pair[5] > data.alpha)
      .map((pair) => (pair[0] === best.label ? pair[1] : pair[0]))
      .filter((label) => names.has(label));
    const also = tied.length ? `; ${listed(tied)} can't be told from it.` : ".";
    const count = `${kept.length} of ${data.rows.length} contenders keep the limits`;
    return {
      label: best.label,
      feasible: [...names],
      sentence: `${best.label}: ${data.measure} ${best.mean.toFixed(3)}. ${count}${also}`,
    };
  }

  /** Rounded up to two digits, so that the row whose figure it is keeps the limit. */
  function roundedUp(figure) {
    if (!(figure > 0)) return 0;
    const unit = 10 ** (Math.floor(Math.log10(figure)) - 1);
    return Number((Math.ceil(figure / unit - 1e-9) * unit).toPrecision(2));
  }

  function startLimits() {
    const form = at("limits");
    if (!form) return;
    const keys = ["p95", "cost", "index"];
    const stops = {};
    for (const key of keys) {
      const known = data.rows.map((row) => row[key]).filter((figure) => figure !== null);
      stops[key] = [...new Set(known.map(roundedUp))].sort((a, b) => a - b);
      const slider = at(`slide-${key}`);
      Object.assign(slider, { min: 0, max: stops[key].length, step: 1, value: stops[key].length });
      slider.disabled = stops[key].length < 2;
      slider.addEventListener("input", () => {
        const stop = stops[key][Number(slider.value)];
        at(`limit-${key}`).value = stop === undefined ? "" : String(stop);
        update();
      });
      at(`limit-${key}`).addEventListener("input", () => {
        const limit = read(key);
        const above = stops[key].findIndex((stop) => limit !== null && stop >= limit);
        slider.value = above < 0 ? stops[key].length : above;
        update();
      });
    }
    at("limit-offline").addEventListener("change", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    function read(key) {
      const text = at(`limit-${key}`).value;
      return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
    }
    function update() {
      const limits = { p95: read("p95"), cost: read("cost"), index: read("index"), offline: at("limit-offline").checked };
      const choice = choose(limits);
      const rest = choice.label ? choice.sentence.slice(choice.label.length) : choice.sentence;
      at("choice").replaceChildren(...(choice.label ? [make("b", {}, choice.label)] : []), rest);
      for (const key of keys) {
        at(`slide-${key}`).setAttribute("aria-valuetext", at(`limit-${key}`).value || "no limit");
      }
      const kept = new Set(choice.feasible);
      for (const row of document.querySelectorAll(".matrix tr.ran")) {
        row.classList.toggle("out", !kept.has(row.dataset.label));
      }
      filterRows();
    }
    update();
  }

  /* The matrix: sorting moves contenders; the scales and what did not run stay below. */
  function startMatrix() {
    const body = document.querySelector(".matrix tbody");
    if (!body) return;
    const heads = [...document.querySelectorAll(".matrix thead th")];
    const rising = (column) => column < 2 || column >= heads.length - 6;
    function sort(column, ascending) {
      const rows = [...body.querySelectorAll("tr.ran")];
      const key = (row) => {
        const cell = row.children[column];
        if (column < 2) return cell.textContent;
        return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
      };
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const less = typeof x === "string" ? x.localeCompare(y) : x - y;
        return ascending ? less : -less;
      };
      body.prepend(...rows.sort(order));
      for (const head of heads) head.removeAttribute("aria-sort");
      heads[column].setAttribute("aria-sort", ascending ? "ascending" : "descending");
      at("sorter").value = String(column);
    }
    heads.forEach((head, column) => {
      head.firstElementChild.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(column, now === null ? rising(column) : now === "descending");
      });
    });
    at("sorter").addEventListener("change", (event) => {
      const column = Number(event.target.value);
      sort(column, rising(column));
    });
    const decides = heads.findIndex((head) => head.textContent.includes("[95%]"));
    if (decides >= 0 && body.querySelector("tr.ran")) sort(decides, false);
    for (const id of ["filter", "only-tied", "only-kept"]) at(id).addEventListener("input", filterRows);
  }

  function filterRows() {
    const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll(".matrix tbody tr")) {
      const ran = row.classList.contains("ran");
      row.hidden =
        (!row.classList.contains("scale") && !words.every((word) => row.dataset.find.includes(word))) ||
        (at("only-tied").checked && !row.classList.contains("scale") && !row.classList.contains("tied")) ||
        (at("only-kept").checked && ran && row.classList.contains("out"));
    }
  }

  /* Charts: one after the other, so that the page answers while they are drawn. */
  const views = {};
  const pause = () => new Promise((resolve) => setTimeout(resolve));
  async function drawCharts() {
    for (const place of document.querySelectorAll(".chart")) {
      await pause();
      const options = { renderer: "svg", actions: false, defaultStyle: false, tooltip: { theme: "custom" } };
      const drawn = await window.vegaEmbed(place, specs[Number(place.dataset.spec)], options);
      views[place.dataset.key] = drawn.view;
    }
    startVersus();
    startHistory();
    document.documentElement.dataset.charts = "drawn";
  }

  function startVersus() {
    const [first, second] = [at("versus-a"), at("versus-b")];
    if (!first || !views.differences) return;
    const signed = (figure) => (figure < 0 ? "−" : "+") + Math.abs(figure).toFixed(3);
    function update() {
      views.differences.signal("a", `v${first.value}`).signal("b", `v${second.value}`).run();
      const [a, b] = [data.contenders[first.value], data.contenders[second.value]];
      const pair = data.pairs.find((each) => (each[0] === a && each[1] === b) || (each[0] === b && each[1] === a));
      if (!pair) return at("versus").replaceChildren("Choose two different contenders.");
      const turned = pair[0] !== a;
      const [difference, low, high] = turned ? [-pair[2], -pair[4], -pair[3]] : [pair[2], pair[3], pair[4]];
      const [wins, losses] = turned ? [pair[8], pair[6]] : [pair[6], pair[8]];
      const told = pair[5] <= data.alpha ? "a real difference" : "can't be told apart";
      at("versus").replaceChildren(
        `${a} against ${b}: ${signed(difference)} (95% interval ${signed(low)} to ${signed(high)}), ` +
          `p = ${Number(pair[5].toPrecision(2))} after Holm: ${told}. ${wins} won, ${pair[7]} tied, ${losses} lost.`,
      );
    }
    first.addEventListener("change", update);
    second.addEventListener("change", update);
    update();
  }

  function startHistory() {
    const chooser = at("history-measure");
    if (!chooser || !views.history) return;
    chooser.addEventListener("change", () => views.history.signal("measure", chooser.value).run());
  }

  /* Queries: a list that is filled as far as it is read, and an answer that is made when it is opened. */
  const STEP = 50;
  function startQueries() {
    const list = at("list");
    if (!list) return;
    const best = data.contenders.indexOf(data.best);
    const missed = (query) => query.wanted.filter(([, , places]) => !places[best] || places[best] > data.depth);
    for (const query of data.queries) {
      const titles = new Set(query.top.flat().map((number) => data.titles[number]));
      query.search = [query.id, query.text, ...titles].join("\n").toLowerCase();
    }
    let shown = [];
    let upTo = STEP;
    const spread = (query) => Math.max(...query.values) - Math.min(...query.values);
    const orders = {
      task: null,
      hard: (a, b) => a.values[best] - b.values[best],
      spread: (a, b) => spread(b) - spread(a),
    };
    function update() {
      const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
      const category = at("category") ? at("category").value : "";
      shown = data.queries.filter(
        (query) =>
          words.every((word) => query.search.includes(word)) &&
          (!category || query.category === category) &&
          (!at("missed").checked || missed(query).length),
      );
      if (orders[at("order").value]) shown.sort(orders[at("order").value]);
      at("count").textContent = `${shown.length} of ${data.queries.length} queries.`;
      list.replaceChildren(...shown.slice(0, upTo).map(line));
      at("more").hidden = shown.length <= upTo;
    }
    function line(query) {
      const strip = make("span", { className: "strip" });
      strip.setAttribute("aria-hidden", "true");
      query.values.forEach((value, place) => {
        const colour = `var(--${data.colours[data.contenders[place]] || "c5"})`;
        const dot = make("i", { style: { left: `${value * 100}%`, background: colour } });
        dot.classList.toggle("top", place === best);
        if (place === best) strip.append(dot);
        else strip.prepend(dot);
      });
      const details = make(
        "details",
        { className: "query" },
        make(
          "summary",
          {},
          make("span", { className: "asked" }, query.text),
          make("span", { className: "cat" }, query.category),
          strip,
          make("span", { className: "val" }, query.values[best].toFixed(3)),
        ),
      );
      details.dataset.query = query.id;
      details.addEventListener("toggle", () => {
        if (details.open && details.children.length === 1) details.append(answer(query));
      });
      return details;
    }
    const grade = (value, highest) => {
      const kind = value === null || value === 0 ? "none" : value >= highest ? "full" : "some";
      const chip = make("span", { className: `grade ${kind}` }, value === null ? "–" : String(value));
      chip.title = value === null ? "not judged" : `grade ${value}`;
      return chip;
    };
    function answer(query) {
      const highest = Math.max(1, ...query.wanted.map((each) => each[1]));
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
        const names = listed(places.map((place) => data.contenders[place]));
        lists.append(
          make(
            "div",
            {},
            make("h3", {}, names),
            make("p", { className: "score" }, `${data.measure} ${value(places).toFixed(3)}`),
            rows.length ? make("ol", {}, ...rows) : make("p", { className: "note" }, "No answer."),
          ),
        );
      }
      return make("div", { className: "answer" }, lists, ...lost(query, highest));
    }
    function lost(query, highest) {
      if (!query.relevant) return [make("p", { className: "note" }, "No document of the task is relevant here.")];
      const away = missed(query);
      if (!away.length) {
        const all = query.relevant > query.wanted.length ? `the ${query.wanted.length} best` : `all ${query.relevant}`;
        return [make("p", { className: "note" }, `${data.best} has ${all} relevant documents in its first ${data.depth}.`)];
      }
      const rows = away.map(([number, value, places]) => {
        const mine = places[best] ? `place ${places[best]}` : `not among its first ${data.asked}`;
        const first = Math.min(...places.map((place) => place || Infinity));
        const others = places.flatMap((place, which) => (place === first ? [data.contenders[which]] : []));
        const better = first < (places[best] || Infinity) ? `; best place ${first}, in ${listed(others)}` : "";
        return make("li", {}, grade(value, highest), make("span", {}, data.titles[number], " ", make("small", {}, mine + better)));
      });
      return [
        make("h3", {}, `What ${data.best} missed in its first ${data.depth}`),
        make("ul", { className: "missed" }, ...rows),
      ];
    }
    for (const id of ["find", "category", "order", "missed"]) {
      if (at(id))
        at(id).addEventListener("input", () => {
          upTo = STEP;
          update();
        });
    }
    at("more").addEventListener("click", () => {
      upTo += STEP;
      update();
    });
    update();
  }

  window.bakeoff = { choose };
  startMatrix();
  startLimits();
  startQueries();
  if (specs.length) drawCharts();
  else document.documentElement.dataset.charts = "none";
})();
