() => {
  // The tour: three steps in a box at the page's lower edge. It covers no control, takes no focus by itself, and once it
  // was closed it comes back only by the button in the header. The page works without localStorage too.
  const KEY = "mdqa-tour";
  const box = document.getElementById("mdqa-tour");
  if (!box) return;
  const opener = () => document.getElementById("mdqa-tour-open"); // the header is drawn again when somebody signs in
  const steps = [...box.querySelectorAll("[data-step]")];
  const button = (name) => box.querySelector(`[data-tour="${name}"]`);
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  let at = 0;
  let target = null;

  const remember = () => { try { localStorage.setItem(KEY, "seen"); } catch { /* not kept, then it shows again */ } };
  const seen = () => { try { return localStorage.getItem(KEY) === "seen"; } catch { return true; } };

  const mark = (look) => {
    target?.classList.remove("mdqa-tour-target");
    target = (steps[at].dataset.target ?? "").split(" ").map((id) => document.getElementById(id))
      .find((found) => found?.offsetParent) ?? null;
    target?.classList.add("mdqa-tour-target");
    if (look) target?.scrollIntoView({ behavior: still() ? "auto" : "smooth", block: "center" });
  };
  const show = (step, look) => {
    at = Math.max(0, Math.min(step, steps.length - 1));
    steps.forEach((part, index) => { part.hidden = index !== at; });
    button("back").hidden = at === 0;
    button("next").textContent = at === steps.length - 1 ? "Done" : "Next";
    box.hidden = false;
    box.classList.remove("elsewhere");
    if (opener()) opener().ariaExpanded = "true";
    mark(look);
  };
  const close = () => {
    const inside = box.contains(document.activeElement);
    box.hidden = true;
    if (opener()) opener().ariaExpanded = "false";
    target?.classList.remove("mdqa-tour-target");
    target = null;
    remember();
    if (inside) opener()?.focus();
  };

  document.addEventListener("click", (event) => {
    if (!event.target.closest("#mdqa-tour-open")) return;
    document.querySelector("#mdqa-tabs [role=tab]")?.click(); // all steps are on the first tab
    show(0, false);
    steps[0].querySelector("h2").focus();
  });
  button("back").addEventListener("click", () => { show(at - 1, true); if (at === 0) button("next").focus(); });
  button("next").addEventListener("click", () => { if (at === steps.length - 1) close(); else show(at + 1, true); });
  button("close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [role=dialog]"); // they have an Escape of their own
    if (event.key === "Escape" && !box.hidden && !typing) close();
  });
  // Whoever presses Run has done the second step: the third one says what to look at.
  document.addEventListener("click", (event) => {
    if (!box.hidden && event.target.closest("#mdqa-run")) show(2, false);
  });
  // All steps are on the first tab: on another one the box waits.
  document.addEventListener("mdqa-tab", () => {
    box.classList.toggle("elsewhere", !document.getElementById("mdqa-run")?.offsetParent);
  });
  // The result is drawn later than the step that points at it.
  new MutationObserver(() => {
    if (!box.hidden && at === 2 && !(target?.id === "mdqa-result" && target.isConnected)) mark(false);
  }).observe(document.body, { childList: true, subtree: true });

  // A first visit, unless it is to a run that somebody sent or to another tab, or by a person to whom Ask is not shown.
  const asked = new URLSearchParams(location.search);
  if (seen() || asked.has("run") || (asked.get("tab") ?? "ask") !== "ask") return;
  let looks = 0;
  const wait = setInterval(() => {
    looks += 1;
    const ready = opener() && document.getElementById("mdqa-run")?.offsetParent;
    if (ready && box.hidden && !seen()) show(0, false);
    if (ready || looks > 100) clearInterval(wait);
  }, 100);
}
