// Fills the form, listens to keys and clicks, measures time, and sends what is decided until the server has it.
// Gradio runs this with "element", the component's own part of the page; it may stand in a tab that nobody looks at.
const ADDRESS = new URL("gradio_api/run/annotate", location.href.split(/[?#]/)[0]);
const IDLE_AFTER = 60_000; // without input
const MARKS = { a: "A", b: "B", o: "both", n: "neither", c: "cannot_tell" };
const KEPT = ["save", "skip", "flag", "undo"]; // orders that change something
const body = element.querySelector("[data-body]");
const status = element.querySelector("[data-status]");
const keys = element.querySelector("[data-keys]");
const useKeys = element.querySelector("[data-use-keys]");
const gone = new AbortController();
const part = (selector) => body.querySelector(selector);
const sheet = () => part("[data-sheet]");
const isSeen = () => element.isConnected && element.checkVisibility();
const pause = (time) => new Promise((resolve) => { setTimeout(resolve, time); });
const tabMemory = (name, value) => {
  const key = `mdqa-annotate-${name}`;
  if (value === undefined) return JSON.parse(sessionStorage.getItem(key) ?? "null");
  if (value === null) sessionStorage.removeItem(key);
  else sessionStorage.setItem(key, JSON.stringify(value));
  return value;
};
// crypto.randomUUID exists on HTTPS pages only.
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");
// Without a session of its own, every call would make Gradio copy the description of the whole page first.
const session = newKey();
let busy = false;
let seen = false;
let started = false;
let work = { token: "", active: 0, idle: 0 };
let last = { tick: Date.now(), input: Date.now(), alive: Date.now() };

const say = (words, look = "") => {
  status.textContent = words;
  status.dataset.look = look;
};

// --- Sending ---------------------------------------------------------------------------------------------------------

const once = async (order) => {
  let response;
  try {
    response = await fetch(ADDRESS, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ data: [order], session_hash: session }),
      signal: AbortSignal.timeout(15_000),
    });
    if (response.ok) return (await response.json()).data[0];
  } catch {
    return { fault: true, said: "The server cannot be reached." };
  }
  if (response.status === 401) return { fault: true, said: "You are signed out: sign in again in another tab." };
  const { error } = await response.json().catch(() => ({}));
  return error && response.status === 500
    ? { refused: true, said: new DOMParser().parseFromString(error, "text/html").body.textContent }
    : { fault: true, said: `The server answers ${response.status}.` };
};

// What must not be lost stays in the tab's memory until the server has answered, and outlives a reload.
const deliver = async (order) => {
  const kept = KEPT.includes(order.do);
  if (kept) tabMemory("pending", order);
  for (let attempt = 0; element.isConnected; attempt += 1) {
    const answer = await once(order);
    if (!answer.fault) {
      if (kept) tabMemory("pending", null);
      return answer;
    }
    say(`${kept ? "Not saved, trying again." : "Trying again."} ${answer.said}`, "bad");
    await pause(Math.min(500 * 2 ** attempt, 5000));
  }
  return { refused: true, said: "" };
};

const act = async (order) => {
  if (busy) return;
  busy = true;
  element.toggleAttribute("data-busy", true);
  try {
    const answer = await deliver(order);
    if (answer.html !== undefined) show(answer.html);
    if (answer.done === "flag") part("[data-asked]")?.focus({ preventScroll: true });
    const found = answer.done === "open" || answer.done === "queues" ? "" : answer.said ?? "";
    say(found, answer.refused ? "bad" : "");
    if (answer.stale) tabMemory("draft", null);
    // The list of all queues, for those who have it, counts what was just done, and who works.
    if ([...KEPT, "open"].includes(order.do) && document.querySelector("#mdqa-queue-states")) trigger("select", {});
  } finally {
    busy = false;
    element.toggleAttribute("data-busy", false);
  }
};

// --- Showing ---------------------------------------------------------------------------------------------------------

