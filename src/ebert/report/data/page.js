// A click on a heading sorts its table; numbers by value, the rest as text, missing ones last.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = row => row.cells[head.cellIndex].dataset.value;
    const sign = up ? 1 : -1;
    const order = (a, b) => {
      const x = value(a), y = value(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const difference = Number(x) - Number(y);
      return sign * (Number.isNaN(difference) ? x.localeCompare(y) : difference);
    };
    body.append(...[...body.rows].sort(order));
  });
}
