// The timeline: new events as they happen. They wait while the reader has paused, or reads further down.

const section = document.querySelector("#live");
const list = section.querySelector("#live-events");
const button = section.querySelector("#pause");
const state = section.querySelector("#live-state");

const MOST = 100;
let stream, cursor, connected = false, paused = false, waiting = [], shown = 0;

// Nothing in it is executed: a parsed document has no scripting.
const row = (html) => new DOMParser().parseFromString(html, "text/html").querySelector("li");

const events = (number) => `${number} new ${number === 1 ? "event" : "events"}`;

// What is inserted above the reader's place would move it away.
const isBusy = () => paused || section.getBoundingClientRect().top < 0 || list.contains(document.activeElement);

function tell() {
  const total = `${events(shown)} since you opened this page.`;
  if (waiting.length) state.textContent = `${events(waiting.length)} to show.`;
  else if (paused) state.textContent = "Paused.";
  else if (!connected) state.textContent = "Connecting …";
  else state.textContent = shown ? total : "Connected; nothing new yet.";
}

function flush() {
  list.prepend(...waiting.map(row).reverse());
  shown += waiting.length;
  waiting = [];
  while (list.children.length > MOST) list.lastElementChild.remove();
}

function take(message) {
  cursor = message.lastEventId;
  waiting = [...waiting, ...JSON.parse(message.data)].slice(-MOST);
  if (!isBusy()) flush();
  tell();
}

function end() {
  disconnect();
  button.hidden = true;
  state.textContent = "";
  section.querySelector("#live-ended").hidden = false;
}

// A page out of view needs no stream; when it is in view again, the stream continues where it was.
function connect() {
  if (document.hidden || stream) return;
  const address = new URL(section.dataset.stream, location.href);
  if (cursor) address.searchParams.set("after", cursor);
  stream = new EventSource(address);
  stream.addEventListener("open", () => { connected = true; tell(); });
  stream.addEventListener("activity", take);
  stream.addEventListener("end", end);
  stream.addEventListener("error", () => {
    connected = false;
    if (stream?.readyState === EventSource.CLOSED) end();
    else tell();
  });
}

function disconnect() {
  stream?.close();
  stream = undefined;
  connected = false;
}

button.addEventListener("click", () => {
  paused = !paused;
  button.setAttribute("aria-pressed", String(paused));
  if (!paused) flush();
  tell();
});
document.addEventListener("visibilitychange", () => {
  if (!section.querySelector("#live-ended").hidden) return;
  if (document.hidden) disconnect();
  else connect();
  tell();
});
function catchUp() {
  if (waiting.length && !isBusy()) { flush(); tell(); }
}
addEventListener("scroll", catchUp, { passive: true });
list.addEventListener("focusout", () => setTimeout(catchUp));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => { if (event.persisted) connect(); });

connect();
