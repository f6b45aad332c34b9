() => {
  // "Copy link" buttons stand in HTML that is drawn again and again: listen once, on the document.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const address = new URL(button.dataset.copy, location.origin + location.pathname).href;
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(address);
      button.textContent = "Copied";
    } catch {
      button.textContent = address; // without clipboard access the address can be selected by hand
      return;
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  // Run stands below a long form: bring what it starts into view.
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#mdqa-run")) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    document.querySelector("#mdqa-live")?.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "start" });
  });
}
