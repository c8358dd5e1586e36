/* The grading page: one pair at a time, every grade saved before the next pair is shown. */
const at = (id) => document.getElementById(id);
const buttons = [...at("grades").children];
let pair = null;
let last = 0;
let busy = false;

const LOST =
  "The server does not answer, so this was not saved. Start `bakeoff annotate` again and open the address " +
  "that it prints; all earlier grades are kept.";

async function ask(path, body) {
  const options =
    body === undefined
      ? {}
      : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options).catch(() => {
    throw new Error(LOST);
  });
  const content = await answer.json().catch(() => ({ error: "an answer that can't be read" }));
  if (!answer.ok) throw new Error(`Not saved: ${content.error}`);
  return content;
}

/** One request at a time; what fails is shown and moves nowhere. */
async function guarded(work) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    await work();
    at("alarm").hidden = true;
  } catch (error) {
    at("alarm").textContent = error.message;
    at("alarm").hidden = false;
  } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

function showProgress(done, total) {
  at("count").textContent = `${done} of ${total} graded`;
  at("bar").style.width = `${total ? (100 * done) / total : 100}%`;
  at("track").setAttribute("aria-valuemax", total);
  at("track").setAttribute("aria-valuenow", done);
}

function press(grade) {
  for (const button of buttons) button.setAttribute("aria-pressed", String(Number(button.dataset.grade) === grade));
}

async function show(place) {
  pair = await ask(`pair${place === null ? "" : `?at=${place}`}`);
  showProgress(pair.done, pair.total);
  const finished = pair.at === null;
  at("finished").hidden = !finished;
  for (const id of ["desk", "query-part", "document"]) at(id).hidden = finished;
  document.body.dataset.at = finished ? "end" : pair.at;
  if (finished) {
    at("again").hidden = !pair.total;
    at("again").focus();
    return;
  }
  last = pair.at;
  const category = pair.query.category ? ` · ${pair.query.category}` : "";
  at("category").textContent = `Query${category} · document ${pair.place} of ${pair.of}`;
  at("query").textContent = pair.query.text;
  at("title").textContent = pair.document.title;
  at("where").textContent = pair.document.where;
  at("text").replaceChildren(...window.markWords(pair.document.text, pair.query.text));
  at("note").value = pair.note;
  at("document").scrollTop = 0;
  at("back").disabled = pair.at === 0;
  press(pair.grade);
}

const given = (grade) => ({ query: pair.query.id, document: pair.document.id, grade, note: at("note").value });

function give(grade) {
  return guarded(async () => {
    if (pair.at === null) return;
    const answer = await ask("grade", given(grade));
    press(grade);
    await show(answer.next);
  });
}

/** To another pair; a note that was changed is saved first. */
function move(to) {
  return guarded(async () => {
    if (pair.at !== null && at("note").value.trim() !== pair.note) await ask("grade", given(pair.grade));
    await show(to());
  });
}
const back = () => move(() => (pair.at === null ? last : Math.max(0, pair.at - 1)));
const skip = () =>
  move(() => {
    if (pair.at === null) return null;
    return pair.at + 1 < pair.total ? pair.at + 1 : pair.next;
  });

/** The guidelines, with what they say about this very query marked. */
function guide() {
  if (at("guide-open").hidden || pair === null || pair.at === null) return;
  const lines = [...at("guide").querySelectorAll("tr")];
  for (const line of lines) line.classList.toggle("current", line.cells[0].textContent === pair.query.id);
  at("guide").showModal();
  lines.find((line) => line.classList.contains("current"))?.scrollIntoView({ block: "center" });
}

const keys = new Map([
  ["ArrowLeft", back],
  ["b", back],
  ["ArrowRight", skip],
  ["s", skip],
  ["n", () => at("note").focus()],
  ["g", guide],
]);
for (const button of buttons) {
  const grade = Number(button.dataset.grade);
  button.addEventListener("click", () => give(grade));
  keys.set(button.dataset.grade, (event) => event.repeat || give(grade));
}

/** A function for a key, where the focus lets it have one. */
function bound(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (at("guide").open) return key === "g" ? () => at("guide").close() : undefined;
  if (event.target === at("note")) return ["Escape", "Enter"].includes(key) ? () => at("note").blur() : undefined;
  return keys.get(key);
}

document.addEventListener("keydown", (event) => {
  const act = bound(event);
  if (!act) return;
  act(event);
  event.preventDefault();
});
at("back").addEventListener("click", back);
at("skip").addEventListener("click", skip);
at("guide-open").addEventListener("click", guide);
at("guide-close").addEventListener("click", () => at("guide").close());
at("again").addEventListener("click", () => guarded(() => show(last)));
guarded(() => show(null));
