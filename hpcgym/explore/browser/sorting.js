// Tables that Python has written: a click on a heading sorts their rows.

const GROUPED = /^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$/;  // digits in groups of three

/** What a row is sorted by: the text of a cell; "" where there is no value. */
function sortValue(row, place) {
  const text = row.cells[place].textContent.replace(/ ★$/, "");
  return GROUPED.test(text) ? text.replaceAll(",", "") : text === "-" ? "" : text;
}

function sortRows(head) {
  const body = head.closest("table").tBodies[0], place = head.cellIndex;
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = (row) => sortValue(row, place);
  const rows = [...body.rows], empty = rows.filter((row) => value(row) === "");
  const told = rows.filter((row) => value(row) !== "");
  const numbers = told.every((row) => Number.isFinite(Number(value(row))));
  told.sort(numbers
    ? (a, b) => Number(value(a)) - Number(value(b))
    : (a, b) => value(a).localeCompare(value(b), "en", { numeric: true }));
  body.append(...(up ? told : told.reverse()), ...empty);
}

function listenToHeadings() {
  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.addEventListener("click", () => sortRows(button.parentElement));
  }
}
