// The form of "What if" in the browser: what is typed stays here until "Run again" or a summary asks for it.
// The server checks everything; nothing here decides what may be run.

const initial = new WeakMap(); // of every box: what it held when the run was shown
const opened = (window.mdqaWhatIfFolds ??= {}); // which folds are open, kept from run to run
let pristine = "", timer = 0;

const form = () => element.querySelector(".mdqa-whatif");
const rows = () => [...element.querySelectorAll(".mdqa-whatif-rows > li")];
const isOn = (row) => row.querySelector("[data-do=switch]").checked;
const valueOf = (box) => (box.type === "checkbox" ? box.checked : box.value);
const touched = (box) => valueOf(box) !== initial.get(box);

function remember(part, like = part) {
  const from = [...like.querySelectorAll("input, textarea, select")];
  [...part.querySelectorAll("input, textarea, select")].forEach((box, i) => {
    initial.set(box, like === part ? valueOf(box) : initial.get(from[i]));
  });
}

function init() {
  if (!form()) return;
  pristine = form().innerHTML;
  remember(form());
  for (const fold of form().querySelectorAll("details")) fold.open = Boolean(opened[fold.id]);
  renumber();
}

function renumber() {
  const on = rows().filter(isOn);
  for (const row of rows()) {
    const place = row.querySelector(".place"), number = on.indexOf(row) + 1;
    place.disabled = number === 0;
    place.max = on.length;
    place.value = number || "";
    row.classList.toggle("off", number === 0);
    row.querySelector(".state.off").hidden = number > 0;
    row.querySelector(".state.copy").hidden = !("copied" in row.dataset);
    row.querySelector(".state.edited").hidden = ![...row.querySelectorAll("[data-edit]")].some(touched);
    row.querySelector("[data-do=up]").disabled = number <= 1;
    row.querySelector("[data-do=down]").disabled = number === 0 || number === on.length;
    row.querySelector("[data-do=copy]").disabled = number === 0;
  }
}

function wishes() {
  const documents = rows().filter(isOn).map((row) => {
    const wish = { document: row.dataset.document, copied: "copied" in row.dataset };
    for (const box of row.querySelectorAll("[data-edit]")) if (touched(box)) wish[box.dataset.edit] = box.value;
    return wish;
  });
  const options = {};
  for (const box of element.querySelectorAll("[data-option]")) if (touched(box)) options[box.dataset.option] = valueOf(box);
  return { run: form().dataset.run, documents, options };
}

function say(wait = 250) {
  clearTimeout(timer);
  timer = setTimeout(() => form() && trigger("input", wishes()), wait);
}

function put(row, number) {
  const others = rows().filter((other) => isOn(other) && other !== row);
  const at = Math.min(Math.max(number, 1), others.length + 1) - 1;
  if (at < others.length) others[at].before(row);
  else if (others.length) others[others.length - 1].after(row);
}

const acts = {
  up: (row) => put(row, Number(row.querySelector(".place").value) - 1),
  down: (row) => put(row, Number(row.querySelector(".place").value) + 1),
  copy: (row) => {
    const twin = row.cloneNode(true);
    twin.dataset.copied = "";
    remember(twin, row);
    row.after(twin);
    twin.querySelector("[data-do=switch]").focus();
  },
  edit: (row, button) => {
    const editor = row.querySelector(".editor");
    editor.hidden = !editor.hidden;
    button.ariaExpanded = String(!editor.hidden);
    if (!editor.hidden) editor.querySelector("textarea").focus();
  },
};

function act(target) {
  const name = target.dataset.do, row = target.closest("li");
  if (name === "run") {
    clearTimeout(timer);
    trigger("submit", wishes());
  } else if (name === "reset") {
    form().innerHTML = pristine;
    init();
    form().querySelector("[data-do=reset]").focus();
    say(0);
  } else if (acts[name]) {
    const box = row.querySelector(`[data-do=${name}]`), scroll = row.parentElement.scrollTop;
    acts[name](row, target);
    renumber();
    if (name === "up" || name === "down") (box.disabled ? row.querySelector(".place") : box).focus();
    if (name !== "edit") say();
    if (name === "copy") row.parentElement.scrollTop = scroll;
  }
}

element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button && !button.disabled) act(button);
});
element.addEventListener("change", (event) => {
  const box = event.target, row = box.closest("li");
  if (row && box.dataset.do === "place" && box.value) put(row, Math.round(Number(box.value)));
  if (row) renumber();
  say();
});
element.addEventListener("input", (event) => {
  if (event.target.dataset.edit) renumber();
  if (event.target.dataset.do !== "place") say();
});
element.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
  event.preventDefault();
  if (event.target.dataset.option) act(form().querySelector("[data-do=run]"));
  else if (event.target.dataset.do === "place") {
    event.target.dispatchEvent(new Event("change", { bubbles: true }));
    event.target.focus();
  }
});
element.addEventListener("toggle", (event) => { opened[event.target.id] = event.target.open; }, true);
watch("value", init);
init();
