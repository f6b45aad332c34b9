() => {
  // Evidence flow: the picture is drawn again and again, so listen on the document. What a mark's title says on hover is
  // written below the picture for touch and keyboard; the picture is one stop for Tab, arrow keys move between marks.
  const markOf = (event) => event.target.closest?.(".mdqa-flow .mark");
  const say = (event) => {
    const mark = markOf(event);
    const line = mark?.closest(".mdqa-flow").querySelector("[data-said]");
    if (line) line.textContent = mark.querySelector("title").textContent.split("\n").join(" · ");
  };
  for (const kind of ["mouseover", "focusin", "click"]) document.addEventListener(kind, say);
  document.addEventListener("keydown", (event) => {
    const mark = markOf(event);
    if (!mark || !event.key.startsWith("Arrow")) return;
    const place = (other) => other.dataset.at.split(",").map(Number);
    const [column, y] = place(mark);
    const others = [...mark.closest("svg").querySelectorAll(".mark")].filter((other) => other !== mark);
    const along = event.key === "ArrowLeft" || event.key === "ArrowRight";
    const sign = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
    // Left and right follow the same document, up and down stay in the stage.
    const distance = (other) => (along ? place(other)[0] - column : place(other)[1] - y) * sign;
    const same = (other) => (along ? other.dataset.number === mark.dataset.number : place(other)[0] === column);
    const next = others.filter((other) => same(other) && distance(other) > 0).sort((a, b) => distance(a) - distance(b))[0];
    event.preventDefault();
    if (!next) return;
    mark.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}
