/* The matrix: sorting moves lines together with their details; long tables fold the lines of a model. */
(() => {
  const { at, words } = window.bakeoff;
  const lines = () => [...document.querySelectorAll(".matrix tbody tr.ran")];
  const below = (line) => line.nextElementSibling;

  function sort(body, heads, key, ascending) {
    const isText = heads.get(key).classList.contains("text");
    const value = (line) => {
      const cell = [...line.cells].find((cell) => cell.dataset.key === key);
      if (cell.dataset.value === undefined) return null;
      return isText ? cell.dataset.value : Number(cell.dataset.value);
    };
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      const less = typeof x === "string" ? x.localeCompare(y) : x - y;
      return ascending ? less : -less;
    };
    const pairs = lines().map((line) => [line, below(line)]);
    body.append(...pairs.sort(([a], [b]) => order(a, b)).flat());
    for (const head of heads.values()) head.removeAttribute("aria-sort");
    heads.get(key).setAttribute("aria-sort", ascending ? "ascending" : "descending");
  }

  function toggle(button, open) {
    button.setAttribute("aria-expanded", String(open));
    return open;
  }

  window.bakeoff.filterRows = () => {
    const wanted = at("filter") ? words("filter") : [];
    const tied = at("only-tied")?.checked;
    const unfolded = new Set(
      [...document.querySelectorAll(".unfold[aria-expanded=true]")].map((button) => button.dataset.fold),
    );
    for (const line of lines()) {
      const is = (name) => line.classList.contains(name);
      const searched = wanted.length || tied || window.bakeoff.limited;
      line.hidden =
        !wanted.every((word) => line.dataset.find.includes(word)) ||
        Boolean(tied && !is("tied") && !is("best")) ||
        is("out") ||
        (is("folded") && !searched && !unfolded.has(line.dataset.under));
      below(line).hidden = line.hidden || line.querySelector(".open").getAttribute("aria-expanded") !== "true";
    }
  };

  window.bakeoff.startMatrix = () => {
    const body = document.querySelector(".matrix tbody");
    if (!body) return;
    const heads = new Map([...document.querySelectorAll(".matrix thead th[data-key]")].map((h) => [h.dataset.key, h]));
    for (const [key, head] of heads) {
      head.firstElementChild.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(body, heads, key, now === null ? head.dataset.first === "ascending" : now === "descending");
      });
    }
    for (const line of lines()) {
      line.dataset.state = ["best", "tied", "worse"].find((name) => line.classList.contains(name)) || "";
      line.addEventListener("click", (event) => {
        if (event.target.closest(".unfold") || getSelection().toString()) return;
        const button = line.querySelector(".open");
        below(line).hidden = !toggle(button, button.getAttribute("aria-expanded") !== "true");
      });
    }
    for (const button of document.querySelectorAll(".unfold")) {
      button.addEventListener("click", () => {
        toggle(button, button.getAttribute("aria-expanded") !== "true");
        window.bakeoff.filterRows();
      });
    }
    for (const id of ["filter", "only-tied"]) at(id)?.addEventListener("input", window.bakeoff.filterRows);
  };
})();
