// The page of the traces: one feature that is seen again and again, and the one-state example.
"use strict";
(() => {
  const { METHODS } = trueonline.methods;
  const { visitTraces, pattern, moves, oneState, growth, limit } = trueonline.traces;
  const { h, svg, slider, choice, button, player, legend, chart, format, hash, announce, onResize, mark } = trueonline.widgets;
  const ALL = Object.values(METHODS);
  const two = (v) => v.toFixed(2);

  // --- One feature, seen again and again --------------------------------------------------------------------------------

  const STEPS = 30;
  let visits = [];
  let chosen = 5;
  let seed = 1;

  const kind = choice({ label: "The feature is seen …", value: "always", onChange: () => changePattern(),
    options: [{ value: "always", label: "at every step" }, { value: "every", label: "at every n-th" }, { value: "random", label: "at random" }, { value: "own", label: "when I say" }] });
  const every = slider({ label: "n", min: 2, max: 10, step: 1, value: 3, onInput: () => changePattern() });
  const alpha = slider({ label: "step-size α", min: 0.01, max: 1, step: 0.01, value: 0.3, format: two, onInput: () => drawVisits() });
  const fade = slider({ label: "what is left after one step, γλ", min: 0, max: 1, step: 0.01, value: 0.9, format: two, onInput: () => drawVisits() });
  const again = button({ label: "Other random visits", onClick: () => { seed += 1; changePattern(); } });

  const traceChart = chart({
    label: "The three traces over time", height: 290, x: { label: "time step", min: -0.5, max: STEPS - 0.5, ticks: [0, 5, 10, 15, 20, 25] }, y: { label: "trace e" },
    onPoint: (x) => flip(Math.round(x)),
    readout: (x) => {
      const t = Math.min(Math.max(Math.round(x), 0), STEPS - 1);
      choose(t);
      return [`step ${t}: ${visits[t] ? "seen" : "not seen"}`, ...ALL.map((m) => `${m.trace}: ${format(curves[m.name][t])}`)];
    },
  });
  const cells = Array.from({ length: STEPS }, (_, t) => h("button", { type: "button", class: "visit", tabindex: t === chosen ? 0 : -1,
    "data-t": t, onclick: () => flip(t), onfocus: () => choose(t) }));
  const strip = h("div", { class: "visits", role: "group", "data-keys": "arrows", "aria-label": "The steps at which the feature is seen. Arrow keys move, space changes." }, cells);
  strip.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: STEPS - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    cells[Math.min(Math.max(to, 0), STEPS - 1)].focus();
  });
  const sums = h("div", { class: "sums", "aria-live": "polite" });
  let curves = {};

  function changePattern() {
    every.element.hidden = kind.value !== "every";
    again.element.hidden = kind.value !== "random";
    if (kind.value !== "own" || !visits.length) visits = pattern(kind.value === "own" ? "always" : kind.value, STEPS, { every: every.value, seed });
    drawVisits();
  }
  function flip(t) {
    if (t < 0 || t >= STEPS) return;
    visits[t] = !visits[t];
    kind.value = "own";
    changePattern();
    choose(t);
  }
  function choose(t) {
    if (t === chosen && sums.childNodes.length) return;
    cells[chosen].tabIndex = -1;
    chosen = t;
    cells[chosen].tabIndex = 0;
    drawSums();
  }
  function drawVisits() {
    curves = visitTraces(visits, { alpha: alpha.value, fade: fade.value });
    const top = Math.max(1.25, ...ALL.flatMap((m) => curves[m.name])) * 1.12;
    const lines = [1, 2].map((n) => ({ y: n / alpha.value, label: n === 1 ? "1/α: overshoots" : "2/α: gets worse", colour: "var(--ink)" }));
    traceChart.draw({
      y: { min: 0, max: top },
      series: ALL.map((m) => ({ ...m, points: curves[m.name].map((e, t) => [t, e]), markers: "all", width: 2 })),
      lines: lines.filter((line) => line.y < top),
      after: (me) => {
        strip.style.marginLeft = `${me.left}px`;
        strip.style.width = `${me.right - me.left}px`;
      },
    });
    cells.forEach((cell, t) => {
      cell.setAttribute("aria-pressed", visits[t]);
      cell.setAttribute("aria-label", `step ${t}`);
    });
    drawSums();
    state.save();
  }
  function drawSums() {
    const t = chosen;
    const before = (m) => (t === 0 ? 0 : curves[m.name][t - 1]);
    const f = two(fade.value);
    const text = {
      accumulate: (e) => `${f} × ${format(e)}${visits[t] ? " + 1" : ""}`,
      replace: (e) => (visits[t] ? "set to 1" : `${f} × ${format(e)}`),
      true_online: (e) => (visits[t] ? `(1 − ${two(alpha.value)}) × ${f} × ${format(e)} + 1` : `${f} × ${format(e)}`),
    };
    sums.replaceChildren(
      h("p", { class: "hint" }, `Step ${t}, the feature is ${visits[t] ? "seen" : "not seen"}:`),
      h("table", { class: "numbers" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "trace"), h("th", { scope: "col" }, "what is done"), h("th", { scope: "col" }, "e"), h("th", { scope: "col" }, "α × e"))),
        h("tbody", {}, ALL.map((m) => {
          const e = curves[m.name][t];
          return h("tr", {}, h("td", { class: m.name.replace("_", "-") }, m.trace), h("td", { class: "wrap" }, text[m.name](before(m))), h("td", {}, format(e)),
            h("td", {}, `${format(alpha.value * e)}${alpha.value * e > 1 + 1e-9 ? " ▲" : ""}`));
        }))),
      h("p", { class: "hint" }, "▲ more than 1: the change is larger than the surprise."));
  }

  const visitsBox = document.getElementById("visits");
  visitsBox.append(
    kind.element,
    h("div", { class: "controls" }, alpha.element, fade.element, every.element, again.element),
    legend(ALL.map((m) => ({ ...m, name: `${m.trace} trace` }))),
    traceChart.element,
    strip,
    h("p", { class: "hint" }, "Filled squares are visits. Click one, or click in the chart, to change it.", h("span", { class: "keys" }, " With the keyboard: ", h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " move along the squares, ", h("kbd", {}, "Space"), " changes one.")),
    sums);
  const ownVisits = { get value() { return visits.map((seen) => (seen ? 1 : 0)).join(""); },
    set value(text) { if (/^[01]+$/.test(text) && text.length === STEPS) visits = [...text].map((one) => one === "1"); } };
  const seedState = { get value() { return seed; }, set value(v) { seed = Number(v) >>> 0 || 1; } };

  // --- Moves that follow each other -------------------------------------------------------------------------------------

  const times = slider({ label: "visits n", min: 1, max: 12, step: 1, value: 5, format: (v) => `${v}`, onInput: () => drawMoves() });
  const fraction = slider({ label: "step-size α", min: 0.01, max: 1, step: 0.01, value: 0.3, format: two, onInput: () => drawMoves() });
  const hops = svg("svg", { class: "hops", role: "img" });
  const hopsBox = h("div", {}, hops);

  function drawMoves() {
    const width = hopsBox.clientWidth || 600;
    const paths = ALL.map((m) => moves(m.name, times.value, fraction.value));
    const most = Math.max(1.25, ...paths.map((places) => places.at(-1)));
    const [left, right, row] = [14, 14, 78];
    const px = (v) => left + (v / most) * (width - left - right);
    const height = row * ALL.length + 30;
    hops.setAttribute("viewBox", `0 0 ${width} ${height}`);
    hops.setAttribute("height", height);
    hops.replaceChildren(
      svg("rect", { x: px(1), y: 6, width: width - right - px(1), height: height - 30, class: "beyond" }),
      svg("line", { x1: px(0), x2: px(0), y1: 6, y2: height - 24, class: "post" }), svg("line", { x1: px(1), x2: px(1), y1: 6, y2: height - 24, class: "post" }),
      svg("text", { x: px(0), y: height - 8 }, "guess 0"), svg("text", { x: px(1), y: height - 8, "text-anchor": "middle" }, "outcome 1"),
      ...ALL.flatMap((m, i) => {
        const base = 6 + (i + 1) * row - 14;
        const places = paths[i];
        const arcs = places.slice(1).map((to, j) => {
          const [a, b] = [px(places[j]), px(to)];
          const high = Math.min(34, 6 + (b - a) * 0.35);
          return svg("path", { d: `M${a} ${base}Q${(a + b) / 2} ${base - 2 * high} ${b} ${base}`, class: "hop", style: { stroke: m.colour } });
        });
        const end = px(places.at(-1));
        return [svg("line", { x1: px(0), x2: width - right, y1: base, y2: base, class: "ground" }), ...arcs, mark(m, end, base),
          svg("text", { x: left + 6, y: base - row + 30, class: "name" }, `${m.trace}: ${format(places.at(-1))} of the way${places.at(-1) > 1 + 1e-9 ? ", too far ▲" : ""}`)];
      }));
    hops.setAttribute("aria-label", ALL.map((m, i) => `The ${m.trace} trace goes ${format(paths[i].at(-1))} of the way.`).join(" "));
    state.save();
  }
  document.getElementById("moves").append(h("div", { class: "controls" }, times.element, fraction.element), hopsBox);

  // --- One state --------------------------------------------------------------------------------------------------------

  const LENGTH = 600;
  const WINDOW = 60;
  const START = 75;
  let run = null;
  let now = START;
  let walkSeed = 3;

  const figure = document.getElementById("one-state");
  const stepSize = slider({ label: "step-size α", min: 0.01, max: 1, step: 0.01, value: 0.3, format: two, onInput: () => renew() });
  const decay = slider({ label: "trace decay λ", min: 0, max: 1, step: 0.01, value: 1, format: two, onInput: () => renew() });
  const mean = slider({ label: "mean length L", min: 1, max: 20, step: 1, value: 10, format: (v) => `${v} steps`, onInput: () => renew() });
  const speed = slider({ label: "speed", min: 1, max: 60, step: 1, value: 8, format: (v) => `${v} steps a second`, onInput: () => {} });
  const another = button({ label: "Other episodes", onClick: () => { walkSeed += 1; renew(); } });
  const play = player({
    figure, rate: () => speed.value, extra: [another.element],
    forward: () => { now = Math.min(now + 1, LENGTH); drawRun(); return now < LENGTH; },
    back: () => { now = Math.max(now - 1, 0); drawRun(); },
    restart: () => { now = 0; drawRun(); },
  });

  // The problem as a picture: a state with a way back to itself, and the end.
  const loopText = svg("text", { x: 92, y: 20 });
  const endText = svg("text", { x: 155, y: 50, "text-anchor": "middle" });
  const stateRing = svg("circle", { cx: 60, cy: 55, r: 22, "stroke-width": 2 });
  const endBox = svg("rect", { x: 240, y: 35, width: 40, height: 40, rx: 2, "stroke-width": 2 });
  const problem = svg("svg", { viewBox: "0 0 340 84", width: 340, height: 84, role: "img", class: "problem",
    "aria-label": "One state with a way back to itself that pays 0, and a way to the end that pays 1." },
    svg("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 8, markerHeight: 8, orient: "auto" }, svg("path", { d: "M1 1L9 5L1 9", class: "way" })),
    svg("path", { d: "M46 37C26 -6 94 -6 75 36", class: "way", "marker-end": "url(#tip)" }),
    svg("path", { d: "M83 55H239", class: "way", "marker-end": "url(#tip)" }), stateRing, endBox, loopText, endText,
    svg("text", { x: 60, y: 59, "text-anchor": "middle" }, "state"), svg("text", { x: 260, y: 59, "text-anchor": "middle" }, "end"));

  const tracePart = chart({ title: "The trace", label: "Traces over the last steps", height: 210, x: { label: "time step" }, y: { label: "trace e" } });
  const valuePart = chart({ title: "The prediction V", label: "Predictions over the last steps", height: 210, x: { label: "time step" }, y: { label: "prediction V" } });
  const errorPart = chart({ title: "How wrong after each episode", label: "Error at the end of each episode", height: 210,
    x: { label: "episode" }, y: { label: "|V − 1|", log: true } });
  const allPart = chart({ title: "All step-sizes", label: "Mean error of ten episodes for each step-size", height: 210,
    x: { label: "step-size α", min: 0, max: 1 }, y: { label: "RMS error", min: 0, max: 1.5 },
    onPoint: (x) => { stepSize.value = Math.min(Math.max(x, 0.01), 1); renew(); } });
  const verdict = h("div", { class: "scroll" });
  const FLOOR = 1e-6;

  const settings = () => ({ alpha: stepSize.value, lam: decay.value, ending: 1 / mean.value });

  function renew() {
    run = oneState({ ...settings(), seed: walkSeed, steps: LENGTH });
    loopText.textContent = `pays 0, probability ${format(1 - 1 / mean.value)}`;
    endText.textContent = `pays 1, probability ${format(1 / mean.value)}`;
    drawRun();
    drawAll();
    state.save();
  }

  function drawRun() {
    const from = Math.max(now - WINDOW, 0);
    const x = { min: from, max: from + WINDOW };
    const limit = 1 / stepSize.value;
    // After step t the point stands at t. The end of an episode leaves no trace behind.
    const traces = (name) => {
      const points = [];
      for (let t = from; t < now; t++) {
        points.push([t + 1, run.runs[name].traces[t]]);
        if (run.ends[t]) points.push([t + 1, 0]);
      }
      return points;
    };
    const values = (name) => [[0, 0], ...run.runs[name].values.slice(0, now).map((v, t) => [t + 1, v])].slice(from);
    const ends = run.ends.flatMap((end, t) => (end && t >= from && t < now ? [{ x: t + 1, colour: "var(--line)", dashes: "" }] : []));
    const tops = ALL.map((m) => Math.max(1, ...traces(m.name).map((p) => p[1])));
    const top = Math.max(...tops, Math.min(limit, 1.6 * Math.max(...tops))) * 1.15;
    tracePart.draw({ x, y: { min: 0, max: top }, lines: [...ends, { y: limit, label: "1/α", colour: "var(--ink)" }],
      series: ALL.map((m) => ({ ...m, points: traces(m.name), markers: "last" })) });
    const seen = ALL.flatMap((m) => values(m.name).map((p) => p[1]));
    valuePart.draw({ x, y: { min: Math.min(-0.25, ...seen) * 1.1, max: Math.max(1.5, ...seen) * 1.1 },
      lines: [...ends, { y: 1, label: "right: 1", colour: "var(--ink)" }],
      series: ALL.map((m) => ({ ...m, points: values(m.name), markers: "last", step: true })) });

    const last = run.ends.flatMap((end, t) => (end && t < now ? [t] : []));
    const errors = (name) => [[0, 1], ...last.map((t, i) => [i + 1, Math.max(Math.abs(run.runs[name].values[t] - 1), FLOOR)])];
    const largest = Math.max(10, ...ALL.flatMap((m) => errors(m.name).map((p) => p[1])));
    const power = Math.ceil(Math.log10(largest));
    const stride = Math.ceil((power + 6) / 5);
    const ticks = [];
    for (let p = -6; p <= power; p += stride) ticks.push(10 ** p);
    errorPart.draw({ x: { min: 0, max: Math.max(10, last.length) },
      y: { min: FLOOR, max: 10 ** power, ticks, format: (v) => (v <= FLOOR * 1.01 ? "≤ 10⁻⁶" : format(v, 1).replace("1·", "")) },
      series: ALL.map((m) => ({ ...m, points: errors(m.name), markers: last.length <= 40 ? "all" : "last" })) });
    const ended = now > 0 && run.ends[now - 1];
    stateRing.classList.toggle("here", !ended);
    endBox.classList.toggle("here", ended);
    const length = now - (last.length ? last[last.length - 1] + 1 : 0);
    play.show(`step ${now}, ${ended ? `episode ${last.length} ended` : `episode ${last.length + 1}, ${length} step${length === 1 ? "" : "s"} long so far`}`, { back: now > 0, forward: now < LENGTH });
  }

  function drawAll() {
    const { lam, ending } = settings();
    const error = (name, a) => {
      // Errors of different episodes are independent factors, so the RMS error after n episodes is (mean square)^(n/2).
      const factor = Math.sqrt(growth(name, { alpha: a, lam, ending }).meanSquare);
      let sum = 0;
      for (let n = 1; n <= 10; n++) sum += factor ** n;
      return sum / 10;
    };
    const grid = Array.from({ length: 101 }, (_, i) => i / 100);
    allPart.draw({
      lines: [{ x: stepSize.value, label: `α = ${two(stepSize.value)}`, colour: "var(--ink)" }],
      series: ALL.map((m) => ({ ...m, points: grid.map((a) => [a, error(m.name, a)]) })) });
    const judged = ALL.map((m) => ({ ...m, ...growth(m.name, settings()), bound: limit(m.name, settings()) }));
    const share = (v) => `${(100 * v).toFixed(v > 0 && v < 0.01 ? 1 : 0)} %`;
    const row = (head, cell) => h("tr", {}, h("th", { scope: "row", class: "wrap" }, head), judged.map((m) => h("td", { class: "wrap" }, cell(m))));
    verdict.replaceChildren(h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, h("td"), judged.map((m) => h("th", { scope: "col", class: m.name.replace("_", "-") }, m.trace)))),
      h("tbody", {},
        row("episodes that overshoot", (m) => share(m.overshoot)),
        row("RMS error, per episode", (m) => `× ${format(Math.sqrt(m.meanSquare))}`),
        row("so the error", (m) => h("strong", {}, m.meanSquare > 1 ? "▲ grows" : "shrinks")),
        row("diverges for", (m) => (m.bound < 1 ? `α > ${format(m.bound)}` : "no α ≤ 1")))));
    const bad = growth("accumulate", settings()).meanSquare > 1;
    announce(`With these settings accumulating traces ${bad ? "diverge" : "converge"}.`);
  }

  figure.append(
    problem,
    h("div", { class: "controls" }, stepSize.element, decay.element, mean.element, speed.element),
    play.element,
    legend(ALL.map((m) => ({ ...m, name: `${m.title}, ${m.trace} trace` }))),
    h("div", { class: "row" }, tracePart.element, valuePart.element, errorPart.element, allPart.element),
    verdict,
    h("p", { class: "hint" }, "Thin upright lines are the ends of episodes. RMS error is the root of the mean squared error. The last chart is the mean of the RMS errors after episodes 1 to 10, computed exactly, not sampled; click in it to choose α."),
    h("p", { class: "hint keys" }, "Keys while the focus is in this figure: ",
      h("kbd", {}, "Space"), " plays and pauses, ", h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " step, ", h("kbd", {}, "Home"), " restarts."));

  const walkState = { get value() { return walkSeed; }, set value(v) { walkSeed = Number(v) >>> 0 || 1; } };
  const stepState = { get value() { return now; }, set value(v) { now = Math.min(Math.max(Math.round(Number(v)) || 0, 0), LENGTH); } };
  const state = hash({ seen: kind, n: every, alpha, fade, moves: times, fraction, seed: seedState, visits: ownVisits, step_size: stepSize, lambda: decay, length: mean, episodes: walkState, step: stepState });
  changePattern();
  drawMoves();
  onResize(hopsBox, drawMoves);
  renew();
})();