const show = (html) => {
  body.innerHTML = html; // made and escaped by the server
  const now = sheet();
  tabMemory("queue", now?.dataset.queue ?? null);
  const token = now?.dataset.token ?? "";
  const before = tabMemory("draft");
  const known = token && before?.token === token;
  const draft = known ? before : {
    token, active: 0, idle: 0, note: now?.dataset.note ?? "",
    evidence: (now?.dataset.evidence ?? "").split(",").filter(Boolean).map(Number),
  };
  work = { token, active: draft.active, idle: draft.idle };
  last = { tick: Date.now(), input: Date.now(), alive: Date.now() };
  if (token) {
    part("[data-note-text]").value = draft.note;
    for (const number of draft.evidence) part(`[data-evidence-of="${number}"]`)?.setAttribute("aria-pressed", "true");
  }
  const rules = part(".mdqa-rules");
  if (rules) rules.open = localStorage.getItem(`mdqa-rules-${now.dataset.queue}`) !== rules.dataset.version;
  const first = part("[data-asked]") ?? part("[data-open]");
  if (element.contains(document.activeElement) || document.activeElement === document.body) {
    first?.focus({ preventScroll: true });
  }
  if (started && token && element.getBoundingClientRect().top < 0) element.scrollIntoView({ block: "start" });
};

const evidence = () => [...body.querySelectorAll('[data-evidence-of][aria-pressed="true"]')]
  .map((button) => Number(button.dataset.evidenceOf));

const remember = () => {
  if (!work.token) return;
  tabMemory("draft", { ...work, note: part("[data-note-text]")?.value ?? "", evidence: evidence() });
};

// --- What can be done ------------------------------------------------------------------------------------------------

const form = () => ({
  queue: sheet().dataset.queue,
  token: work.token,
  seconds: Math.round(work.active) / 1000,
  idle: Math.round(work.idle) / 1000,
});

const label = (mark) => {
  if (!work.token || !part(`[data-mark="${mark}"]`)) return;
  tick();
  const rules = part(".mdqa-rules");
  if (rules) localStorage.setItem(`mdqa-rules-${sheet().dataset.queue}`, rules.dataset.version);
  act({ do: "save", ...form(), mark, note: part("[data-note-text]").value, evidence: evidence() });
};

const toggle = (number) => {
  const button = part(`[data-evidence-of="${number}"]`);
  if (!button) return;
  const marked = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(marked));
  say(`Document ${number} ${marked ? "marked as evidence" : "not marked"}.`);
  remember();
};

const ASK = {
  skip: "Why do you skip this item?",
  flag: "What is wrong with this item?",
};

const tools = {
  skip: () => ask("skip"),
  flag: () => ask("flag"),
  close: () => {
    const box = part("[data-ask]");
    if (box) box.hidden = true;
    part("[data-asked]")?.focus({ preventScroll: true });
  },
  undo: () => sheet() && act({ do: "undo", queue: sheet().dataset.queue, key: newKey() }),
  keys: () => showKeys(),
  leave: () => act({ do: "queues" }),
};

// The keys that do something with the item in front; all of them where there is none.
const showKeys = () => {
  const one = body.querySelectorAll(".mdqa-option").length < 2;
  for (const row of keys.querySelectorAll("[data-key-of]")) {
    row.hidden = Boolean(work.token) && !part(`[data-mark="${row.dataset.keyOf}"]`);
    const words = row.querySelector("td");
    words.textContent = work.token && one ? words.dataset.one : words.dataset.words;
  }
  keys.showModal();
};

const ask = (kind) => {
  const box = part("[data-ask]");
  if (!box || !work.token) return;
  box.dataset.ask = kind;
  box.hidden = false;
  part("[data-ask-words]").textContent = ASK[kind];
  const input = part("[data-ask-text]");
  if (kind === "skip") input.setAttribute("list", "mdqa-reasons");
  else input.removeAttribute("list");
  input.value = "";
  input.focus();
};

// --- Time ------------------------------------------------------------------------------------------------------------

