/* The reader's limits: the same rule as bakeoff/results/picks.py; a browser test compares the two. */
(() => {
  const { data, at, make, listed } = window.bakeoff;
  const BADGES = { best: ["★", "leads"], tied: ["≈", "may be best"], worse: ["", "worse"] };

  function choose(limits) {
    const keeps = (figure, limit) => limit === undefined || limit === null || (figure !== null && figure <= limit);
    const kept = data.rows.filter(
      (row) => (row.local || !limits.offline) && ["p50", "cost", "index"].every((key) => keeps(row[key], limits[key])),
    );
    const names = kept.map((row) => row.label);
    const advisable = kept.filter((row) => row.advisable);
    if (!advisable.length) {
      const sentence = `Nothing that ran is within these limits.${unknown(limits)}`;
      return { label: null, feasible: names, sentence };
    }
    const best = advisable.reduce((a, b) => (b.mean > a.mean + 1e-12 ? b : a));
    const count = `${kept.length} of ${data.rows.length} contenders are within the limits`;
    return { label: best.label, feasible: names, sentence: `${best.label}: ${best.price}. ${count}.` };
  }

  /** The rows with an unknown p50, if p50 is limited. */
  function unknown(limits) {
    const untimed = data.rows.filter((row) => row.p50 === null && (row.local || !limits.offline));
    if (limits.p50 === null || limits.p50 === undefined || !untimed.length) return "";
    return ` The p50 of ${listed(untimed.map((row) => row.label))} is unknown. ${untimed[0].untimed}`;
  }

  /** Which of the rows within the limits may be best. If all rows that may be best are within them, the verdict holds.
   * Otherwise a row is worse if a pair shows it (Holm over all pairs, so that any selection is valid). */
  function statesWithin(feasible) {
    const kept = new Set(data.rows.filter((row) => feasible.includes(row.label)).map((row) => row.alike));
    const home = new Map(data.rows.map((row) => [row.label, row.alike]));
    if (data.incumbent || data.best_set.every((label) => kept.has(home.get(label)))) return null;
    const rows = data.rows.filter((row) => kept.has(row.alike));
    const highest = Math.max(...rows.map((row) => row.mean));
    const beaten = new Set();
    for (const pair of data.pairs) {
      const [a, b] = [home.get(pair.a), home.get(pair.b)];
      if (pair.p <= data.alpha && kept.has(a) && kept.has(b)) beaten.add(pair.difference < 0 ? a : b);
    }
    const state = (row) => (row.mean > highest - 1e-12 ? "best" : beaten.has(row.alike) ? "worse" : "tied");
    return new Map(rows.map((row) => [row.alike, state(row)]));
  }

  /** The limit in a field, or null. */
  function limitOf(key) {
    const text = at(`limit-${key}`).value;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  }

  function showState(line, state) {
    const badge = line.querySelector(".badge");
    if (!badge) return;
    if (!line.verdict) line.verdict = { state: line.dataset.state, children: [...badge.childNodes] };
    for (const name of Object.keys(BADGES)) line.classList.toggle(name, name === (state || line.verdict.state));
    if (state) badge.replaceChildren(make("b", {}, BADGES[state][0]), " ", make("span", {}, BADGES[state][1]));
    else badge.replaceChildren(...line.verdict.children);
  }

  function update() {
    const limits = Object.fromEntries(data.limits.map((key) => [key, limitOf(key)]));
    limits.offline = Boolean(at("limit-offline")?.checked);
    const active = limits.offline || data.limits.some((key) => limits[key] !== null);
    const choice = choose(limits);
    const states = active ? statesWithin(choice.feasible) : null;
    const output = at("choice");
    output.hidden = !active;
    const rest = choice.label ? choice.sentence.slice(choice.label.length) : choice.sentence;
    const how = states ? " Marks compare the rows within the limits (paired tests, Holm)." : "";
    output.replaceChildren(...(choice.label ? [make("b", {}, choice.label)] : []), rest, how);
    const kept = new Set(choice.feasible);
    const home = new Map(data.rows.map((row) => [row.label, row.alike]));
    for (const line of document.querySelectorAll(".matrix tr.ran")) {
      const labels = JSON.parse(line.dataset.labels);
      line.classList.toggle("out", !labels.some((label) => kept.has(label)));
      for (const part of line.querySelectorAll("[data-label]")) {
        part.classList.toggle("out", !kept.has(part.dataset.label));
      }
      showState(line, states?.get(home.get(labels[0])));
    }
    window.bakeoff.limited = active;
    window.bakeoff.filterRows();
  }

  window.bakeoff.choose = choose;
  window.bakeoff.startLimits = () => {
    const form = at("limits");
    if (!form) return;
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const key of data.limits) at(`limit-${key}`).addEventListener("input", update);
    at("limit-offline")?.addEventListener("change", update);
  };
})();
