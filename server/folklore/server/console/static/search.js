// Search: the answer follows the text while a person types. One request at a time: while it runs, only the newest waits.

const form = document.getElementById("search");
const input = document.getElementById("q");
const answer = document.getElementById("answer");
const summary = document.getElementById("summary");
// Browsers limit how often the address may change.
const ADDRESS_DELAY = 300;

let running = false;
let waiting = null;
let pending = null;

// The address of what the form has now: its text, its conditions, and the chips that are on.
function address() {
  const given = [...new FormData(form)].filter(([, value]) => value.trim() !== "");
  const query = new URLSearchParams(given).toString();
  return query === "" ? location.pathname : `${location.pathname}?${query}`;
}

// Fields outside of the answer take the values of an address: after a chip, and after "back".
function fill(query) {
  for (const field of form.elements) {
    if (field.type === "checkbox") field.checked = query.has(field.name);
    else if (field.name !== "" && field.type !== "hidden") field.value = query.get(field.name) ?? "";
  }
}

const results = () => answer.querySelectorAll("[data-open]");

function ask(target, show) {
  waiting = { target, show };
  if (!running) run();
}

async function run() {
  running = true;
  answer.setAttribute("aria-busy", "true");
  while (waiting !== null) {
    const { target, show } = waiting;
    waiting = null;
    try {
      const response = await fetch(target, { headers: { accept: "application/json" } });
      const value = await response.json();
      if (response.ok) show(value);
      else if (response.status === 401) location.reload();
      else summary.textContent = [value.error?.message, value.error?.hint].filter(Boolean).join(" ");
    } catch {
      summary.textContent = "The server does not answer. Type on to try again.";
    }
  }
  running = false;
  answer.removeAttribute("aria-busy");
}

function showAnswer(value) {
  const chip = document.activeElement?.closest("[data-chip]")?.dataset.chip;
  // Nothing in it is executed: a parsed document has no scripting, and the policy of the page forbids inline scripts.
  answer.replaceChildren(...new DOMParser().parseFromString(value.html, "text/html").body.childNodes);
  summary.textContent = value.summary;
  if (chip !== undefined) {
    const same = [...answer.querySelectorAll("[data-chip]")].find((other) => other.dataset.chip === chip);
    (same ?? input).focus();
  }
}

function saveAddress() {
  clearTimeout(pending);
  pending = null;
  history.replaceState(null, "", address());
}

function typed() {
  ask(address(), showAnswer);
  pending ??= setTimeout(saveAddress, ADDRESS_DELAY);
}

form.addEventListener("input", typed);
input.addEventListener("blur", () => pending !== null && saveAddress());

form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pending);
  pending = null;
  history.pushState(null, "", address());
  const fromText = document.activeElement === input;
  ask(address(), (value) => {
    showAnswer(value);
    if (fromText) answer.querySelector("[data-open]")?.focus();
  });
});

addEventListener("popstate", () => {
  fill(new URLSearchParams(location.search));
  ask(location.href, showAnswer);
});

answer.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest("[data-chip], #more a");
  if (link === null) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  fill(new URL(link.href).searchParams);
  const shown = results().length;
  ask(link.href, (value) => {
    showAnswer(value);
    // After "Show more" the first further result, after "Older" the first one.
    if (link.dataset.chip === undefined) (results()[shown] ?? results()[0])?.focus();
  });
});
