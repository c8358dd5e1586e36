/* The reader's limits: the same rule as bakeoff/results/picks.py; a browser test holds the two together. */
(() => {
  const { data, at, make, listed } = window.bakeoff;

  function choose(limits) {
    const keeps = (figure, limit) => limit === null || (figure !== null && figure <= limit);
    const kept = data.rows.filter(
      (row) => (row.local || !limits.offline) && data.limits.every((key) => keeps(row[key], limits[key])),
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

  /** Whose p50 is not known, where it is limited. */
  function unknown(limits) {
    const untimed = data.rows.filter((row) => row.p50 === null && (row.local || !limits.offline));
    if (limits.p50 === null || !untimed.length) return "";
    return ` The p50 of ${listed(untimed.map((row) => row.label))} is not known. ${untimed[0].untimed}`;
  }

  /** Rounded up to two digits, so that the row whose figure it is keeps the limit. */
  function roundedUp(figure) {
    if (!(figure > 0)) return 0;
    const unit = 10 ** (Math.floor(Math.log10(figure)) - 1);
    return Number((Math.ceil(figure / unit - 1e-9) * unit).toPrecision(2));
  }

  /** The limit in a field, or null. */
  function limitOf(key) {
    const text = at(`limit-${key}`).value;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  }

  function update() {
    const limits = Object.fromEntries(data.limits.map((key) => [key, limitOf(key)]));
    const choice = choose({ ...limits, offline: at("limit-offline").checked });
    const rest = choice.label ? choice.sentence.slice(choice.label.length) : choice.sentence;
    at("choice").replaceChildren(...(choice.label ? [make("b", {}, choice.label)] : []), rest);
    for (const key of data.limits) {
      at(`slide-${key}`).setAttribute("aria-valuetext", at(`limit-${key}`).value || "no limit");
    }
    const kept = new Set(choice.feasible);
    for (const row of document.querySelectorAll(".matrix tr.ran")) {
      row.classList.toggle("out", !kept.has(row.dataset.label));
    }
    window.bakeoff.filterRows();
  }

  /** A slider whose stops are the contenders' own figures, and the field beside it. */
  function join(key) {
    const known = data.rows.map((row) => row[key]).filter((figure) => figure !== null);
    const stops = [...new Set(known.map(roundedUp))].sort((a, b) => a - b);
    const slider = at(`slide-${key}`);
    const field = at(`limit-${key}`);
    Object.assign(slider, { min: 0, max: stops.length, step: 1, value: stops.length, disabled: stops.length < 2 });
    slider.addEventListener("input", () => {
      const stop = stops[Number(slider.value)];
      field.value = stop === undefined ? "" : String(stop);
      update();
    });
    field.addEventListener("input", () => {
      const limit = limitOf(key);
      const above = stops.findIndex((stop) => limit !== null && stop >= limit);
      slider.value = above < 0 ? stops.length : above;
      update();
    });
  }

  window.bakeoff.choose = choose;
  window.bakeoff.startLimits = () => {
    const form = at("limits");
    if (!form) return;
    data.limits.forEach(join);
    at("limit-offline").addEventListener("change", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    update();
  };
})();
