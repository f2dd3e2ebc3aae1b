// Which of several schedules are shown: one above the other, two at most.

let schedules = [];  // what Python told of each
const built = new Map();  // schedules that were shown before: they are placed once

function builtSchedule(place) {
  if (!built.has(place)) built.set(place, scheduleOf(schedules[place], S.columns, S.jobs));
  return built.get(place);
}

/** Show the schedules of these places, if there are such; what else follows, the caller does. */
function choose(places) {
  const valid = places.every((one) => schedules[one]) && new Set(places).size === places.length;
  if (!valid || places.length !== Math.min(schedules.length, 2)) return;
  S.places = places;
  S.runs = places.map(builtSchedule);
  S.runs.forEach((run, k) => {
    run.shown = null;  // it may have been on the other canvas
    $(`shown${k}`).value = String(places[k]);
  });
  S.whole = extent(S.runs);
  $("power").parentElement.hidden = !S.runs.some((run) => run.power);
}

/** The reader has chosen a schedule for above (0) or below (1). */
function onChoice(k) {
  const wanted = Number($(`shown${k}`).value), places = [...S.places], all = allRows();
  if (places[1 - k] === wanted) places[1 - k] = places[k];
  places[k] = wanted;
  choose(places);
  if (all !== allRows()) S.rows = { low: 0, high: allRows() };
  recolour();
  showStatistics();
  showFacts();
  if (S.picked >= 0) whenPicked(S.picked);
}

function startChoice(runs) {
  schedules = runs;
  $("shown").hidden = schedules.length < 3;
  for (const k of [0, 1]) {
    $(`shown${k}`).replaceChildren(...schedules.map((one, i) => element("option", { value: String(i) }, one.name)));
    $(`shown${k}`).addEventListener("change", () => onChoice(k));
  }
  choose([0, 1].slice(0, schedules.length));
}
