// The list of runs: links and the form ask for another list; ticks are kept by run id, over pages and filters, as long
// as the page.
const picked = new Set(), kept = {}, folds = {};
let at = "", shown = "";
const find = (what) => element.querySelector(what);
const all = (what) => [...element.querySelectorAll(what)];
const root = () => find(".mdqa-failures");
const every = () => Boolean(find("[data-every]")?.checked);
const seen = () => element.offsetParent !== null;

const go = (address, fixed) => {
  const wanted = new URLSearchParams(address.split("?")[1] || "");
  if (!fixed) for (const field of find(".mdqa-failures-form")?.elements ?? []) {
    if (!field.name) continue;
    const value = field.type === "checkbox" && !field.checked ? "" : field.value.trim();
    if (value) wanted.set(field.name, value); else wanted.delete(field.name);
  }
  trigger("select", { go: "?" + wanted });
};
const first = () => {
  const wanted = new URLSearchParams((root()?.dataset.address || "").split("?")[1] || "");
  wanted.delete("page");
  return "?" + wanted;
};

const say = () => {
  const number = find("[data-count]"), link = find("[data-compare]");
  if (!number) return;
  const total = Number(find("[data-every]").dataset.total);
  const here = all("[data-pick]").filter((box) => box.checked).length;
  const others = picked.size > here ? `, ${(picked.size - here).toLocaleString("en")} of them on other pages` : "";
  number.textContent = every() ? `All ${total.toLocaleString("en")} that match`
    : picked.size ? `${picked.size.toLocaleString("en")} ticked${others}` : "Nothing ticked";
  const most = Number(link.dataset.most), fits = !every() && picked.size > 0 && picked.size <= most;
  const several = every() || picked.size > most ? `Compare (${most} at most)` : `Compare ${picked.size}`;
  link.textContent = every() || picked.size > 1 ? several : "Open";
  if (fits) link.href = "?run=" + [...picked].join(",") + (picked.size > 1 ? "&tab=compare" : "");
  else link.removeAttribute("href");
  link.setAttribute("aria-disabled", String(!fits));
  const some = every() || picked.size > 0;
  for (const button of all(".mdqa-taken [data-act]")) button.disabled = !some;
  find(".mdqa-taken").classList.toggle("some", some);
};
const drawn = () => {
  for (const box of all("[data-pick]")) box.checked = picked.has(box.dataset.pick);
  for (const box of all("[data-keep]")) if (box.dataset.keep in kept) box.value = kept[box.dataset.keep];
  for (const part of all("details.mdqa-fold[id]")) {
    const narrow = part.id === "mdqa-facets" && innerWidth < 900;
    part.open = folds[part.id] ?? (narrow ? false : part.open);
  }
  say();
  if (at && seen()) all("[data-at]").find((part) => part.dataset.at === at)?.focus({ preventScroll: true });
  at = "";
  const address = root()?.dataset.address;
  if (!address || !seen() || address === shown) return;
  if (shown) history.replaceState(null, "", address);
  shown = address;
};
watch("value", drawn);
drawn();

element.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-go]");
  if (link && event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)) {
    event.preventDefault();
    at = link.dataset.at || "";
    go(link.getAttribute("href"), "fixed" in link.dataset);
  }
  if (event.target.closest("[data-page]")) for (const box of all("[data-pick]")) picked.add(box.dataset.pick);
  if (event.target.closest("[data-none]")) { picked.clear(); find("[data-every]").checked = false; }
  if (event.target.closest("[data-page], [data-none]")) {
    for (const box of all("[data-pick]")) box.checked = picked.has(box.dataset.pick);
    say();
  }
  const fold = event.target.closest("summary")?.parentElement;
  if (fold?.id) folds[fold.id] = !fold.open; // by hand only; "toggle" tells of drawing too
  const button = event.target.closest("[data-act]");
  if (!button) return;
  if (button.dataset.act === "delete" && !("sure" in button.dataset)) {
    button.dataset.sure = "";
    button.textContent = "Really delete?";
    return;
  }
  trigger("select", {
    act: button.dataset.act, picked: [...picked], every: every(), address: root().dataset.address,
    queue: find("[name=queue]")?.value, note: find("[name=note]")?.value,
    name: button.dataset.name, title: find("[name=filter_name]")?.value,
  });
});
element.addEventListener("change", (event) => {
  const box = event.target;
  if (box.dataset.pick) { if (box.checked) picked.add(box.dataset.pick); else picked.delete(box.dataset.pick); }
  if (box.dataset.pick || "every" in box.dataset) say();
  if (box.dataset.keep) kept[box.dataset.keep] = box.value;
  if (box.form?.matches(".mdqa-failures-form")) { at = box.dataset.at || ""; go(first()); }
});
element.addEventListener("submit", (event) => {
  event.preventDefault();
  at = document.activeElement?.dataset.at || "";
  go(first());
});
