"use strict";
const table = document.getElementById("index");
if (table) {
  const body = table.tBodies[0], rows = [...body.rows];
  const search = document.getElementById("search"), shown = document.getElementById("shown");
  document.getElementById("tools").hidden = false;
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let number = 0;
    for (const row of rows) {
      const text = row.dataset.text.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      number += row.hidden ? 0 : 1;
    }
    shown.textContent = `${number} of ${rows.length} groups`;
  });
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const isText = header.classList.contains("text"), button = document.createElement("button");
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const isDescending = header.ariaSort ? header.ariaSort === "ascending" : !isText;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      const direction = isDescending ? -1 : 1;
      rows.sort((one, two) => {
        const [a, b] = [value(one, column), value(two, column)];
        if (!isText && (a === "" || b === "")) return (a === "") - (b === "");
        return direction * (isText ? a.localeCompare(b) : Number(a) - Number(b));
      });
      body.append(...rows);
    });
  });
}
