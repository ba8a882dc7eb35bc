// The page on the memory: a ledger of eight features, a grid of many, and a measurement.
"use strict";
(() => {
  const { h, slider, button, player, chart, format, hash, announce, legend, onResize } = trueonline.widgets;
  const { EDGE, OwedMemory, EagerMemory, Learner, MovingPoint } = trueonline.memory;
  const { random } = trueonline.methods;

  const maths = (letter) => h("i", { class: "maths" }, letter);
  const whole = (number) => Math.round(number).toLocaleString("en");
  const roughly = (number) => (number < 1e6 ? whole(number) : `${format(number / 1e6, 3)} million`);
  const largest = (numbers) => numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 0);

  function onKeys(mine, acts) {
    document.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.altKey && !event.metaKey && mine(event.target) && Object.hasOwn(acts, event.key)) acts[event.key]();
    });
  }

  // Two learners on one stream: one keeps its vectors plainly, the other one owes.
  function pair({ n, active, alpha, gamma, lam, weight = 0 }) {
    const stream = new MovingPoint({ n, active, random: random(5).uniform });
    const settings = { alpha: alpha / stream.rows, gamma, lam };
    const learners = { eager: new Learner("true_online", new EagerMemory(n), settings), owed: new Learner("true_online", new OwedMemory(n), settings) };
    learners.eager.memory.w.fill(weight);
    learners.owed.memory.u.fill(weight);
    for (const learner of Object.values(learners)) {
      learner.vOld = weight * stream.rows;
      learner.here = stream.features();
      learner.gammaHere = gamma; // there is no trace yet, so it may fade as usual
    }
    return { ...learners, stream, both: (act) => { act(learners.eager); act(learners.owed); } };
  }

  // --- The ledger -------------------------------------------------------------------------------------------------------

  function ledger(place) {
    const N = 8;
    const four = (number) => (number === 0 ? "0" : number.toFixed(4).replace("-", "−"));
    let events, state;

    const lam = slider({ label: "λ: how much trace is left after a step (times γ = 0.9)", min: 0, max: 1, step: 0.05, value: 0.5, onInput: restart });
    const alpha = slider({ label: "α: how far a step goes", min: 0.05, max: 1, step: 0.05, value: 0.5, onInput: restart });
    const saying = h("p", { class: "saying" });
    const cells = { eager: [], owed: [] };
    const heads = { eager: ["feature", "e", "w"], owed: ["feature", "z", "y", "u", "e", "w"] };
    const table = (kind, caption) => {
      const out = (j) => (kind === "owed" && j > 3 ? "out" : null);
      const rows = Array.from({ length: N }, (_, i) => {
        cells[kind].push(heads[kind].slice(1).map((_, j) => h("td", { class: out(j + 1) })));
        return h("tr", {}, h("th", { scope: "row" }, String(i + 1)), cells[kind][i]);
      });
      return h("table", { class: "ledger" }, h("caption", { class: "visually-hidden" }, caption),
        h("thead", {}, h("tr", {}, heads[kind].map((name, j) => h("th", { scope: "col", class: out(j) }, name === "feature" ? "" : name)))), h("tbody", {}, rows));
    };
    const tables = { eager: table("eager", "Trace and weights, kept plainly"), owed: table("owed", "Trace and weights, owed") };
    const door = { s: h("output"), c: h("output") };
    const doors = { s: h("div", {}, maths("s"), ": worth of a share", door.s), c: h("div", {}, maths("c"), ": dividends on a share", door.c) };
    const tally = { eager: h("p", { class: "tally" }), owed: h("p", { class: "tally" }) };
    const agree = h("p", { class: "agree" });
    const controls = player({ forward: () => act("operation"), back, restart, rate: 1.2, figure: place });
    controls.element.insertBefore(button({ label: "Whole step", title: "S key", onClick: wholeStep }).element, controls.element.querySelector(".where"));
    controls.element.insertBefore(button({ label: "Rebase now", title: "R key", onClick: () => { controls.pause(); act("rebase"); } }).element, controls.element.querySelector(".where"));
    onKeys((target) => target === document.body || place.contains(target), { s: wholeStep, r: () => { controls.pause(); act("rebase"); } });

    place.prepend(
      h("div", { class: "controls" }, lam.element, alpha.element), controls.element, saying,
      h("div", { class: "clerks" },
        h("div", { class: "eager" }, h("h3", {}, "An eager loop"), h("div", { class: "scroll" }, tables.eager), tally.eager),
        h("div", { class: "owed" }, h("h3", {}, "The memory"), h("div", { class: "door" }, doors.s, doors.c), h("div", { class: "scroll" }, tables.owed), tally.owed)),
      agree,
      h("p", { class: "hint" }, "● active now. A framed cell was read, a filled one was written. Grey columns are not stored: they are worked out when asked."),
      h("p", { class: "hint keys" }, "Keys: ", h("kbd", {}, "→"), " next operation, ", h("kbd", {}, "←"), " back, ", h("kbd", {}, "S"), " whole step, ", h("kbd", {}, "R"), " rebase, ", h("kbd", {}, "Space"), " play, ", h("kbd", {}, "Home"), " restart."));

    const OPERATIONS = {
      recall() {
        const { eager, owed, both, stream } = state;
        const here = [...eager.here.indices];
        const reward = stream.move();
        const next = stream.features();
        both((learner) => learner.recall(reward, next));
        const rows = [...new Set([...here, ...next.indices])];
        return {
          text: [h("b", {}, "Recall. "), `The active features are ${names(here)}; next come ${names(next.indices)}. Both sides add up weights: the prediction is ${four(owed.v)}, the next one ${four(owed.vNext)}. With a reward of ${four(reward)} the error is δ = ${four(owed.delta)}.`],
          read: { eager: rows.map((i) => [i, "w"]), owed: rows.flatMap((i) => [[i, "z"], [i, "y"], [i, "u"]]), door: ["c"] },
        };
      },
      decay() {
        const before = state.owed.memory.s;
        state.both((learner) => learner.decay());
        const { owed } = state;
        return {
          text: [h("b", {}, "Decay. "), `All traces fade by γλ = ${format(owed.fade)}. The eager loop multiplies ${N} numbers. The memory multiplies one: s ← ${format(owed.fade)} × ${four(before)} = ${four(owed.memory.s)}.`],
          wrote: { eager: every("e"), door: ["s"] },
        };
      },
      imprint() {
        const { owed, both } = state;
        const rows = [...owed.here.indices];
        const bought = (memory) => memory.z[memory.slot[rows[0]]];
        const before = bought(owed.memory);
        both((learner) => learner.imprint());
        const shares = bought(owed.memory) - before;
        return {
          text: [h("b", {}, "Imprint. "), `The active features ${names(rows)} get new trace. At the price s = ${four(owed.memory.s)} feature ${rows[0] + 1} gets ${four(shares)} shares in z. Dividends that were paid before, c × shares = ${four(owed.memory.c * shares)}, are taken off y. All others stay as they are.`],
          wrote: { eager: rows.flatMap((i) => [[i, "e"], [i, "w"]]), owed: rows.flatMap((i) => [[i, "z"], [i, "y"]]) },
        };
      },
      learn() {
        const before = state.owed.memory.c;
        state.both((learner) => learner.learn());
        const { owed } = state;
        return {
          text: [h("b", {}, "Learn. "), `Every weight changes by ${four(owed.toAll)} times its trace. The eager loop changes ${N} weights. The memory pays a dividend: c ← ${four(before)} + ${four(owed.toAll)} × ${four(owed.memory.s)} = ${four(owed.memory.c)}.`],
          wrote: { eager: every("w"), door: ["c"] },
        };
      },
      rebase(asked) {
        const { memory } = state.owed;
        const rows = Array.from(memory.owner.slice(1, memory.count + 1));
        const why = asked ? "You asked for it." : `s = ${four(memory.s)} has fallen below ${EDGE}.`;
        memory.rebase();
        return {
          text: [h("b", {}, "Rebase. "), `${why} The books are closed: everyone on the list is paid c·z into y, and shares are counted again so that each is worth 1. No trace and no weight has changed.`],
          wrote: { owed: rows.flatMap((i) => [[i, "z"], [i, "y"]]), door: ["s", "c"] },
        };
      },
    };
    const ORDER = ["recall", "decay", "imprint", "learn"];
    const names = (indices) => [...indices].map((i) => i + 1).sort((a, b) => a - b).join(" and ");
    const every = (name) => Array.from({ length: N }, (_, i) => [i, name]);

    function perform(event) {
      const asked = event === "rebase";
      const due = ORDER[state.phase];
      const operation = asked || (due === "imprint" && state.owed.memory.worn) ? "rebase" : due;
      state.shown = { operation, ...OPERATIONS[operation](asked) };
      const { wrote = {} } = state.shown;
      state.written.eager += (wrote.eager || []).length;
      state.written.owed += (wrote.owed || []).length + (wrote.door || []).length;
      if (operation !== "rebase") state.phase = (state.phase + 1) % 4;
      if (operation === "learn") state.steps++;
    }
    function act(event) {
      events.push(event);
      perform(event);
      draw();
      announce(saying.textContent);
    }
    function wholeStep() {
      controls.pause();
      do act("operation"); while (state.phase !== 0);
    }
    function begin() {
      state = { ...pair({ n: N, active: 2, alpha: alpha.value, gamma: 0.9, lam: lam.value, weight: 0.5 }), phase: 0, steps: 0, written: { eager: 0, owed: 0 }, shown: null };
    }
    function restart() {
      controls.pause();
      events = [];
      begin();
      draw();
    }
    function back() {
      const kept = events.slice(0, -1);
      begin();
      kept.forEach(perform);
      events = kept;
      draw();
    }

    function draw() {
      const { eager, owed, shown, written } = state;
      const memory = owed.memory;
      const active = new Set(eager.here.indices);
      for (let i = 0; i < N; i++) {
        const k = memory.slot[i];
        const numbers = { eager: [eager.memory.e[i], eager.memory.w[i]], owed: [memory.z[k], memory.y[k], memory.u[i], memory.trace(i), memory.weight(i)] };
        for (const kind of ["eager", "owed"]) {
          cells[kind][i][0].parentNode.classList.toggle("active", active.has(i));
          numbers[kind].forEach((number, j) => {
            const cell = cells[kind][i][j];
            cell.textContent = four(number);
            cell.classList.remove("read", "wrote");
          });
        }
      }
      door.s.textContent = four(memory.s);
      door.c.textContent = four(memory.c);
      for (const number of ["s", "c"]) doors[number].classList.remove("read", "wrote");
      for (const how of ["read", "wrote"]) {
        const marked = (shown && shown[how]) || {};
        for (const kind of ["eager", "owed"])
          for (const [i, name] of marked[kind] || []) cells[kind][i][heads[kind].indexOf(name) - 1].classList.add(how);
        for (const number of marked.door || []) doors[number].classList.add(how);
      }
      saying.replaceChildren(...(shown ? shown.text : [h("b", {}, "Nothing has happened yet. "), "Press Step to see the first of four operations: recall, decay, imprint, learn."]));
      tally.eager.textContent = `${whole(written.eager)} numbers written so far`;
      tally.owed.textContent = `${whole(written.owed)} numbers written so far`;
      const apart = largest(Array.from({ length: N }, (_, i) => memory.weight(i) - eager.memory.w[i]));
      agree.replaceChildren("Largest difference between the weights of the two: ", h("b", {}, apart === 0 ? "0" : format(apart, 2)), ".");
      controls.show(shown ? `step ${state.steps + (shown.operation === "learn" || state.phase === 0 ? 0 : 1)}: ${shown.operation}` : "step 0", { back: events.length > 0 });
    }
    return { controls: { small_decay: lam, step_size: alpha }, show: restart };
  }

  // --- The grid ---------------------------------------------------------------------------------------------------------

  function grid(place) {
    const SQUARES = 1024;
    const KEPT = 240;
    const GAMMA = 0.99;
    let state;
    let waiting = false;

    const size = slider({ label: "Features", min: 4, max: 20, step: 1, value: 8, format: (v) => whole(2 ** v), onInput: restart });
    const active = slider({ label: "Active at a time", min: 1, max: 32, step: 1, value: 8, onInput: restart });
    const lam = slider({ label: "λ (with γ = 0.99)", min: 0, max: 1, step: 0.01, value: 0.9, onInput: restart });
    const speed = slider({ label: "Speed", min: 0, max: 6, step: 1, value: 3, format: (v) => `${2 ** v} steps a second` });
    const controls = player({ forward: () => { step(); later(); }, restart, rate: () => 2 ** speed.value, figure: place });
    controls.element.insertBefore(button({ label: "Rebase now", title: "R key", onClick: rebase }).element, controls.element.querySelector(".where"));
    onKeys((target) => place.contains(target), { r: rebase });

    const canvases = { eager: canvas("The weights, with everything that an eager loop touches marked"), owed: canvas("The weights, with what the memory touches marked") };
    function canvas(label) { return h("canvas", { role: "img", "aria-label": label }); }
    const swatch = (style, text) => h("li", {}, h("span", { class: "swatch", style }), text);
    const scaleNote = h("p", { class: "hint" });
    const visits = chart({ title: "Entries visited in a step", label: "Entries visited in each of the last steps", height: 230, x: { label: "step" }, y: { label: "entries", log: true, format: roughly } });
    const scale = chart({ title: ["The worth of a share, s ", h("span", { class: "hint" }, "rebase below 0.01")], label: "The number s over the last steps", height: 190, x: { label: "step" }, y: { label: "s", log: true, min: 0.005, max: 2, ticks: [0.01, 0.1, 1] } });
    const owing = chart({ title: ["Dividends on a share, c ", h("span", { class: "hint" }, "since the last rebase")], label: "The number c over the last steps", height: 190, x: { label: "step" }, y: { label: "c" } });
    const body = h("tbody");
    const agree = h("p", { class: "agree" });
    const LINES = [
      { key: "all", name: "eager loop, all entries", colour: "var(--accumulate)", dashes: "6 2", marker: "square" },
      { key: "traced", name: "eager loop, entries with a trace only", colour: "var(--pink)", dashes: "2 2", marker: "triangle" },
      { key: "owed", name: "the memory", colour: "var(--true-online)", dashes: "", marker: "circle" },
    ];

    place.prepend(
      h("div", { class: "controls" }, size.element, active.element, lam.element, speed.element), controls.element,
      h("div", { class: "grids" },
        h("div", {}, h("h3", {}, "An eager loop touches"), canvases.eager, h("ul", { class: "legend" },
          swatch({ background: "var(--accumulate)" }, "has a trace: must change"), swatch({ background: "color-mix(in srgb, var(--accumulate) 20%, var(--paper))" }, "has none: visited all the same"))),
        h("div", {}, h("h3", {}, "The memory touches"), canvases.owed, h("ul", { class: "legend" },
          swatch({ background: "var(--true-online)", "border-color": "var(--ink)" }, "active: visited"), swatch({ background: "linear-gradient(90deg, var(--yellow), color-mix(in srgb, var(--yellow) 20%, var(--paper)))" }, "has a trace: owed, not visited"), swatch({ background: "var(--sky)" }, "paid by a rebase in this step")))),
      scaleNote,
      legend(LINES), visits.element,
      h("div", { class: "scroll" }, h("table", { class: "numbers totals" }, h("caption", {}, "Entries visited"),
        h("thead", {}, h("tr", {}, ["", "last step", "mean of a step", "in all"].map((text) => h("th", { scope: "col" }, text)))), body)),
      agree,
      h("div", { class: "row" }, scale.element, owing.element),
      h("p", { class: "hint keys" }, "Keys, with the focus in this figure: ", h("kbd", {}, "Space"), " play, ", h("kbd", {}, "→"), " step, ", h("kbd", {}, "R"), " rebase, ", h("kbd", {}, "Home"), " restart."),
      h("p", { class: "hint" }, "The eager loop decays and learns in one pass: it visits each entry once in a step, besides those that are read."));

    function restart() {
      const n = 2 ** size.value;
      state = { ...pair({ n, active: active.value, alpha: 0.5, gamma: GAMMA, lam: lam.value }), n, steps: 0, history: [], totals: { all: 0, traced: 0, owed: 0 }, touched: [], paid: [], passed: -Infinity };
      state.squares = Math.min(n, SQUARES);
      state.blocks = { weight: new Float64Array(state.squares), trace: new Float64Array(state.squares) };
      later();
    }
    function step() {
      const { eager, owed, stream, both, totals } = state;
      const memory = owed.memory;
      const before = { eager: eager.memory.visits, owed: memory.visits, rebases: memory.rebases };
      const reward = stream.move();
      const next = stream.features();
      state.touched = [...owed.here.indices];
      const listed = memory.owner.slice(1, memory.count + 1);
      both((learner) => learner.step(reward, next));
      const paid = memory.rebases > before.rebases;
      state.paid = paid ? listed : [];
      state.steps++;
      const seen = { all: eager.memory.visits - before.eager, traced: eager.memory.traced + owed.here.indices.length + state.touched.length, owed: memory.visits - before.owed };
      for (const name of Object.keys(totals)) totals[name] += seen[name];
      state.history.push({ t: state.steps, ...seen, s: memory.s, c: memory.c, paid });
      if (state.history.length > KEPT) state.history.shift();
    }
    function rebase() {
      controls.pause();
      const { memory } = state.owed;
      const before = memory.visits;
      state.touched = [];
      state.paid = memory.owner.slice(1, memory.count + 1);
      memory.rebase();
      state.totals.owed += memory.visits - before;
      if (state.history.length) state.history.push({ ...state.history.at(-1), all: NaN, traced: NaN, owed: memory.visits - before || NaN, s: memory.s, c: memory.c, paid: true });
      announce("The list has been paid. s is 1 and c is 0.");
      later();
    }

    // Drawing waits for the next frame, however many steps are made until then.
    function later() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame((now) => { waiting = false; draw(now); });
    }

    // One pass over all entries: how far the two are apart, and what the squares show. It is made seldom where there are many.
    function pass(now) {
      const { n, eager, owed, blocks, squares } = state;
      if (n > 2 ** 15 && controls.playing && now - state.passed < 400) return;
      state.passed = now;
      blocks.weight.fill(0);
      blocks.trace.fill(0);
      let apart = 0;
      for (let i = 0; i < n; i++) {
        const w = eager.memory.w[i];
        const block = Math.floor((i * squares) / n);
        apart = Math.max(apart, Math.abs(w - owed.memory.weight(i)));
        if (Math.abs(w) > blocks.weight[block]) blocks.weight[block] = Math.abs(w);
        if (Math.abs(eager.memory.e[i]) > blocks.trace[block]) blocks.trace[block] = Math.abs(eager.memory.e[i]);
      }
      state.apart = apart;
      state.largest = largest([...blocks.weight]);
    }

    function draw(now) {
      pass(now);
      drawSquares();
      const { history, steps, totals, n, owed } = state;
      const from = Math.max(steps - KEPT, 0);
      const x = { label: "step", min: from, max: Math.max(steps, 40) };
      const series = LINES.map((line) => ({ ...line, points: history.map((one) => [one.t, one[line.key]]), markers: "last" }));
      visits.draw({ x, y: { min: 1, max: Math.max(4 * n, 100) }, series });
      const paid = history.filter((one) => one.paid).map((one) => ({ x: one.t, y: one.s, colour: "var(--sky)", marker: "diamond", radius: 4 }));
      scale.draw({ x, series: [{ points: history.map((one) => [one.t, one.s]), colour: "var(--true-online)" }], lines: [{ y: EDGE }], marks: paid.length <= 40 ? paid : [] });
      const cs = history.map((one) => one.c);
      const reach = [Math.min(0, ...cs), Math.max(0, ...cs)];
      const room = (reach[1] - reach[0] || 1) * 0.06;
      owing.draw({ x, y: { min: reach[0] - room, max: reach[1] + room }, series: [{ points: history.map((one) => [one.t, one.c]), colour: "var(--true-online)" }] });
      const last = history.at(-1);
      const { rebases, rebaseVisits } = owed.memory;
      const mean = (total) => (!steps ? "–" : total / steps < 1000 ? format(total / steps, 3) : roughly(total / steps));
      const row = (name, now, total) => h("tr", {}, h("td", {}, name), [now, mean(total), roughly(total)].map((text) => h("td", {}, text)));
      const shown = (number) => (Number.isFinite(number) ? whole(number) : "–");
      body.replaceChildren(
        ...LINES.map((line) => row(line.name, last ? shown(last[line.key]) : "–", totals[line.key])),
        row(`of these, at rebases (${whole(rebases)} so far)`, last && last.paid ? whole(state.paid.length) : "0", rebaseVisits));
      const difference = state.apart === 0 ? "0" : format(state.apart, 2);
      agree.replaceChildren("Largest difference between the weights of the two, over all features: ", h("b", {}, difference), ". The largest weight is ", h("b", {}, format(state.largest, 3)), ".");
      controls.show(`step ${whole(steps)}`);
    }

    function drawSquares() {
      const { squares, blocks, n, touched, paid, owed, stream } = state;
      const columns = n === squares && stream.tiles <= 64 ? stream.tiles : Math.min(64, squares / 8); // a row of tiles, where it fits
      const style = getComputedStyle(document.documentElement);
      const colours = Object.fromEntries(["grid", "accumulate", "yellow", "sky", "ink", "true-online"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
      const of = (i) => Math.floor((i * squares) / n);
      const { memory } = owed;
      const listed = new Set(Array.from(memory.owner.subarray(1, memory.count + 1), of));
      const strength = (b) => Math.min(blocks.trace[b], 1) ** 0.4; // so that weak traces can be seen
      const paying = new Set(Array.from(paid, of));
      const visited = new Set(touched.map(of));
      const begun = state.steps > 0;
      for (const [kind, element] of Object.entries(canvases)) {
        const width = element.clientWidth || 300;
        const ratio = window.devicePixelRatio || 1;
        const cell = Math.min(width / columns, 36);
        const height = cell * Math.ceil(squares / columns);
        element.style.height = `${height}px`;
        element.width = Math.round(width * ratio); // this clears it, too
        element.height = Math.round(height * ratio);
        const pen = element.getContext("2d");
        pen.setTransform(ratio, 0, 0, ratio, 0, 0);
        const gap = cell > 6 ? 1 : 0.5;
        for (let b = 0; b < squares; b++) {
          const [left, top] = [(b % columns) * cell, Math.floor(b / columns) * cell];
          const fill = (name, alpha, inset = 0) => {
            pen.globalAlpha = alpha;
            pen.fillStyle = colours[name];
            pen.fillRect(left + gap / 2 + inset, top + gap / 2 + inset, cell - gap - 2 * inset, cell - gap - 2 * inset);
          };
          fill("grid", 1);
          if (kind === "eager" && begun) fill("accumulate", blocks.trace[b] > 0 ? 0.45 + 0.55 * strength(b) : 0.2);
          if (kind === "owed") {
            if (listed.has(b)) fill("yellow", 0.2 + 0.8 * strength(b));
            if (paying.has(b)) fill("sky", 1);
            if (visited.has(b)) {
              fill("ink", 1);
              fill("true-online", 1, Math.min(1.5, cell / 6));
            }
          }
          const share = state.largest > 0 ? Math.sqrt(blocks.weight[b] / state.largest) : 0;
          if (share > 0.05 && !(kind === "owed" && cell < 8 && visited.has(b))) fill("ink", 0.75, (cell / 2) * (1 - 0.62 * share));
        }
        pen.globalAlpha = 1;
      }
      scaleNote.textContent = n > SQUARES ? `Each square stands for ${whole(n / squares)} features; its core is that of the largest weight among them.` : "";
    }
    onResize(place, later);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
    return {
      controls: { features: size, active, decay: lam, speed },
      setting: () => ({ active: active.value, lam: lam.value }),
      show() {
        restart();
        for (let t = 0; t < 30; t++) step(); // so that there is something to see
      },
    };
  }

  // --- The measurement --------------------------------------------------------------------------------------------------

  function race(place, setting) {
    const SIZES = [4, 7, 10, 13, 16, 18, 20].map((power) => 2 ** power);
    const LINES = {
      eager: { name: "eager loop, all entries", colour: "var(--accumulate)", dashes: "6 2", marker: "square", memory: EagerMemory },
      owed: { name: "the memory", colour: "var(--true-online)", dashes: "", marker: "circle", memory: OwedMemory },
    };
    const times = chart({
      title: "Time of a step", label: "Time of a step against the number of features", height: 260,
      x: { label: "features", log: true, min: 10, max: 2e6, ticks: [10, 1e3, 1e5], format: whole },
      y: { label: "seconds", log: true, min: 1e-8, max: 1e-1, ticks: [1e-8, 1e-6, 1e-4, 1e-2], format: (v) => ({ "1e-8": "10 ns", "0.000001": "1 µs", "0.0001": "100 µs", "0.01": "10 ms" })[String(v)] },
    });
    const go = h("button", { type: "button", class: "primary", onclick: measure }, "Measure");
    const result = h("p", { class: "agree" }, "Nothing has been measured yet. It takes a few seconds.");
    place.prepend(h("div", { class: "player" }, go), legend(Object.values(LINES)), times.element, result);
    const duration = (seconds) => (seconds >= 1e-3 ? `${format(seconds * 1e3, 2)} ms` : seconds >= 1e-6 ? `${format(seconds * 1e6, 2)} µs` : `${format(seconds * 1e9, 2)} ns`);
    let found = { eager: [], owed: [] };

    function draw() {
      times.draw({ series: Object.entries(LINES).map(([kind, line]) => ({ ...line, points: found[kind], markers: "all" })) });
    }
    function time(kind, n) {
      const { active, lam } = setting();
      const stream = new MovingPoint({ n, active, random: random(5).uniform });
      const rows = Array.from({ length: 1024 }, () => ({ reward: stream.move(), x: stream.features() }));
      const learner = new Learner("true_online", new LINES[kind].memory(n), { alpha: 0.5 / stream.rows, gamma: 0.99, lam });
      learner.start(rows[0].x);
      let steps = 0;
      const some = (count) => { for (let i = 0; i < count; i++, steps++) learner.step(rows[steps % 1024].reward, rows[(steps + 1) % 1024].x); };
      const during = (milliseconds) => {
        const begin = performance.now();
        let [count, spent] = [0, 0];
        while (spent < milliseconds) {
          const batch = Math.max(1, Math.min(4096, count));
          some(batch);
          count += batch;
          spent = performance.now() - begin;
        }
        return spent / count / 1000;
      };
      during(40); // meanwhile the browser compiles the loop
      return Math.min(...Array.from({ length: 5 }, () => during(12))); // what else runs on the device makes steps slower, never faster
    }
    async function measure() {
      go.disabled = true;
      found = { eager: [], owed: [] };
      for (const n of SIZES) {
        for (const kind of ["owed", "eager"]) {
          result.textContent = `Measuring with ${whole(n)} features …`;
          await new Promise((resolve) => setTimeout(resolve, 20)); // the page stays responsive
          found[kind].push([n, time(kind, n)]);
          draw();
        }
      }
      const [eager, owed] = ["eager", "owed"].map((kind) => found[kind].at(-1)[1]);
      const { active, lam } = setting();
      result.textContent = `With ${whole(SIZES.at(-1))} features, ${active} of them active, and λ = ${format(lam)}, a step took ${duration(eager)} with the eager loop and ${duration(owed)} with the memory, which is about ${whole(Number((eager / owed).toPrecision(2)))} times faster. With ${whole(SIZES[0])} features they took ${duration(found.eager[0][1])} and ${duration(found.owed[0][1])}.`;
      announce(result.textContent);
      go.disabled = false;
      go.textContent = "Measure again";
    }
    draw();
  }

  const small = ledger(document.getElementById("ledger"));
  const large = grid(document.getElementById("grid"));
  const address = hash({ ...small.controls, ...large.controls }); // reads it, too
  document.addEventListener("change", address.save);
  small.show();
  large.show();
  race(document.getElementById("race"), large.setting);
})();
