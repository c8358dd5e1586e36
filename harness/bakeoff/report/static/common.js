/* Shared code of the page: data, elements, text. Each part adds itself to `bakeoff`. */
window.bakeoff = (() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const at = (id) => document.getElementById(id);

  /** An element from parts; text is always set as text, never as markup. */
  function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "style") Object.assign(element.style, value);
      else element[name] = value;
    }
    element.append(...children);
    return element;
  }

  const listed = (names) =>
    names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;

  /** The words of a search field. */
  const words = (id) => at(id).value.toLowerCase().split(/\s+/).filter(Boolean);

  return { data: read("data"), specs: read("specs"), at, make, listed, words };
})();
