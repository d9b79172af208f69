// Tables sort by a click on a column, points tell what they are, rows can be hidden. All optional.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("thead th:not(.strip)")];
  for (const head of heads) {
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => {
        const text = row.cells[head.cellIndex].textContent.trim();
        const number = parseFloat(text.replace("−", "-").replace("+", ""));
        return Number.isNaN(number) ? text : number;
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
        return (typeof x === "number" ? x - y : x.localeCompare(y)) * (down ? -1 : 1);
      });
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", event => event.key === "Enter" && sort());
  }
}
for (const box of document.querySelectorAll(".choice input")) {
  box.addEventListener("change", () => {
    const rows = box.closest("section").querySelectorAll("tr[data-group]");
    for (const row of rows) if (row.dataset.group === box.value) row.hidden = !box.checked;
  });
}
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
document.addEventListener("pointerover", event => {
  const text = event.target.dataset && event.target.dataset.tip;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const x = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
  tip.style.left = Math.max(8, x) + "px";
  tip.style.top = event.clientY + 16 + "px";
});
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach(one => { one.open = true; });
});
addEventListener("afterprint", () => folded.forEach(one => { one.open = false; }));
