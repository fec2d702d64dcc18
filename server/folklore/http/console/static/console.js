// Every page: times in the visitor's zone, keys that move through a list.

for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.getTime())) time.title = at.toLocaleString();
}

const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

// The entries of a list that keys move through carry data-entry, their link data-open.
function move(step) {
  const entries = [...document.querySelectorAll("[data-entry]")];
  if (entries.length === 0) return;
  const at = entries.findIndex((entry) => entry.contains(document.activeElement));
  const next = entries[at === -1 ? (step > 0 ? 0 : entries.length - 1) : Math.min(Math.max(at + step, 0), entries.length - 1)];
  const link = next.querySelector("[data-open]") ?? next.querySelector("a");
  link?.focus();
  next.scrollIntoView({ block: "nearest" });
}

// A key of the focused entry: the link or button in it with data-key.
function act(key) {
  const entry = document.activeElement?.closest("[data-entry]") ?? document;
  entry.querySelector(`[data-key="${key}"]`)?.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
  if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
  else if (event.key === "/") document.querySelector("[data-search]")?.focus();
  else if ("efu".includes(event.key)) act(event.key);
  else return;
  event.preventDefault();
});
