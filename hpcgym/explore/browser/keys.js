// The keyboard.

const KEYS = {
  w: () => zoom(0.7),
  s: () => zoom(1 / 0.7),
  a: () => move(-0.2),
  d: () => move(0.2),
  arrowleft: () => move(-0.2),
  arrowright: () => move(0.2),
  arrowup: () => moveRows(-0.2),
  arrowdown: () => moveRows(0.2),
  "+": () => zoomRows(0.7),
  "-": () => zoomRows(1 / 0.7),
  0: showWhole,
  f: () => pick(S.picked, true),
  n: () => pickNext(1),
  p: () => pickNext(-1),
  r: () => { $("selected").open = !$("selected").open; },
  t: () => { $("listed").open = !$("listed").open; },
  "/": () => $("find").focus(),
  "?": showHelp,
  escape: () => pick(-1),
};

function showHelp() {
  $("help").showModal();
  $("help").querySelector("h2").focus();  // not the button at its end, to which it would scroll
}

function moveRows(share) {
  const by = share * (S.rows.high - S.rows.low);
  showRows(S.rows.low + by, S.rows.high + by);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open || $("saved").open) return;
  if (event.target.matches("input, select, textarea")) {
    // leave the field, with what stands in it: Escape would empty it
    if (event.key === "Escape" || (event.key === "Enter" && event.target === $("find"))) {
      event.preventDefault();
      event.target.blur();
    }
    return;
  }
  const act = KEYS[event.key.toLowerCase()];
  if (!act) return;
  event.preventDefault();
  act();
}
