// The page on the random walk: learning live, and the error for every α and λ.
"use strict";
(() => {
  const { h, svg, slider, choice, toggle, button, player, chart, format, hash, announce, onResize, sample, newId, reducedMotion } = trueonline.widgets;
  const { METHODS, random } = trueonline.methods;
  const { Walk, Surface, rmsError, step: walkStep, learnerOn } = trueonline.walk;

  const NAMES = Object.keys(METHODS);
  const TITLES = (name) => METHODS[name].title;
  const listeners = { problem: [], methods: [] }; // called when the walk, its features or its seed change; when methods are shown or hidden
  const call = (kind) => () => listeners[kind].forEach((one) => one());
  const decimals = (number, digits) => number.toFixed(digits).replace("-", "−");
  const padded = (number) => decimals(number, 1).padStart(4, "\u2007"); // so that the charts below each other are aligned

  function numeric({ label, min, max, value, onChange }) {
    const id = newId("number");
    const input = h("input", { type: "number", id, min, max, step: 1, inputmode: "numeric" });
    const valid = (v) => (Number.isInteger(Number(v)) ? Math.min(Math.max(Number(v), min), max) : min);
    input.value = value;
    input.addEventListener("change", () => { input.value = valid(input.value); onChange(); });
    return { element: h("div", { class: "numeric" }, h("label", { for: id }, label), input), get value() { return valid(input.value); }, set value(v) { input.value = valid(v); } };
  }

  // What both figures share: the problem, and which methods are shown.
  const states = choice({ label: "States", options: [5, 19, 100].map((n) => ({ value: n, label: String(n) })), value: 19, onChange: call("problem") });
  const kind = choice({ label: "Features", options: [{ value: "one", label: "one per state" }, { value: "overlapping", label: "overlapping" }], value: "one", onChange: call("problem") });
  const seed = numeric({ label: "Seed of the random walk", min: 0, max: 999999, value: 1, onChange: call("problem") });
  const shown = Object.fromEntries(NAMES.map((name) => [name, toggle({ ...METHODS[name], label: TITLES(name), value: true, onChange: call("methods") })]));
  const visible = () => NAMES.filter((name) => shown[name].value);
  const problem = () => new Walk(Number(states.value), kind.value);

  // --- Learning live ----------------------------------------------------------------------------------------------------

  function live(place) {
    const REPLAYED = 50_000; // Back replays all steps but the last, which takes a moment when there are many
    const LATEST = 400; // more episodes than that are not drawn one by one
    const OPENING = 3;
    let state;
    let waiting = false;

    const alpha = slider({ label: "Step-size α", min: 0.0025, max: 1, step: 0.0025, value: 0.4, format: (v) => format(v, 4), onInput: restart });
    const lam = slider({ label: "Trace decay λ", min: 0, max: 1, step: 0.005, value: 0.8, format: (v) => format(v, 4), onInput: restart });
    const speed = slider({ label: "Speed", min: 0, max: 14, step: 1, value: 6, format: (v) => `${(2 ** v).toLocaleString("en")} steps a second` });
    const controls = player({ forward: () => { advance(); later(); }, back, restart, rate: () => 2 ** speed.value, figure: place });
    const finish = button({ label: "End of episode", title: "E key", onClick: episode }).element;
    controls.element.insertBefore(finish, controls.element.querySelector(".where"));
    document.addEventListener("keydown", (event) => {
      const mine = event.target === document.body || place.contains(event.target);
      if (event.key === "e" && mine && !event.ctrlKey && !event.altKey && !event.metaKey && event.target.type !== "number") episode();
    });
    const preset = (label, value) => button({ label, onClick: () => { lam.value = value; restart(); address.save(); } }).element;
    const happened = h("p", { class: "happened" });
    const guesses = chart({ title: ["Guesses of the values ", h("span", { class: "hint" }, "dotted: true values; below: where the walk is")], label: "The guess for each state, beside the true values", height: 280, x: { label: "state" }, y: { format: padded } });
    const traces = chart({ title: "Traces", label: "The trace of each feature", height: 170, x: {}, y: { label: "trace", min: 0, format: padded } });
    const errors = chart({
      title: ["Error at the end of each episode ", h("span", { class: "hint" }, "dashed grey: no learning")], label: "Root mean squared error over all states, after each episode", height: 200,
      x: { label: "episode", min: 0 }, y: { label: "RMS error", min: 0, format: padded },
      readout: (x) => {
        const t = Math.round(x);
        return visible().filter((name) => state.errors[name][t] !== undefined).map((name) => `${TITLES(name)}: ${format(state.errors[name][t])}`);
      },
    });

    place.prepend(
      h("div", { class: "controls choices" }, states.element, kind.element,
        h("fieldset", { class: "choice" }, h("legend", {}, "Special values of λ"), h("div", { class: "presets" }, preset("λ = 0: TD(0)", 0), preset("λ = 1: as Monte Carlo", 1)))),
      h("div", { class: "controls" }, alpha.element, lam.element, speed.element, seed.element),
      controls.element,
      h("div", { class: "toggles", role: "group", "aria-label": "Methods" }, NAMES.map((name) => shown[name].element)),
      happened, guesses.element, traces.element, errors.element,
      h("p", { class: "hint" }, "All methods see the same walk. The seed makes it the same each time."),
      h("p", { class: "hint keys" }, "Keys: ", h("kbd", {}, "Space"), " play, ", h("kbd", {}, "→"), " step, ", h("kbd", {}, "←"), " back, ", h("kbd", {}, "E"), " end of episode, ", h("kbd", {}, "Home"), " restart."));

    function begin() {
      const walk = problem();
      const generator = random(seed.value);
      const learners = Object.fromEntries(NAMES.map((name) => [name, learnerOn(walk, name, alpha.value, lam.value)]));
      const first = rmsError(walk, learners.accumulate.memory);
      state = { walk, generator, learners, episode: walk.episode(generator), t: 0, episodes: 0, steps: 0, first, highest: 1, errors: Object.fromEntries(NAMES.map((name) => [name, [first]])) };
    }
    function restart() {
      begin();
      later();
    }
    function advance() {
      const { walk, learners } = state;
      if (state.t === state.episode.visited.length) {
        state.episode = walk.episode(state.generator);
        state.t = 0;
      }
      for (const name of NAMES) walkStep(walk, learners[name], state.episode, state.t);
      state.t++;
      state.steps++;
      if (state.t === state.episode.visited.length) {
        state.episodes++;
        for (const name of NAMES) state.errors[name].push(rmsError(walk, learners[name].memory));
      }
    }
    function episode() {
      controls.pause();
      do advance(); while (state.t !== state.episode.visited.length);
      later();
      announce(`Episode ${state.episodes} has ended. ${visible().map((name) => `Error of ${TITLES(name)}: ${format(state.errors[name].at(-1))}`).join(". ")}`);
    }
    function back() {
      const steps = state.steps - 1;
      if (steps >= REPLAYED) return;
      begin();
      while (state.steps < steps) advance();
      later();
    }
    function later() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(); });
    }

    function draw() {
      const { walk, learners, episode, t } = state;
      const names = visible();
      const over = state.steps > 0 && t === episode.visited.length;
      const at = episode.visited[Math.min(t, episode.visited.length - 1)];
      const few = walk.states < 50;
      const x = { min: 0.3, max: walk.states + 0.7, ticks: few ? walk.values.map((_, s) => s + 1).filter((s) => walk.states < 10 || s % 2 === 1) : [1, 20, 40, 60, 80, 100] };
      const lost = names.filter((name) => !(rmsError(walk, learners[name].memory) < 10)); // a zigzag that leaves the chart everywhere
      const series = names.filter((name) => !lost.includes(name)).map((name) => ({ ...METHODS[name], points: walk.values.map((_, s) => [s + 1, walk.value(learners[name].memory, s)]), markers: few ? "all" : "none" }));
      guesses.draw({
        x, y: { label: "value", min: walk.left - 0.25, max: walk.right + 0.25 },
        series: [{ name: "true values", points: walk.values.map((value, s) => [s + 1, value]), colour: "var(--ink)", dashes: "1 4", width: 2 }, ...series],
        after: (me) => {
          drawWalk(me, at, over);
          lost.forEach((name, i) => me.layer.append(svg("text", { class: "readout", x: me.left + 10, y: me.top + 16 + 17 * i, style: { fill: METHODS[name].colour } }, `${TITLES(name)} ran away`)));
        },
      });
      const features = Array.from({ length: walk.size }, (_, i) => i);
      const trace = (name, i) => learners[name].memory.trace(i);
      const highest = names.reduce((most, name) => features.reduce((m, i) => Math.max(m, trace(name, i)), most), 1);
      state.highest = Math.min(Math.max(state.highest, highest), 1e6);
      const one = walk.active === 1;
      const axis = { label: one ? "state" : `feature (${walk.active} are active in each state)`, min: 0.3, max: walk.size + 0.7, ticks: one ? x.ticks : undefined };
      const width = 0.8 / Math.max(names.length, 1);
      traces.draw({
        x: axis, y: { max: state.highest * 1.08 },
        bars: !few ? [] : names.flatMap((name, m) => features.map((i) => ({ x: i + 1 + (m - (names.length - 1) / 2) * width, y: trace(name, i), width: width * 0.9, colour: METHODS[name].colour }))),
        series: few ? [] : names.map((name) => ({ ...METHODS[name], points: features.map((i) => [i + 1, trace(name, i)]), width: 1.75 })),
      });
      const last = state.episodes;
      const every = Math.max(1, Math.ceil(last / LATEST));
      const worst = Math.max(...names.flatMap((name) => state.errors[name].slice(-LATEST)).filter(Number.isFinite), state.first);
      errors.draw({
        x: { max: Math.max(10, last) }, y: { max: Math.min(Math.max(0.7, worst * 1.05), 2) },
        series: names.map((name) => ({ ...METHODS[name], points: state.errors[name].map((error, k) => [k, error]).filter((_, k) => k % every === 0 || k === last), markers: last <= 30 ? "all" : "last" })),
        lines: [{ y: state.first }],
      });
      happened.replaceChildren(...sentence(over, names));
      controls.show(`episode ${state.episodes + (over ? 0 : 1)}, step ${t}`, { back: state.steps > 0 && state.steps <= REPLAYED });
    }

    function sentence(over, names) {
      const { episode, t, learners } = state;
      if (state.steps === 0) return ["All guesses are zero. Press Play, or Step."];
      const from = episode.visited[t - 1] + 1;
      const to = over ? (episode.reward === state.walk.right ? "the right end" : "the left end") : `state ${episode.visited[t] + 1}`;
      const deltas = names.map((name) => h("span", { class: name.replace("_", "-") }, Math.abs(learners[name].delta) < 1000 ? decimals(learners[name].delta, 4) : format(learners[name].delta)));
      return [`From state ${from} to ${to}, reward ${format(over ? episode.reward : 0)}. Error δ: `, ...deltas.flatMap((one, i) => (i ? [", ", one] : [one])), "."];
    }

    // The row of states at the foot of the chart, and where the walk is.
    function drawWalk(me, at, over) {
      const { walk, episode } = state;
      const y = me.bottom - 9;
      const gap = me.px(2) - me.px(1);
      const radius = Math.min(5, gap * 0.35);
      for (let s = 0; s < walk.states; s++) me.layer.append(svg("circle", { cx: me.px(s + 1), cy: y, r: Math.max(radius, 0.8), style: { fill: "var(--paper)", stroke: "var(--faint)" } }));
      const where = over ? (episode.reward === walk.right ? walk.states + 0.6 : 0.4) : at + 1;
      me.layer.append(svg("line", { x1: me.px(where), x2: me.px(where), y1: me.top, y2: y, "stroke-dasharray": "2 3", style: { stroke: "var(--faint)" } }),
        svg("circle", { cx: me.px(where), cy: y, r: 6, style: { fill: "var(--ink)", stroke: "var(--paper)" } }));
    }

    listeners.problem.push(restart);
    listeners.methods.push(later);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
    return {
      controls: { alpha, lambda: lam, speed },
      show() { // some episodes have been learned from when the page opens, and then it plays
        begin();
        while (state.episodes < OPENING) advance();
        later();
        controls.whenSeen();
      },
      watch(a, l) {
        alpha.value = a;
        lam.value = l;
        speed.value = Math.max(speed.value, 6); // the first reward may be far away
        restart();
        place.scrollIntoView({ behavior: reducedMotion() ? "auto" : "smooth" });
        if (!reducedMotion()) controls.play();
        else controls.pause();
      },
    };
  }

  // --- The surface ------------------------------------------------------------------------------------------------------

  const LOW = 0.2; // the errors between which colours change; above RUNAWAY, which is more than any reward, cells are hatched
  const HIGH = 0.7;
  const RUNAWAY = 1;
  const RAMP = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
  function colourOf(error) {
    const place = Math.min(Math.max((HIGH - error) / (HIGH - LOW), 0), 1) * (RAMP.length - 1);
    const k = Math.min(Math.floor(place), RAMP.length - 2);
    return `rgb(${RAMP[k].map((v, i) => Math.round(v + (RAMP[k + 1][i] - v) * (place - k))).join(" ")})`;
  }
  function hatch(id) {
    return svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { width: 6, height: 6, style: { fill: "var(--grid)" } }), svg("line", { x1: 0, y1: 0, x2: 0, y2: 6, "stroke-width": 3, style: { stroke: "var(--grey)" } }));
  }

  // One map: λ upwards, α to the right. `value(a, l)` is the error of a cell.
  function heatMap({ name, alphas, lams, onMove, onPick, onHover }) {
    const pattern = newId("hatch");
    const picture = svg("svg", { class: "map", tabindex: 0, role: "application", "data-keys": true, "aria-roledescription": "map of errors", "aria-label": `${TITLES(name)}: error for each α and λ. Arrow keys move, Enter watches the setting.` });
    const ROW = 21;
    const [left, top] = [48, 4];
    const bottom = top + ROW * lams.length;
    let cells = [];
    let drawn = 0;
    let cursorMark, bestMark, width;

    function build(wide) {
      drawn = wide;
      width = (wide - left - 6) / alphas.length;
      picture.setAttribute("viewBox", `0 0 ${wide} ${bottom + 38}`);
      picture.setAttribute("height", bottom + 38);
      cells = lams.map((_, l) => alphas.map((_, a) => svg("rect", { x: left + a * width + 0.5, y: bottom - (l + 1) * ROW + 0.5, width: width - 1, height: ROW - 1 })));
      const box = (stroke, extra) => svg("rect", { width: width + extra, height: ROW + extra, "stroke-width": 2, style: { fill: "none", stroke } });
      cursorMark = svg("g", {}, box("var(--paper)", 3), box("var(--ink)", 0));
      cursorMark.firstChild.setAttribute("transform", "translate(-1.5 -1.5)");
      bestMark = svg("circle", { r: 4, "stroke-width": 2, style: { fill: "none", stroke: "#111" } });
      picture.replaceChildren(
        svg("defs", {}, hatch(pattern)), ...cells.flat(), bestMark, cursorMark,
        ...lams.map((lam, l) => svg("text", { x: left - 6, y: bottom - l * ROW - 6, "text-anchor": "end" }, String(lam))),
        ...alphas.flatMap((alpha, a) => ((a + 1) % 4 === 0 ? [svg("text", { x: left + (a + 0.5) * width, y: bottom + 15, "text-anchor": "middle" }, format(alpha, 3))] : [])),
        svg("text", { class: "axis-label", x: (left + wide) / 2, y: bottom + 33, "text-anchor": "middle" }, "step-size α"),
        svg("text", { class: "axis-label", transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "λ"));
    }
    function draw(value, cursor) {
      const wide = picture.clientWidth || 320;
      if (wide !== drawn) build(wide);
      let best = null;
      lams.forEach((_, l) => alphas.forEach((_, a) => {
        const error = value(a, l);
        cells[l][a].style.fill = Number.isNaN(error) ? "var(--grid)" : error > RUNAWAY ? `url(#${pattern})` : colourOf(error);
        if (best === null || error < best.error) best = { error, a, l };
      }));
      bestMark.setAttribute("cx", left + (best.a + 0.5) * width);
      bestMark.setAttribute("cy", bottom - (best.l + 0.5) * ROW);
      bestMark.style.visibility = Number.isFinite(best.error) ? "visible" : "hidden";
      cursorMark.setAttribute("transform", `translate(${left + cursor.a * width} ${bottom - (cursor.l + 1) * ROW})`);
    }
    const under = (event) => {
      const box = picture.getBoundingClientRect();
      const a = Math.floor((event.clientX - box.left - left) / width);
      const l = Math.floor((bottom - (event.clientY - box.top)) / ROW);
      return a >= 0 && a < alphas.length && l >= 0 && l < lams.length ? { a, l } : null;
    };
    picture.addEventListener("click", (event) => { if (under(event)) onPick(under(event)); });
    picture.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") onHover(under(event)); });
    picture.addEventListener("pointerleave", () => onHover(null));
    picture.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (move) onMove(...move);
      else if (event.key === "Enter" || event.key === " ") onPick(null);
      else return;
      event.preventDefault();
    });
    return { element: h("div", {}, h("h3", {}, sample(METHODS[name]), TITLES(name)), picture), draw };
  }

  function surfaceFigure(place, watch) {
    const RUNS = { 5: 200, 19: 100, 100: 20 };
    let surface, maps, running = false, seen = false, drawnAt = 0, redrawing = false;
    const cursor = { a: 7, l: 4 };
    let hovered = null; // the cell under the mouse, whose numbers are shown

    const nearest = (alpha) => Math.min(Math.max(Math.round(alpha / surface.alphas[0]) - 1, 0), surface.alphas.length - 1);
    const written = (error) => (Number.isNaN(error) ? "not yet" : error > 99 ? "ran away" : decimals(error, 3));
    const pause = h("button", { type: "button", class: "primary", onclick: () => (running ? halt() : go()) }, "Compute");
    const where = h("span", { class: "where" });
    const cellText = h("p", { class: "cell" });
    const use = button({ label: "Watch this setting", onClick: pickHere }).element;
    const grid = h("div", { class: "maps" });
    const curves = Object.fromEntries(NAMES.map((name) => [name, chart({
      title: ["Error against α ", h("span", { class: "hint thick" })], label: `${TITLES(name)}: error against α, a line for each λ`, height: 235, x: { label: "step-size α", min: 0 }, y: { label: "RMS error", min: LOW, max: HIGH, format: (v) => decimals(v, 1) },
      readout: (x) => surface.lams.map((lam, l) => `λ = ${lam}: ${written(surface.mean(name, nearest(x), l))}`).reverse(),
      onPoint: (x) => { cursor.a = nearest(x); redraw(); },
    })]));
    place.prepend(
      h("div", { class: "player" }, pause, use, where), cellText,
      h("div", { class: "scale" },
        h("span", {}, "error ", String(LOW), h("span", { class: "ramp", style: { background: `linear-gradient(90deg, ${RAMP.slice().reverse().map((c) => `rgb(${c.join(" ")})`).join(", ")})` } }), `${HIGH} and more`),
        h("span", {}, svg("svg", { width: 22, height: 15, "aria-hidden": "true" }, svg("defs", {}, hatch("hatch-key")), svg("rect", { width: 22, height: 15, fill: "url(#hatch-key)" })), "above 1: more than any reward"),
        h("span", {}, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("circle", { cx: 7, cy: 7, r: 4, "stroke-width": 2, style: { fill: "none", stroke: "var(--ink)" } })), "best of the map")),
      grid,
      h("p", { class: "hint" }, "Click or tap a cell to watch it live. ", h("span", { class: "keys" }, "With the focus on a map, arrow keys choose a cell, and ", h("kbd", {}, "Enter"), " watches it.")));

    function restart() {
      halt();
      surface = new Surface({ walk: problem(), methods: NAMES, seed: seed.value });
      maps = Object.fromEntries(NAMES.map((name) => [name, heatMap({ name, alphas: surface.alphas, lams: surface.lams, onMove, onPick, onHover })]));
      arrange();
      if (seen) go();
    }
    function arrange() {
      grid.replaceChildren(...visible().map((name) => h("div", {}, maps[name].element, curves[name].element)));
      redraw();
    }
    function onMove(a, l) {
      cursor.a = Math.min(Math.max(cursor.a + a, 0), surface.alphas.length - 1);
      cursor.l = Math.min(Math.max(cursor.l + l, 0), surface.lams.length - 1);
      tell(cursor);
      announce(cellText.textContent);
      redraw();
    }
    function onHover(cell) {
      hovered = cell;
      tell(hovered || cursor);
    }
    function onPick(cell) {
      Object.assign(cursor, cell || {});
      redraw();
      pickHere();
    }
    function pickHere() {
      watch(surface.alphas[cursor.a], surface.lams[cursor.l]);
    }
    const done = () => surface.runs >= RUNS[surface.walk.states];
    function go() {
      if (running || done()) return;
      running = true;
      requestAnimationFrame(slice);
      redraw();
    }
    function halt() {
      running = false;
      if (surface) redraw();
    }
    // The page stays responsive: a slice of every frame is spent on the surface, and the rest is the browser's.
    function slice() {
      if (!running) return;
      surface.advance(performance.now() + 9, () => performance.now(), RUNS[surface.walk.states]);
      if (done()) halt();
      else requestAnimationFrame(slice);
      if (performance.now() - drawnAt > 150) redraw();
    }
    function redraw() {
      if (redrawing) return;
      redrawing = true;
      requestAnimationFrame(() => { redrawing = false; draw(); });
    }
    function draw() {
      drawnAt = performance.now();
      const { alphas, lams } = surface;
      for (const name of visible()) {
        const value = (a, l) => surface.mean(name, a, l);
        maps[name].draw(value, cursor);
        const line = (l) => alphas.map((alpha, a) => [alpha, Math.min(value(a, l), 99)]);
        const here = value(cursor.a, cursor.l);
        curves[name].element.querySelector(".thick").textContent = `thick: λ = ${lams[cursor.l]}`;
        curves[name].draw({
          x: { max: alphas.at(-1), ticks: [0, 4, 9, 14, 19].map((a, i) => (i === 0 ? 0 : alphas[a])), format: (v) => format(v, 3) },
          series: [...lams.map((_, l) => ({ points: line(l), colour: "var(--ink)", opacity: 0.3, width: 1.1 })), { ...METHODS[name], points: line(cursor.l), width: 3 }],
          marks: Number.isFinite(here) ? [{ x: alphas[cursor.a], y: Math.min(Math.max(here, LOW), HIGH), marker: METHODS[name].marker, colour: METHODS[name].colour }] : [],
        });
      }
      const limit = RUNS[surface.walk.states];
      pause.textContent = running ? "❚❚ Pause" : done() ? "Done" : surface.runs + surface.next ? "▶ Continue" : "▶ Compute";
      pause.disabled = done();
      where.textContent = `run ${Math.min(surface.runs + 1, limit)} of ${limit}, walks of the seeds ${seed.value} to ${seed.value + limit - 1}`;
      tell(hovered || cursor);
    }
    function tell({ a, l }) {
      const told = (name) => h("span", {}, h("b", { class: name.replace("_", "-") }, TITLES(name)), ` ${written(surface.mean(name, a, l))}`);
      cellText.replaceChildren(`α = ${format(surface.alphas[a], 4)}, λ = ${surface.lams[l]}. Mean error: `, ...visible().flatMap((name, i) => (i ? [", ", told(name)] : [told(name)])), ".");
    }
    listeners.problem.push(restart);
    listeners.methods.push(arrange);
    onResize(place, redraw);
    return {
      show() {
        restart();
        new IntersectionObserver((entries) => {
          if (seen || !entries.some((entry) => entry.isIntersecting)) return;
          seen = true;
          go();
        }).observe(place);
      },
    };
  }

  // --- The page ---------------------------------------------------------------------------------------------------------

  const walking = live(document.getElementById("live"));
  const surface = surfaceFigure(document.getElementById("surface"), (a, l) => { walking.watch(a, l); address.save(); });
  const address = hash({ states, features: kind, seed, ...walking.controls, ...shown }); // reads it, too
  document.addEventListener("change", address.save);
  walking.show();
  surface.show();
  trueonline.randomWalk = { heatMap }; // for the still picture
})();
