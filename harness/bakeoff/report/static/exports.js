/* Files made in the browser: the matrix as text, and its chart for slides. */
(() => {
  const { data, specs, at, make } = window.bakeoff;

  function save(name, link) {
    const anchor = make("a", { href: link, download: name, hidden: true });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
  }

  function text(name) {
    const content = data.exports[name];
    return name.endsWith(".json") ? `${JSON.stringify(JSON.parse(content), null, 2)}\n` : content;
  }

  /** As a data URI, which needs no request and no cleanup. */
  async function link(button) {
    const { file, picture } = button.dataset;
    if (file) return [file, `data:text/plain;charset=utf-8,${encodeURIComponent(text(file))}`];
    const place = make("div", { hidden: true });
    document.body.append(place);
    const options = { renderer: "none", actions: false, ast: true };
    const { view } = await window.vegaEmbed(place, specs.scores, options);
    place.remove();
    if (picture === "png") return ["scores.png", (await view.toCanvas(2)).toDataURL("image/png")];
    return ["scores.svg", `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await view.toSVG())}`];
  }

  window.bakeoff.link = link;
  window.bakeoff.startExports = () => {
    const menu = at("export");
    if (!menu) return;
    for (const button of menu.querySelectorAll("button")) {
      button.addEventListener("click", async () => {
        save(...(await link(button)));
        menu.open = false;
      });
    }
    document.addEventListener("click", (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape") menu.open = false;
    });
  };
})();
