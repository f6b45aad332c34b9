() => {
  const openPart = (title) => {
    const tabs = [...document.querySelectorAll("#mdqa-result .mdqa-result-tabs [role=tab]")];
    const tab = tabs.find((found) => found.textContent.trim() === title);
    tab?.click();
    return tab;
  };
  // Buttons that open a part of the result: the part's tab gets the keyboard's place.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-part]");
    const tab = button && openPart(button.dataset.part);
    if (!tab?.offsetParent) return;
    tab.focus({ preventScroll: true });
    tab.scrollIntoView({ block: "nearest" });
  });
  // The address names the tab that a person chose, so that it can be loaded again or sent. What a tab shows may have an
  // address of its own, which it says in data-address. On a phone, tabs are also chosen in a menu without their ids.
  const LEAD = "mdqa-tab-";
  const tabInFront = () => [...document.querySelectorAll(`#mdqa-tabs > [id^=${LEAD}]`)].find((tab) => tab.offsetParent);
  let chosen = null;
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#mdqa-tabs > .tab-wrapper")) return;
    setTimeout(() => {
      const tab = tabInFront();
      if (!tab || tab === chosen) return;
      chosen = tab;
      document.dispatchEvent(new CustomEvent("mdqa-tab"));
      const name = tab.id.slice(LEAD.length);
      const now = new URLSearchParams(location.search).get("tab") ?? "ask";
      if (now === name) return; // as it was opened, perhaps with a filter
      const own = tab.querySelector("[data-address]")?.dataset.address;
      history.replaceState(null, "", own ?? (name === "ask" ? location.pathname : `?tab=${name}`));
    }, 0); // once the click has its effect
  });
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
  // A link to a document's card: the card stands in another tab, which is drawn when it is opened for the first time.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-card]");
    if (!link) return;
    event.preventDefault();
    openPart("Documents");
    let asked = false;
    for (let look = 0; look < 100; look += 1) {
      const card = document.getElementById(link.dataset.card);
      const cards = document.querySelector("#mdqa-documents .mdqa-cards");
      if (!card && cards?.offsetParent && !asked) {
        // Of many documents only a page is there: ask the server for the one with this card.
        asked = true;
        cards.dispatchEvent(
          new CustomEvent("mdqa-card", { bubbles: true, detail: Number(link.dataset.card.split("-").at(-1)) }),
        );
      }
      if (card?.offsetParent) {
        card.open = true;
        card.querySelector("summary").focus({ preventScroll: true });
        card.scrollIntoView({ block: "start" });
        card.classList.add("found");
        setTimeout(() => card.classList.remove("found"), 2000);
        return;
      }
      await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
  });
  // Run stands below a long form: bring what it starts into view.
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#mdqa-run")) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    document.querySelector("#mdqa-live")?.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "start" });
  });
}
