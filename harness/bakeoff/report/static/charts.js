/* Charts: drawn one by one, so that the page stays responsive. */
(() => {
  const { data, specs, at } = window.bakeoff;
  const views = {};
  const pause = () => new Promise((resolve) => setTimeout(resolve));
  const signed = (figure) => (figure < 0 ? "−" : "+") + Math.abs(figure).toFixed(3);

  /** The comparison of two contenders, as first minus second. */
  function pairOf(a, b) {
    const pair = data.pairs.find((two) => (two.a === a && two.b === b) || (two.a === b && two.b === a));
    if (!pair || pair.a === a) return pair;
    const { difference, low, high, wins, losses } = pair;
    const turned = low === null ? { low, high } : { low: -high, high: -low };
    return { ...pair, a, b, difference: -difference, ...turned, wins: losses, losses: wins };
  }

  function startVersus() {
    const [first, second] = [at("versus-a"), at("versus-b")];
    if (!first || !views.differences) return;
    function update() {
      views.differences.signal("a", `v${first.value}`).signal("b", `v${second.value}`).run();
      const pair = pairOf(data.contenders[first.value], data.contenders[second.value]);
      if (!pair) {
        const same = first.value === second.value;
        const elsewhere = "This pair is not on the page. See bakeoff compare RESULT --contender A --contender B.";
        at("versus").replaceChildren(same ? "Choose two different contenders." : elsewhere);
        return;
      }
      at("versus").dataset.shown = pair.p <= data.alpha;
      const verdict = pair.p <= data.alpha ? "significantly different" : "not significantly different";
      const interval = pair.low === null ? "" : ` (95% interval ${signed(pair.low)} to ${signed(pair.high)})`;
      at("versus").replaceChildren(
        `${pair.a} against ${pair.b}: ${signed(pair.difference)}${interval}, ` +
          `p (Holm) = ${Number(pair.p.toPrecision(2))}: ${verdict}. ` +
          `${pair.wins} won, ${pair.ties} tied, ${pair.losses} lost.`,
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

  /** A closed section has no width, so its charts are drawn when it opens. */
  async function draw(within) {
    for (const place of within.querySelectorAll(".chart:not([data-drawn])")) {
      if (place.closest("details:not([open])")) continue;
      place.dataset.drawn = "";
      await pause();
      // ast: expressions are interpreted, so that the page's policy need not allow eval
      const options = { renderer: "svg", actions: false, ast: true, defaultStyle: false, tooltip: { theme: "custom" } };
      const drawn = await window.vegaEmbed(place, specs[place.dataset.spec], options);
      views[place.dataset.key] = drawn.view;
    }
  }

  window.bakeoff.startCharts = async () => {
    const method = at("method");
    method?.addEventListener("toggle", async () => {
      await draw(method);
      startVersus();
      document.documentElement.dataset.charts = "all";
    });
    const openMethod = () => {
      if (method && location.hash === "#method") method.open = true;
    };
    window.addEventListener("hashchange", openMethod);
    openMethod();
    await draw(document);
    startHistory();
    document.documentElement.dataset.charts ||= Object.keys(specs).length ? "drawn" : "none";
  };
})();
