// The page of the two views: the triangle of updates, the trace, and where the other methods part.
"use strict";
(() => {
  const { METHODS } = trueonline.methods;
  const { STATES, compare } = trueonline.forwardBackward;
  const { h, svg, slider, choice, toggle, button, player, legend, chart, format, hash, onResize } = trueonline.widgets;
  const ALL = Object.values(METHODS);
  const two = (v) => v.toFixed(2);
  const three = (v) => format(Math.abs(v) < 5e-4 ? 0 : Number(v.toFixed(3)));
  const signed = (v) => (three(v) === "0" ? "0" : v > 0 ? `+${three(v)}` : three(v));
  const place = (s) => STATES[s] || "end";

  let seed = 19;
  let t = 8;
  let cell = { k: 3, h: 8 };
  let result = null;

  const figure = document.getElementById("play");
  const kind = choice({ label: "Features", value: "tabular", onChange: () => renew(),
    options: [{ value: "tabular", label: "one for each state" }, { value: "overlapping", label: "overlapping" }, { value: "random", label: "random numbers" }] });
  const alpha = slider({ label: "step-size α", min: 0, max: 1, step: 0.01, value: 0.5, format: two, onInput: () => renew() });
  const lam = slider({ label: "trace decay λ", min: 0, max: 1, step: 0.01, value: 0.9, format: two, onInput: () => renew() });
  const gamma = slider({ label: "discount γ", min: 0, max: 1, step: 0.01, value: 0.95, format: two, onInput: () => renew() });
  const time = slider({ label: "time step t", min: 0, max: 12, step: 1, value: t, format: (v) => `${v}`, onInput: (v) => goTo(v) });
  const another = button({ label: "Another walk", onClick: () => { seed += 1; t = Math.min(t, 6); renew(); } });
  const last = () => result.rewards.length;
  const play = player({ figure, rate: 1.5, extra: [another.element],
    forward: () => { goTo(t + 1); return t < last(); }, back: () => goTo(t - 1), restart: () => goTo(0) });

  function goTo(to) {
    t = Math.min(Math.max(to, 0), last());
    cell = { k: Math.min(cell.k, Math.max(t - 1, 0)), h: t };
    draw();
  }
  function renew() {
    result = compare({ kind: kind.value, seed, alpha: alpha.value, gamma: gamma.value, lam: lam.value });
    t = Math.min(t, last());
    cell = { k: Math.min(cell.k, Math.max(t - 1, 0)), h: t };
    time.max = last();
    draw();
    drawTerms();
  }

  // --- The walk ---------------------------------------------------------------------------------------------------------

  const chain = svg("svg", { viewBox: "0 0 520 78", role: "img", class: "chain" });
  const path = h("p", { class: "path" });

  function drawChain() {
    const { states, rewards, rows, xs } = result;
    const w = t > 0 ? rows[t - 1].weights : new Float64Array(result.size);
    const table = trueonline.forwardBackward.features(kind.value);
    const at = (s) => 45 + 72 * (s + 1) - (s < 0 ? 12 : 0) + (s >= STATES.length ? 12 : 0);
    const parts = [];
    for (let s = -1; s < STATES.length; s++) parts.push(svg("line", { x1: at(s), x2: at(s + 1), y1: 26, y2: 26, class: "way" }));
    for (let s = -1; s <= STATES.length; s++) {
      const inside = s >= 0 && s < STATES.length;
      const here = states[t] === s;
      parts.push(inside ? svg("circle", { cx: at(s), cy: 26, r: 20, class: here ? "here" : "" }) : svg("rect", { x: at(s) - 18, y: 8, width: 36, height: 36, class: here ? "here" : "" }));
      parts.push(svg("text", { x: at(s), y: 30, "text-anchor": "middle", class: "name" }, place(s)));
      if (inside) parts.push(svg("text", { x: at(s), y: 64, "text-anchor": "middle" }, three(table[s].reduce((sum, x, i) => sum + x * w[i], 0))));
    }
    parts.push(svg("text", { x: 33, y: 64, "text-anchor": "middle" }, "guess"));
    chain.replaceChildren(...parts);
    chain.setAttribute("aria-label", `The walker is at ${place(states[t])}.`);
    path.replaceChildren(h("span", { class: "hint" }, "The walk: "), ...states.slice(0, t + 1).flatMap((s, i) => [
      i > 0 && h("span", { class: "reward" }, rewards[i - 1] ? " +1→ " : " 0→ "), h("span", { class: i === t ? "here" : null }, place(s))]).filter(Boolean));
  }

  // --- The triangle -----------------------------------------------------------------------------------------------------

  const triangle = svg("svg", { role: "grid", class: "triangle", tabindex: 0, "aria-label": "The updates of the forward view. Arrow keys choose one." });
  const triangleBox = h("div", {}, triangle);
  triangle.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move || t === 0) return;
    event.preventDefault();
    const row = Math.min(Math.max(cell.h + move[1], 1), t);
    choose(Math.min(Math.max(cell.k + move[0], 0), row - 1), row);
  });
  function choose(k, row) {
    cell = { k, h: row };
    drawTriangle();
    drawCell();
  }

  function drawTriangle() {
    const steps = last();
    const width = triangleBox.clientWidth || 480;
    const [left, top] = [44, 36];
    const size = Math.min((width - left - 2) / steps, 40);
    const height = top + steps * size + 4;
    triangle.setAttribute("viewBox", `0 0 ${width} ${height}`);
    triangle.setAttribute("height", height);
    const strongest = Math.max(1e-9, ...result.rows.flatMap((row) => row.cells.map((c) => Math.abs(alpha.value * c.error))));
    const parts = [svg("text", { x: left - 8, y: 12, "text-anchor": "end" }, "k"), svg("text", { x: left - 8, y: top - 6, "text-anchor": "end" }, "h")];
    for (let k = 0; k < steps; k++) {
      const x = left + (k + 0.5) * size;
      const known = k <= t - 1;
      parts.push(svg("text", { x, y: 12, "text-anchor": "middle", opacity: known ? 1 : 0.4 }, k),
        svg("text", { x, y: top - 6, "text-anchor": "middle", class: "name", opacity: known ? 1 : 0 }, place(result.states[k])));
    }
    for (const row of result.rows) {
      const y = top + (row.h - 1) * size;
      const known = row.h <= t;
      parts.push(svg("text", { x: left - 8, y: y + size / 2 + 4, "text-anchor": "end", opacity: known ? 1 : 0.4, class: row.h === t ? "name" : "" }, row.h));
      const cells = row.cells.map((c) => {
        const x = left + c.k * size;
        const change = alpha.value * c.error;
        const box = svg("rect", { x: x + 1, y: y + 1, width: size - 2, height: size - 2, rx: 3, class: known ? "cell" : "cell later" });
        if (!known) return svg("g", { "aria-hidden": "true" }, box);
        const share = Math.round(12 + 68 * Math.sqrt(Math.abs(change) / strongest));
        box.style.fill = three(change) === "0" ? "var(--panel)" : `color-mix(in srgb, var(${change > 0 ? "--sky" : "--pink"}) ${share}%, var(--paper))`;
        const selected = c.k === cell.k && c.h === cell.h;
        const sign = three(change) === "0" ? "0" : change > 0 ? "+" : "−";
        const short = Math.abs(change) < 10 ? Math.abs(change).toFixed(2).replace(/^0/, "").slice(0, 3) : format(Math.abs(change), 2);
        const text = size >= 35 && Math.abs(change) >= 0.005 ? sign + short : sign;
        return svg("g", { role: "gridcell", id: `cell-${c.k}-${c.h}`, "aria-selected": selected, onclick: () => choose(c.k, c.h),
          "aria-label": `k ${c.k}, h ${c.h}, state ${place(result.states[c.k])}, target ${three(c.target)}, step ${signed(change)}` },
          box, svg("text", { x: x + size / 2, y: y + size / 2 + 4, "text-anchor": "middle" }, text));
      });
      parts.push(svg("g", { role: "row" }, cells));
    }
    if (t > 0) parts.push(svg("rect", { x: left - 1, y: top + (t - 1) * size - 1, width: t * size + 2, height: size + 2, rx: 5, class: "now" }));
    const chosen = t > 0 && svg("rect", { x: left + cell.k * size + 1, y: top + (cell.h - 1) * size + 1, width: size - 2, height: size - 2, rx: 3, class: "ring" });
    triangle.replaceChildren(...parts, ...(chosen ? [chosen] : []));
    triangle.setAttribute("aria-activedescendant", t > 0 ? `cell-${cell.k}-${cell.h}` : "");
  }

  const inspector = h("div", { class: "inspector" });
  function drawCell() {
    if (t === 0) {
      inspector.replaceChildren(h("p", { class: "hint" }, "Nothing is known yet. Make a step."));
      return;
    }
    const c = result.rows[cell.h - 1].cells[cell.k];
    inspector.replaceChildren(
      h("h3", {}, `The update of time ${c.k}, in ${place(result.states[c.k])}, with all that is known at time ${c.h}`),
      h("table", { class: "numbers" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "wrap" }, "steps ahead, n"), h("th", { scope: "col", class: "wrap" }, "n-step return"), h("th", { scope: "col", class: "wrap" }, "share"), h("th", { class: "bar" }))),
        h("tbody", {}, c.returns.map((g, i) => h("tr", {}, h("td", {}, `${i + 1}`), h("td", {}, three(g)), h("td", {}, `${(100 * c.shares[i]).toFixed(1)} %`),
          h("td", { class: "bar" }, h("span", { style: { width: `${100 * c.shares[i]}%` } })))))),
      h("p", { class: "sum" }, "n-step return: what n steps paid, and then the guess where they led", h("br"), "target, their average: ", h("b", {}, three(c.target)), h("br"), "guess before this update: ", h("b", {}, three(c.v)), h("br"),
        `weights change by α × (${three(c.target)} − ${three(c.v)}) × x = `, h("b", {}, vector(c.change))));
  }
  const vector = (values) => `(${[...values].map((v) => three(v)).join(", ")})`;

  // --- One step of true online TD(λ) ------------------------------------------------------------------------------------

  const backward = h("div", {});
  const traceChart = chart({ label: "The traces, feature by feature", height: 190, x: { label: "feature" }, y: { label: "trace e" } });

  function drawBackward() {
    const names = Object.keys(result.learners);
    traceChart.draw({
      x: { min: 0.4, max: result.size + 0.6, ticks: Array.from({ length: result.size }, (_, i) => i + 1), format: (v) => (kind.value === "tabular" ? place(v - 1) : `${v}`) },
      y: { min: Math.min(0, ...names.flatMap((n) => (t ? [...result.learners[n].steps[t - 1].trace] : []))), max: Math.max(1.2, ...names.flatMap((n) => result.learners[n].steps.flatMap((s) => [...s.trace]))) },
      bars: t === 0 ? [] : names.flatMap((name, j) => [...result.learners[name].steps[t - 1].trace].map((e, i) => ({ x: i + 1 + (j - (names.length - 1) / 2) * 0.27, y: e, width: 0.24, colour: METHODS[name].colour }))),
    });
    if (t === 0) {
      backward.replaceChildren(h("p", { class: "hint" }, "The trace is empty."));
      return;
    }
    const s = result.learners.true_online.steps[t - 1];
    backward.replaceChildren(
      h("p", { class: "sum" }, "surprise δ = R + γV′ − V = ", h("span", { class: "nowrap" }, `${s.reward} + ${two(gamma.value)} × ${three(s.vNext)} − ${three(s.v)} = `), h("b", {}, three(s.delta)), h("br"),
        "since it was last used, the guess V moved by V − V", h("sub", {}, "old"), " = ", h("b", {}, three(s.v - s.vOld))),
      h("p", { class: "hint" }, "V is the guess for the state that the walker leaves, V′ for the state that it enters."),
      h("div", { class: "scroll" }, h("table", { class: "numbers" },
        h("thead", {}, h("tr", {}, ["feature", "x", "trace e", "αδe", ["α(V−V", h("sub", {}, "old"), ")", h("br"), "×(e−x)"], "change"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, s.weights.reduce((rows, _, i) => [...rows, h("tr", {}, h("td", {}, kind.value === "tabular" ? place(i) : `${i + 1}`), h("td", {}, three(s.x[i])), h("td", {}, three(s.trace[i])),
          h("td", {}, signed(s.first[i])), h("td", {}, signed(s.second[i])), h("td", {}, h("b", {}, signed(s.first[i] + s.second[i]))))], [])))));
  }

  // --- Do they agree? ---------------------------------------------------------------------------------------------------

  const agree = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The weights of all methods" });
  const headline = h("p", { class: "headline" });
  const counts = h("div", { class: "counts" });
  const FLOOR = 1e-17;
  const apartChart = chart({ title: "Largest difference from the forward view", label: "Differences over time", height: 240, x: { label: "time step", min: 0 },
    y: { label: "difference", min: FLOOR, max: 1000, log: true, ticks: [1e-17, 1e-13, 1e-9, 1e-5, 1e-1], format: (v) => (v === FLOOR ? "0" : format(v, 1).replace("1·", "")) } });

  // Twelve decimals; digits from the first that differs on are marked.
  function digits(value, exact) {
    const [a, b] = [value.toFixed(12), exact.toFixed(12)];
    const rounding = Math.abs(value - exact) <= 1e-12 * Math.max(1, Math.abs(exact));
    let same = a.length === b.length ? [...a].findIndex((c, i) => c !== b[i]) : 0;
    if (same < 0 || rounding) same = a.length;
    return h("td", { class: "digits" }, a.slice(0, same).replace("-", "−"), same < a.length && h("mark", {}, a.slice(same).replace("-", "−")));
  }

  function drawAgree() {
    const steps = last();
    const names = ALL.filter((m) => result.learners[m.name]);
    apartChart.draw({
      x: { max: steps, ticks: Array.from({ length: steps + 1 }, (_, i) => i).filter((i) => i % (apartChart.element.clientWidth < 420 ? 2 : 1) === 0) },
      lines: t > 0 ? [{ x: t, dashes: "", colour: "var(--line)" }] : [],
      series: names.map((m) => ({ ...m, markers: "all", points: [[0, FLOOR], ...result.learners[m.name].apart.slice(0, t).map((d, i) => [i + 1, Math.min(Math.max(d, FLOOR), 1000)])] })),
      marks: names.filter((m) => m.name !== "true_online" && result.learners[m.name].parted !== null && result.learners[m.name].parted <= t)
        .map((m, i) => ({ x: result.learners[m.name].parted, y: Math.min(result.learners[m.name].apart[result.learners[m.name].parted - 1], 1000), colour: m.colour, marker: m.marker, radius: 7,
          label: i === 0 ? "from here on they differ" : "", anchor: "middle" })),
    });
    counts.replaceChildren(
      h("div", {}, h("b", {}, `${(t * (t + 1)) / 2}`), h("span", {}, `updates, forward view`)),
      h("div", {}, h("b", {}, `${t}`), h("span", {}, `updates, backward view`)));
    if (t === 0) {
      headline.textContent = "All weights are 0.";
      agree.replaceChildren();
      return;
    }
    const exact = result.rows[t - 1].weights;
    const difference = result.learners.true_online.apart[t - 1];
    const part = (m) => {
      const { parted } = result.learners[m.name];
      return parted === null || parted > t ? `${m.title[0].toUpperCase()}${m.title.slice(1)} agrees so far` : `${m.title[0].toUpperCase()}${m.title.slice(1)} differs from step ${parted} on`;
    };
    headline.replaceChildren("Largest difference between the forward view and true online TD(λ) at this step: ", h("b", {}, difference === 0 ? "none" : format(difference, 2)), ". ",
      ...names.filter((m) => m.name !== "true_online").flatMap((m) => [part(m), ". "]), kind.value === "random" ? "Replacing traces need features that are 0 or 1." : "");
    agree.replaceChildren(h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "weight"), h("th", { scope: "col" }, "forward view"), names.slice().reverse().flatMap((m) => [h("th", { scope: "col", class: m.name.replace("_", "-") }, m.title),
        m.name === "true_online" && h("th", { scope: "col" }, "difference, in 10⁻¹⁶")]))),
      h("tbody", {}, [...exact].map((w, i) => h("tr", {}, h("td", {}, kind.value === "tabular" ? place(i) : `${i + 1}`), digits(w, w),
        names.slice().reverse().flatMap((m) => {
          const value = result.learners[m.name].steps[t - 1].weights[i];
          return [digits(value, w), m.name === "true_online" && h("td", {}, format(Number(((value - w) * 1e16).toFixed(1))))];
        }))))));
  }

  function draw() {
    time.value = t;
    drawChain();
    drawTriangle();
    drawCell();
    drawBackward();
    drawAgree();
    const end = result.states[t];
    play.show(t === 0 ? "at the start" : `step ${t} of ${last()}: ${place(result.states[t - 1])} to ${end < 0 || end >= STATES.length ? "the end" : place(end)}, pays ${result.rewards[t - 1]}`, { back: t > 0, forward: t < last() });
    state.save();
  }

  figure.append(
    h("div", { class: "controls" }, alpha.element, lam.element, gamma.element),
    kind.element,
    h("div", { class: "walk" }, chain, path),
    play.element, time.element,
    counts,
    h("div", { class: "row views" },
      h("div", {}, h("h3", {}, "Forward view: all again, at every step"), h("p", { class: "hint" }, "Row h holds the updates that are made at time h, one for each visited state k. A cell shows α × (target − guess), the step of its update: + is up and blue, − is down and pink. Choose a cell to look inside."), triangleBox, inspector),
      h("div", {}, h("h3", {}, "Backward view: one update"), legend(ALL.map((m) => ({ ...m, name: `${m.trace} trace` }))), traceChart.element, h("p", { class: "hint" }, "In each group from left to right: accumulating, replacing (where there is one), dutch."), h("h3", { class: "true-online" }, "True online TD(λ) at this step"), backward, apartChart.element)),
    h("h3", { class: "question" }, "Do they agree?"), headline, agree,
    h("p", { class: "hint" }, "Marked digits differ from the forward view."),
    h("p", { class: "hint keys" }, "Keys: ", h("kbd", {}, "→"), " ", h("kbd", {}, "←"), " step forwards and backwards in time, ", h("kbd", {}, "Space"), " plays, ", h("kbd", {}, "Home"),
      " restarts. In the triangle the arrow keys choose a cell."));

  // --- Without one of the terms -----------------------------------------------------------------------------------------

  const VARIANTS = [
    { name: "with both terms: true online TD(λ)", terms: [true, true], colour: "var(--true-online)", dashes: "", marker: "circle" },
    { name: h("span", {}, "without V − V", h("sub", {}, "old")), terms: [true, false], colour: "var(--pink)", dashes: "6 2", marker: "diamond" },
    { name: "without the dutch trace", terms: [false, true], colour: "var(--replace)", dashes: "2 2", marker: "triangle" },
    { name: "without both: accumulate TD(λ)", terms: [false, false], colour: "var(--accumulate)", dashes: "4 2", marker: "square" },
  ];
  const termsChart = chart({ title: "Difference from the forward view", label: "The difference from the forward view with and without each term", height: 270, x: { label: "time step" },
    y: { label: "difference", log: true, min: 1e-17, max: 1000, ticks: [1e-17, 1e-13, 1e-9, 1e-5, 1e-1], format: (v) => (v === 1e-17 ? "0" : format(v, 1).replace("1·", "")) } });
  const shown = VARIANTS.map((one, i) => toggle({ ...one, label: one.name, value: i < 2, onChange: () => drawTerms() }));
  document.getElementById("terms").prepend(h("div", { class: "toggles", role: "group", "aria-label": "Terms" }, shown.map((one) => one.element)), termsChart.element);

  function drawTerms() {
    const settings = { kind: kind.value, seed, alpha: alpha.value, gamma: gamma.value, lam: lam.value };
    const within = (difference) => Math.min(Math.max(difference, 1e-17), 1000);
    termsChart.draw({ x: { min: 0, max: last() }, series: VARIANTS.filter((_, i) => shown[i].value).map((one) => ({ ...one, markers: "all",
      points: [[0, 1e-17], ...trueonline.forwardBackward.apart(settings, ...one.terms).map((step, k) => [k + 1, within(step.apart)])] })) });
  }

  const number = (get, set) => ({ get value() { return get(); }, set value(v) { const n = Math.round(Number(v)); if (n >= 0) set(n); } });
  const state = hash({ features: kind, alpha, lambda: lam, gamma, walk: number(() => seed, (v) => { seed = v; }), t: number(() => t, (v) => { t = v; }) });
  onResize(triangleBox, () => drawTriangle());
  renew();
})();
