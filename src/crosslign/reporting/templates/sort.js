document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const body = table.tBodies[0];
  const printed = [...body.rows];
  const next = { null: "descending", descending: "ascending", ascending: null };
  heads.forEach((head, index) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const order = next[head.getAttribute("aria-sort")];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      table.classList.toggle("sorted", order !== null);
      printed.forEach((row) => { row.hidden = order !== null && row.classList.contains("group"); body.append(row); });
      if (order === null) return;
      head.setAttribute("aria-sort", order);
      const known = (row) => Boolean(row.cells[index].dataset.value);
      const value = (row) => Number(row.cells[index].dataset.value) * (order === "descending" ? -1 : 1);
      const rows = printed.filter((row) => !row.hidden);
      rows.filter(known).sort((a, b) => value(a) - value(b)).forEach((row) => body.append(row));
      rows.filter((row) => !known(row)).forEach((row) => body.append(row));
    });
  });
  const box = table.closest(".scroll");
  const chooser = box.previousElementSibling;
  if (chooser && chooser.classList.contains("choose")) {
    const more = chooser.querySelector(".more");
    const look = () => { more.hidden = box.scrollWidth <= box.clientWidth + 1; };
    chooser.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const hidden = button.getAttribute("aria-pressed") === "true";
      const { group, first, width } = button.dataset;
      button.setAttribute("aria-pressed", String(!hidden));
      const over = table.tHead.querySelector("tr.groups");
      if (over) over.cells[Number(group)].hidden = hidden;
      [...table.tHead.rows, ...printed].filter((row) => row !== over).forEach((row) => {
        [...row.cells].slice(Number(first), Number(first) + Number(width)).forEach((cell) => { cell.hidden = hidden; });
      });
      look();
    });
    window.addEventListener("resize", look);
    look();
  }
  const details = box.nextElementSibling;
  body.addEventListener("click", (event) => {
    const cell = event.target.closest("td[title]");
    if (cell && details.classList.contains("details")) details.textContent = cell.title;
  });
});
