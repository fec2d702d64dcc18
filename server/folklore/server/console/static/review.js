// Review: a decision and its undo change the item where it stands. Several at once are a page of their own.

const form = document.getElementById("review");
const state = document.getElementById("state");
const more = document.getElementById("more");

// What was decided is gone from the list, so that the next page begins earlier.
function shift(step) {
  if (more === null) return;
  const address = new URL(more.href), skip = Number(address.searchParams.get("skip"));
  if (skip > 0) address.searchParams.set("skip", skip + step);
  more.href = address.href;
}

async function send(button, item) {
  const fields = new URLSearchParams(new FormData(form));
  fields.set(button.name, button.value);
  const response = await fetch(button.formAction, { method: "POST", body: fields, headers: { accept: "application/json" } });
  const value = await response.json();
  if (response.status === 401) return location.reload();
  if (!response.ok) throw new Error([value.error?.message, value.error?.hint].filter(Boolean).join(" "));
  // Nothing in it is executed: a parsed document has no scripting.
  const shown = new DOMParser().parseFromString(value.html, "text/html").querySelector("li");
  item.replaceWith(shown);
  const undo = shown.querySelector("[name=undo]");
  state.textContent = undo ? shown.querySelector("strong").textContent : shown.querySelector("[role=alert]")?.textContent ?? "Undone.";
  if (button.name === "undo" || undo) shift(undo ? -1 : 1);
  (undo ?? shown.querySelector("a")).focus();
}

form?.addEventListener("submit", (event) => {
  const item = event.submitter?.closest("[data-entry]");
  if (!item) return;
  event.preventDefault();
  event.submitter.disabled = true;
  send(event.submitter, item).catch((error) => {
    event.submitter.disabled = false;
    state.textContent = error.message;
  });
});