// Time at work runs until a minute after the last input, and never in a tab that is not seen.
const tick = () => {
  const now = Date.now();
  const passed = Math.max(now - last.tick, 0);
  const here = !document.hidden && isSeen();
  const active = here ? Math.min(Math.max(last.input + IDLE_AFTER - last.tick, 0), passed) : 0;
  last.tick = now;
  if (!work.token) return;
  work.active += active;
  work.idle += passed - active;
  if (here && now - last.alive > 60_000 && now - last.input < IDLE_AFTER) {
    last.alive = now;
    once({ do: "alive", token: work.token }); // a sign of life; whether it arrives is seen at the next save
  }
  remember();
};

const timer = setInterval(() => {
  if (!element.isConnected) {
    clearInterval(timer);
    gone.abort();
    return;
  }
  tick();
  const before = seen;
  seen = isSeen();
  if (!seen || before || busy) return;
  if (!started) start();
  else if (!sheet()) act({ do: "queues" }); // somebody may have made a queue meanwhile
}, 500);

// --- Listening -------------------------------------------------------------------------------------------------------

const listen = (target, kind, handler) => target.addEventListener(kind, handler, { signal: gone.signal });
for (const kind of ["pointermove", "pointerdown", "keydown", "scroll", "touchmove"]) {
  document.addEventListener(kind, () => { tick(); last.input = Date.now(); },
    { signal: gone.signal, passive: true, capture: true });
}

listen(element, "click", (event) => {
  const { mark, tool, open: queue, evidenceOf } = event.target.closest("button")?.dataset ?? {};
  if (busy) return;
  if (mark) label(mark);
  else if (tool) tools[tool]();
  else if (queue) act({ do: "open", queue });
  else if (evidenceOf) toggle(evidenceOf);
});
listen(element, "input", (event) => { if (event.target.matches("[data-note-text]")) remember(); });
listen(element, "submit", (event) => {
  const box = event.target.closest("[data-ask]");
  if (!box) return;
  event.preventDefault();
  if (busy) return;
  tick();
  const order = { do: box.dataset.ask, ...form(), reason: part("[data-ask-text]").value };
  if (order.do === "flag") order.key = newKey();
  box.hidden = true;
  act(order);
});

useKeys.checked = localStorage.getItem("mdqa-keys") !== "off";
listen(useKeys, "change", () => localStorage.setItem("mdqa-keys", useKeys.checked ? "on" : "off"));

listen(document, "keydown", (event) => {
  if (!isSeen() || keys.open || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  const typing = event.target.closest?.('input:not([type="checkbox"]), textarea, select, [contenteditable="true"]');
  if (event.key === "Escape" && element.contains(event.target)) {
    event.target.blur();
    tools.close();
    return;
  }
  if (typing || event.isComposing || event.repeat || !useKeys.checked) return;
  // Letters by what they say, digits by where they are: Shift changes the sign on a digit's key, differently everywhere.
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code)?.[1];
  const key = event.key.toLowerCase();
  const known = { s: "skip", f: "flag", u: "undo", "?": "keys" }[key];
  if (busy || !sheet()) {
    if (key === "?") showKeys();
    return;
  }
  if (key === "?") tools.keys();
  else if (digit !== undefined) toggle((Number(digit) || 10) + (event.shiftKey ? 10 : 0));
  else if (key in MARKS) label(MARKS[key]);
  else if (key === "w") part("[data-note-text]")?.focus();
  else if (known) tools[known]();
  else return;
  event.preventDefault();
});
listen(window, "beforeunload", (event) => { if (tabMemory("pending")) event.preventDefault(); });

// --- Beginning -------------------------------------------------------------------------------------------------------

const start = async () => {
  started = true;
  const pending = tabMemory("pending");
  if (pending) {
    say("Sending what was not saved yet.");
    await act(pending);
    if (sheet()) return;
  }
  const queue = tabMemory("queue");
  await act(queue ? { do: "open", queue } : { do: "queues" });
  if (!body.innerHTML) await act({ do: "queues" });
};
