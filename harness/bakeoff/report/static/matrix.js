/* The matrix: sorting moves contenders; the scales and what did not run stay below. */
(() => {
  const { at, words } = window.bakeoff;

  function sort(body, heads, key, ascending) {
    const value = (row) => {
      const cell = [...row.cells].find((cell) => cell.dataset.key === key);
      if (heads.get(key).classList.contains("text")) return cell.textContent;
      return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    };
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      const less = typeof x === "string" ? x.localeCompare(y) : x - y;
      return ascending ? less : -less;
    };
    body.prepend(...[...body.querySelectorAll("tr.ran")].sort(order));
    for (const head of heads.values()) head.removeAttribute("aria-sort");
    heads.get(key).setAttribute("aria-sort", ascending ? "ascending" : "descending");
    at("sorter").value = key;
  }

  window.bakeoff.startMatrix = () => {
    const body = document.querySelector(".matrix tbody");
    if (!body) return;
    const heads = new Map([...document.querySelectorAll(".matrix thead th")].map((head) => [head.dataset.key, head]));
    const first = (key) => heads.get(key).dataset.first === "ascending";
    for (const [key, head] of heads) {
      head.firstElementChild.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(body, heads, key, now === null ? first(key) : now === "descending");
      });
    }
    at("sorter").addEventListener("change", (event) => sort(body, heads, event.target.value, first(event.target.value)));
    const deciding = [...heads.values()].find((head) => "decides" in head.dataset);
    if (body.querySelector("tr.ran")) sort(body, heads, deciding.dataset.key, false);
    for (const id of ["filter", "only-tied", "only-kept"]) at(id).addEventListener("input", window.bakeoff.filterRows);
  };

  window.bakeoff.filterRows = () => {
    const wanted = words("filter");
    for (const row of document.querySelectorAll(".matrix tbody tr")) {
      const is = (name) => row.classList.contains(name);
      row.hidden =
        (!is("scale") && !wanted.every((word) => row.dataset.find.includes(word))) ||
        (at("only-tied").checked && !is("scale") && !is("tied")) ||
        (at("only-kept").checked && is("ran") && is("out"));
    }
  };
})();
