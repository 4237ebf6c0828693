document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, index) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const value = (row) => { const text = row.cells[index].dataset.value; return text === "" || text === undefined ? -Infinity : Number(text); };
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      body.querySelectorAll("tr.group").forEach((row) => { row.hidden = true; });
      rows.sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b))).forEach((row) => body.append(row));
    });
  });
});
