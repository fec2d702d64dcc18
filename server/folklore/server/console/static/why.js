// The recall debugger: a moved slider asks the server again, one request at a time, and shows what moved.

const form = document.getElementById("why");
const answer = document.getElementById("explained");
const summary = document.getElementById("summary");
const places = (root) => new Map([...root.querySelectorAll("[data-id]")].map((entry, place) => [entry.dataset.id, place]));
const before = places(answer);
let running = false;
let waiting = false;

function address(part) {
  const given = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const input = form.elements[name];
    if (value !== "" && (input.type !== "range" || value !== input.defaultValue || input.dataset.given)) given.set(name, value);
  }
  if (part) given.set("part", "1");
  return `${form.action}?${given}`;
}

function showMoves() {
  for (const [id, place] of places(answer)) {
    const mark = answer.querySelector(`[data-id="${id}"] .moved`);
    const steps = before.has(id) ? before.get(id) - place : null;
    mark.textContent = steps === null ? "new" : steps === 0 ? "" : steps > 0 ? `up ${steps}` : `down ${-steps}`;
  }
}

async function ask() {
  if (running) { waiting = true; return; }
  running = true;
  do {
    waiting = false;
    try {
      const response = await fetch(address(true), { headers: { Accept: "text/html" } });
      const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
      if (response.redirected || !response.ok) { summary.textContent = parsed.querySelector("main p")?.textContent ?? "Not available."; continue; }
      answer.replaceChildren(...parsed.body.childNodes);
      history.replaceState(null, "", address(false));
      showMoves();
      const shown = answer.querySelectorAll("[data-id]").length;
      summary.textContent = `${shown} candidates with these weights`;
    } catch {
      summary.textContent = "The server does not answer. Try again.";
    }
  } while (waiting);
  running = false;
}

for (const input of form.querySelectorAll("input[type=range]")) {
  input.addEventListener("input", () => {
    input.dataset.given = "1";
    form.querySelector(`output[for="${input.id}"]`).textContent = input.value;
    if (form.elements.q.value.trim() !== "") ask();
  });
}

// Another preset has its own weights: the sliders are left out of the address.
form.elements.preset.addEventListener("change", () => {
  for (const input of form.querySelectorAll("input[type=range]")) input.disabled = true;
  form.requestSubmit();
});

// The button sends only what was moved, as the script does.
form.addEventListener("submit", () => {
  for (const input of form.querySelectorAll("input[type=range]")) {
    if (input.value === input.defaultValue && !input.dataset.given) input.disabled = true;
  }
});
