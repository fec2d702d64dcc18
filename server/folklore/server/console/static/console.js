// Every page: the visitor's time zone, in which the server writes times; keys that move through a list.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const root = new URL(document.querySelector(".brand").href).pathname;
document.cookie = `folklore_zone=${zone}; path=${root}; max-age=31536000; samesite=strict`;

const isTyping = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select") !== null;

// Single letters can be switched off, as those who dictate or mistype need it; this browser remembers it.
const KEYS_OFF = "folklore-keys-off";
const keys = document.getElementById("keys");
function switchKeys(off) {
  if (off) localStorage.setItem(KEYS_OFF, "1");
  else localStorage.removeItem(KEYS_OFF);
  keys.textContent = `Turn single-letter keys ${off ? "on" : "off"}`;
}
const areOff = () => localStorage.getItem(KEYS_OFF) !== null;
switchKeys(areOff());
keys.addEventListener("click", () => switchKeys(!areOff()));

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

// Where a key leads from an entry that is one memory.
const PAGES = { e: "/edit", f: "/forget", u: "/undo" };

// A key of the focused entry: the link or button in it with data-key. Outside of an entry a button only gets the focus.
function act(key) {
  const entry = document.activeElement?.closest("[data-entry]");
  const target = (entry ?? document).querySelector(`[data-key="${key}"]`);
  const memory = entry?.querySelector("a[data-open]");
  if (target !== null) (entry || target.matches("a") ? target.click() : target.focus());
  else if (memory && key in PAGES) location.assign(memory.href + PAGES[key]);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target) || areOff()) return;
  if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
  else if (event.key === "/") document.querySelector("[data-search]")?.focus();
  else if (/^[a-z12]$/.test(event.key)) act(event.key);
  else return;
  event.preventDefault();
});
