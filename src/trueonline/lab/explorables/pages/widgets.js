// Controls and charts, without libraries. Each function makes an element; `element` is what to put into the page.
//
//   const { h, svg, slider, choice, toggle, button, player, legend, chart, format, hash, announce } = trueonline.widgets;
//
//   h("p", {class: "hint"}, "text", child)     an HTML element; svg("line", {x1: 0}) the same for SVG. A function as attribute
//                                              "onclick" is a listener; null and false attributes are left out
//   slider({label, min, max, step, value, format, onInput})      .element, .value (get and set), .disabled, .max (set)
//   choice({label, options: [{value, label}], value, onChange})  radio buttons: .element, .value
//   toggle({label, value, onChange, colour, dashes})             a checkbox: .element, .value
//   button({label, onClick, primary, title})                     .element
//   player({forward, back, restart, rate, figure, extra})  buttons Play, Back, Step, Restart, with keys Space ← → Home while the focus is
//                                              in `figure` (or nowhere, for the first player of a page). forward() makes one step
//                                              and returns false at the end. `rate` is in steps a second, a number or a function.
//                                              `extra` is a list of more buttons.
//                                              .element, .play(), .pause(), .playing, .show("step 3 of 20", {back, forward}), .whenSeen()
//   legend([{name, colour, dashes, marker}])   a list element
//   chart({title, label, height, x: {label, min, max}, y: {label, min, max}, onPoint, readout})
//     .element, .draw({x, y, series, bars, lines, marks})        redraws itself when its width changes
//       series: [{name, points: [[x, y], …], colour, dashes, marker, markers: "all" | "last" | "none", step, width, opacity}]
//       bars:   [{x, y, from, width, colour, opacity}]           widths in units of x
//       lines:  [{x | y, label, colour, dashes}]                 a line across the chart
//       marks:  [{x, y, label, colour, marker, anchor}]          a marker with a text
//       axes:   {label, min, max, ticks: [numbers], log, format}; with log: true the numbers are positive
//     .px(x), .py(y), .top, .bottom, .left, .right, .layer      to draw more, in draw's option `after: (chart) => …`
//     onPoint(x, y, event) is called at a click or tap; readout(x) returns lines of text to show under the pointer
//   format(number, digits)                     a number for people: few digits, a real minus sign, powers of ten
//   hash({name: control, …})                   keeps controls in the address, so that a setting can be sent as a link;
//                                              call .save() after a change. Returns {save, read}
//   announce(text)                             says a text to screen readers
//   mark({marker, colour}, x, y, radius)       a marker, as an SVG element
//   onResize(element, callback), reducedMotion()
//
// With ?embed in the address the page hides its header and footer and posts its height to the page around it.
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.widgets = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  let made = 0;
  const newId = (prefix) => `${prefix}-${++made}`;

  // --- Elements ---------------------------------------------------------------------------------------------------------

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
      else if (name === "style" && typeof value === "object") Object.assign(element.style, value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(child);
    return element;
  }
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  function format(number, digits = 3) {
    if (!Number.isFinite(number)) return Number.isNaN(number) ? "–" : number > 0 ? "∞" : "−∞";
    const size = Math.abs(number);
    let text;
    if (size !== 0 && (size >= 1e6 || size < 1e-4)) {
      const [mantissa, power] = number.toExponential(Math.max(digits - 1, 0)).split("e");
      text = `${Number(mantissa)}·10${superscript(Number(power))}`;
    } else text = String(Number(number.toPrecision(Math.max(digits, Math.ceil(Math.log10(size + 1))))));
    return text.replace(/-/g, "−");
  }
  const superscript = (n) => String(n).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(c)]);

  // --- Controls ---------------------------------------------------------------------------------------------------------

  function slider({ label, min, max, step, value, format: write = (v) => format(v), onInput = () => {} }) {
    const id = newId("slider");
    const output = h("output", { for: id });
    const input = h("input", { type: "range", id, min, max, step });
    const show = () => {
      output.textContent = write(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.value = value;
    input.addEventListener("input", () => {
      show();
      onInput(Number(input.value));
    });
    show();
    return {
      element: h("div", { class: "slider" }, h("label", { for: id }, label), output, input),
      get value() { return Number(input.value); },
      set value(v) { input.value = v; show(); },
      set disabled(off) { input.disabled = off; },
      set max(most) { input.max = most; show(); },
    };
  }

  function choice({ label, options, value, onChange = () => {} }) {
    const name = newId("choice");
    const inputs = options.map((option) => {
      const input = h("input", { type: "radio", name, value: option.value });
      input.addEventListener("change", () => onChange(input.value));
      return input;
    });
    const select = (v) => inputs.forEach((input) => { input.checked = input.value === String(v); });
    select(value);
    const labels = options.map((option, i) => h("label", {}, inputs[i], h("span", {}, option.label)));
    return {
      element: h("fieldset", { class: "choice" }, h("legend", {}, label), h("div", { class: "options" }, labels)),
      get value() { return inputs.find((input) => input.checked).value; },
      set value(v) { if (options.some((option) => String(option.value) === String(v))) select(v); },
    };
  }

  function toggle({ label, value, onChange = () => {}, colour = null, dashes = "", marker = null }) {
    const input = h("input", { type: "checkbox" });
    input.checked = value;
    input.addEventListener("change", () => onChange(input.checked));
    return {
      element: h("label", { class: "toggle" }, input, colour && sample({ colour, dashes, marker }), label),
      get value() { return input.checked; },
      set value(v) { input.checked = v === true || v === "true"; },
    };
  }

  function button({ label, onClick = () => {}, primary = false, title = null }) {
    return { element: h("button", { type: "button", class: primary ? "primary" : null, title, onclick: onClick }, label) };
  }

  // --- Playing ----------------------------------------------------------------------------------------------------------

  const players = [];
  const ownKeys = (target) => target.closest?.("input, select, textarea, summary, [role=grid], [data-keys]");

  function player({ forward, back = null, restart = null, rate = 4, figure = null, extra = [] }) {
    let playing = false;
    let due = 0;
    const rateNow = () => (typeof rate === "function" ? rate() : rate);
    const playButton = button({ label: "▶ Play", primary: true, onClick: () => (playing ? pause() : play()), title: "Space" }).element;
    const backButton = back && button({ label: "← Back", onClick: () => { pause(); back(); }, title: "Left arrow key" }).element;
    const stepButton = button({ label: "Step →", onClick: () => { pause(); forward(); }, title: "Right arrow key" }).element;
    const restartButton = restart && button({ label: "Restart", onClick: () => { pause(); restart(); }, title: "Home key" }).element;
    const where = h("span", { class: "where", "aria-live": "polite" });
    const element = h("div", { class: "player", role: "group", "aria-label": "Steps through time" },
      playButton, backButton, stepButton, restartButton, extra, where);

    function frame(now) {
      if (!playing) return;
      const rate = rateNow();
      due = Math.max(due, now - 1000 / rate - 100); // after a pause of the browser, do not catch up
      while (playing && due <= now) {
        due += 1000 / rate;
        if (forward() === false) pause();
      }
      requestAnimationFrame(frame);
    }
    function play() {
      if (playing) return;
      playing = true;
      playButton.textContent = "❚❚ Pause";
      where.setAttribute("aria-live", "off"); // nobody can listen that fast
      due = performance.now();
      requestAnimationFrame(frame);
    }
    function pause() {
      playing = false;
      playButton.textContent = "▶ Play";
      where.setAttribute("aria-live", "polite");
    }
    const me = {
      element, play, pause,
      get playing() { return playing; },
      show(text, { back: canBack = true, forward: canForward = true } = {}) {
        where.textContent = text;
        if (backButton) backButton.disabled = !canBack;
        stepButton.disabled = playButton.disabled = !canForward;
      },
      key(event) {
        const act = { ArrowRight: () => { pause(); forward(); }, ArrowLeft: back && (() => { pause(); back(); }),
          Home: restart && (() => { pause(); restart(); }), " ": () => (playing ? pause() : play()) }[event.key];
        if (!act || (event.key === " " && event.target.closest?.("button, a, [role=button]"))) return;
        event.preventDefault();
        act();
      },
      // Plays once the figure can be seen, unless the reader has done something with it, or wants no motion.
      whenSeen() {
        if (reducedMotion()) return;
        const untouched = new AbortController();
        for (const kind of ["pointerdown", "keydown"]) (figure || element).addEventListener(kind, () => untouched.abort(), { once: true });
        new IntersectionObserver((entries, observer) => {
          if (!entries.some((entry) => entry.isIntersecting)) return;
          observer.disconnect();
          if (!untouched.signal.aborted) play();
        }, { threshold: 0.2 }).observe(element);
      },
      owns: (target) => (figure || element).contains(target),
    };
    players.push(me);
    return me;
  }

  function onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || ownKeys(event.target)) return;
    const owner = players.find((one) => one.owns(event.target)) || (event.target === document.body && players[0]);
    if (owner) owner.key(event);
  }

  // --- Charts -----------------------------------------------------------------------------------------------------------

  const SHAPES = {
    circle: (x, y, r) => svg("circle", { cx: x, cy: y, r }),
    square: (x, y, r) => svg("rect", { x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8 }),
    triangle: (x, y, r) => svg("path", { d: `M${x} ${y - r * 1.15}l${r * 1.1} ${r * 2}h${-r * 2.2}z` }),
    diamond: (x, y, r) => svg("path", { d: `M${x} ${y - r * 1.3}l${r * 1.2} ${r * 1.3}l${-r * 1.2} ${r * 1.3}l${-r * 1.2} ${-r * 1.3}z` }),
    cross: (x, y, r) => svg("path", { d: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`, "stroke-width": 2.5 }),
  };
  function shape(marker, x, y, radius, colour) {
    const element = SHAPES[marker](x, y, radius);
    element.style.fill = marker === "cross" ? "none" : colour;
    element.style.stroke = marker === "cross" ? colour : "var(--paper)";
    return element;
  }
  const mark = ({ marker, colour }, x, y, radius = 5) => shape(marker, x, y, radius, colour);
  function sample({ colour, dashes, marker }) {
    return svg("svg", { width: 34, height: 12, "aria-hidden": "true" },
      svg("line", { x1: 1, y1: 6, x2: 33, y2: 6, "stroke-width": 2.5, "stroke-dasharray": dashes || null, style: { stroke: colour } }),
      marker && shape(marker, 17, 6, 4, colour));
  }
  const legend = (items) => h("ul", { class: "legend" }, items.map((item) => h("li", {}, sample(item), item.name)));

  function niceTicks(min, max, count) {
    const raw = (max - min) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
    const ticks = [];
    for (let i = Math.ceil(min / step - 1e-9); i * step <= max + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
    return ticks;
  }
  function logTicks(min, max, count) {
    const decades = Math.log10(max / min);
    const mantissas = decades > count ? [1] : decades > count / 2 ? [1, 3] : [1, 2, 5];
    const ticks = [];
    for (let p = Math.floor(Math.log10(min)); p <= Math.ceil(Math.log10(max)); p++)
      for (const m of mantissas) if (m * 10 ** p >= min * 0.999 && m * 10 ** p <= max * 1.001) ticks.push(Number(`${m}e${p}`));
    return ticks;
  }
  function scale(axis, from, to) {
    const f = axis.log ? Math.log : (v) => v;
    const back = axis.log ? Math.exp : (v) => v;
    const [a, b] = [f(axis.min), f(axis.max)];
    const map = (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from);
    map.invert = (p) => back(a + ((p - from) / (to - from)) * (b - a));
    return map;
  }

  function chart({ title = "", label, height = 220, x = {}, y = {}, onPoint = null, readout = null }) {
    const picture = svg("svg", { role: "img", "aria-label": label || title });
    const element = h("figure", { class: "chart" }, title && h("figcaption", {}, title), picture);
    const me = { element, draw, left: 52, top: 10 };
    const clip = newId("clip");
    let last = null;
    let pointer = null;

    function draw(content = {}) {
      last = content;
      const width = Math.max(picture.clientWidth || element.clientWidth || 600, 160);
      const xAxis = { min: 0, max: 1, ...x, ...content.x };
      const yAxis = { min: 0, max: 1, ...y, ...content.y };
      const yTicks = yAxis.ticks || (yAxis.log ? logTicks : niceTicks)(yAxis.min, yAxis.max, height / 45);
      const write = (axis) => axis.format || ((v) => format(v, 6));
      const yTexts = yTicks.map(write(yAxis));
      me.left = 26 + 7 * Math.max(...yTexts.map((t) => t.length), width > 480 ? 5 : 2); // wide charts below each other are aligned
      me.right = width - 12;
      me.bottom = height - 40;
      me.px = scale(xAxis, me.left, me.right);
      me.py = scale(yAxis, me.bottom, me.top);
      const { px, py } = me;
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      picture.setAttribute("height", height);

      const xTicks = (xAxis.ticks || (xAxis.log ? logTicks : niceTicks)(xAxis.min, xAxis.max, (me.right - me.left) / 70));
      const grid = svg("g", { class: "grid" }, yTicks.map((v) => svg("line", { x1: me.left, x2: me.right, y1: py(v), y2: py(v) })));
      const axis = svg("g", { class: "axis" },
        svg("path", { d: `M${me.left} ${me.top}V${me.bottom}H${me.right}` }),
        yTicks.map((v, i) => svg("text", { x: me.left - 7, y: py(v) + 4, "text-anchor": "end" }, yTexts[i])),
        xTicks.map((v) => svg("line", { x1: px(v), x2: px(v), y1: me.bottom, y2: me.bottom + 4 })),
        xTicks.map((v) => svg("text", { x: px(v), y: me.bottom + 18, "text-anchor": "middle" }, write(xAxis)(v))),
        svg("text", { class: "axis-label", x: (me.left + me.right) / 2, y: height - 5, "text-anchor": "middle" }, xAxis.label || ""),
        svg("text", { class: "axis-label", transform: `translate(12 ${(me.top + me.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yAxis.label || ""));
      me.layer = svg("g", { "clip-path": `url(#${clip})` });
      const above = svg("g");
      picture.replaceChildren(
        svg("clipPath", { id: clip }, svg("rect", { x: me.left - 6, y: me.top - 6, width: me.right - me.left + 12, height: me.bottom - me.top + 7 })),
        grid, me.layer, axis, above);

      for (const bar of content.bars || []) {
        const [y0, y1] = [py(bar.from || (yAxis.log ? yAxis.min : 0)), py(bar.y)];
        const w = bar.width || 0.8;
        me.layer.append(svg("rect", { x: px(bar.x - w / 2), y: Math.min(y0, y1), width: Math.max(px(bar.x + w / 2) - px(bar.x - w / 2), 1),
          height: Math.abs(y1 - y0), opacity: bar.opacity ?? 1, style: { fill: bar.colour } }));
      }
      for (const line of content.lines || []) {
        const at = "x" in line ? { x1: px(line.x), x2: px(line.x), y1: me.top, y2: me.bottom } : { x1: me.left, x2: me.right, y1: py(line.y), y2: py(line.y) };
        me.layer.append(svg("line", { ...at, "stroke-width": 1.5, "stroke-dasharray": line.dashes ?? "4 3", style: { stroke: line.colour || "var(--faint)" } }));
        if (line.label) {
          const late = "x" in line && px(line.x) > (me.left + me.right) / 2;
          const text = "x" in line ? { x: px(line.x) + (late ? -5 : 5), y: me.top + 11, "text-anchor": late ? "end" : "start" } : { x: me.right - 2, y: py(line.y) - 5, "text-anchor": "end" };
          above.append(svg("text", text, line.label));
        }
      }
      for (const line of content.series || []) drawSeries(line);
      for (const mark of content.marks || []) {
        above.append(shape(mark.marker || "circle", px(mark.x), py(mark.y), mark.radius || 5, mark.colour || "var(--ink)"));
        if (mark.label) {
          const anchor = mark.anchor || (px(mark.x) > me.right - 90 ? "end" : "start");
          above.append(svg("text", { class: "readout", x: px(mark.x) + { start: 9, end: -9, middle: 0 }[anchor], y: Math.max(py(mark.y) + (anchor === "middle" ? -9 : 4), me.top + 8), "text-anchor": anchor }, mark.label));
        }
      }
      if (content.after) content.after(me);
      me.above = above;
      if (pointer) showReadout();
    }

    function drawSeries({ points, colour, dashes = "", marker = null, markers = "none", step = false, width = 2.25, opacity = 1 }) {
      const { px, py } = me;
      const far = (v) => Math.max(Math.min(v, 1e5), -1e5); // a diverging line must still be drawn
      let path = "";
      let gap = true;
      points.forEach(([a, b], i) => {
        if (b === null || Number.isNaN(b)) { gap = true; return; }
        const [u, v] = [px(a), far(py(b))];
        path += gap ? `M${u} ${v}` : step ? `H${u}V${v}` : `L${u} ${v}`;
        gap = false;
      });
      me.layer.append(svg("path", { d: path, "stroke-width": width, "stroke-dasharray": dashes || null, "stroke-linejoin": "round", opacity, style: { fill: "none", stroke: colour } }));
      if (!marker || markers === "none") return;
      const shown = markers === "all" ? points : points.slice(-1);
      for (const [a, b] of shown) if (Number.isFinite(b)) me.layer.append(shape(marker, px(a), far(py(b)), markers === "all" ? 3.5 : 5, colour));
    }

    function showReadout() {
      me.above.querySelector(".pointer")?.remove();
      if (!readout || pointer === null) return;
      const at = me.px.invert(pointer);
      const lines = readout(at);
      if (!lines || !lines.length) return;
      const wide = 16 + 7.4 * Math.max(...lines.map((line) => line.length));
      const left = pointer + 12 + wide > me.right ? pointer - 12 - wide : pointer + 12;
      me.above.append(svg("g", { class: "pointer", "pointer-events": "none" },
        svg("line", { x1: pointer, x2: pointer, y1: me.top, y2: me.bottom, style: { stroke: "var(--faint)" } }),
        svg("rect", { x: Math.max(left, 2), y: me.top + 2, width: wide, height: 8 + 16 * lines.length, rx: 4, style: { fill: "var(--panel)", stroke: "var(--line)" } }),
        lines.map((line, i) => svg("text", { class: "readout", x: Math.max(left, 2) + 7, y: me.top + 17 + 16 * i }, line))));
    }
    const place = (event) => {
      const box = picture.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    if (readout) {
      picture.addEventListener("pointermove", (event) => {
        const [u] = place(event);
        pointer = last && u >= me.left && u <= me.right ? u : null;
        if (last) showReadout();
      });
      picture.addEventListener("pointerleave", () => { pointer = null; if (last) showReadout(); });
    }
    if (onPoint) {
      picture.style.cursor = "pointer";
      picture.addEventListener("click", (event) => {
        const [u, v] = place(event);
        if (last) onPoint(me.px.invert(u), me.py.invert(v), event);
      });
    }
    onResize(element, () => { if (last) draw(last); });
    me.describe = (text) => picture.setAttribute("aria-label", text);
    return me;
  }

  // --- The page ---------------------------------------------------------------------------------------------------------

  function onResize(element, callback) {
    let width = 0;
    new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      requestAnimationFrame(callback);
    }).observe(element);
  }

  function hash(controls) {
    const read = () => {
      for (const [name, value] of new URLSearchParams(location.hash.slice(1)))
        if (Object.hasOwn(controls, name)) controls[name].value = value;
    };
    const write = () => {
      waiting = null;
      const values = Object.entries(controls).map(([name, control]) => [name, String(control.value)]);
      history.replaceState(null, "", `#${new URLSearchParams(values)}`);
    };
    // Safari refuses more than 100 changes of the address in 30 seconds. A slider that is dragged makes more.
    let recent = [];
    let waiting = null;
    const save = () => {
      const now = performance.now();
      recent = recent.filter((then) => now - then < 30000);
      if (recent.length < 60) {
        recent.push(now);
        write();
      } else waiting ??= setTimeout(write, 1000); // 30 more in 30 seconds, at most
    };
    read();
    return { read, save };
  }

  let live = null;
  function announce(text) {
    if (!live) document.body.append((live = h("div", { class: "visually-hidden", "aria-live": "polite" })));
    live.textContent = text;
  }
  const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // --- The way from page to page ------------------------------------------------------------------------------------------

  const PAGES = { traces: "Traces", forward_backward: "Forward and backward", random_walk: "Random walk", memory: "Memory", off_policy: "Off-policy", step_sizes: "Step-sizes" };
  function links() {
    const names = Object.keys(PAGES);
    const here = names.findIndex((name) => location.pathname.endsWith(`/${name}.html`)); // −1: the index, which has its cards
    const link = (name) => h("a", { href: `${name}.html`, "aria-current": name === names[here] && "page" }, PAGES[name]);
    const header = document.querySelector("header.site");
    header.prepend(
      h("a", { class: "home", href: "index.html", "aria-current": here < 0 && "page" }, "trueonline, explained"),
      h("nav", { "aria-label": "Pages" }, here < 0 ? [] : names.map(link), [...header.children]));
    for (const [word, name] of here < 0 ? [] : [["Next: ", names[here + 1]], ["Before: ", names[here - 1]]])
      if (name) document.querySelector("footer.site").prepend(word, link(name), ". ");
  }

  if (typeof document !== "undefined") {
    links();
    document.addEventListener("keydown", onKey);
    if (new URLSearchParams(location.search).has("embed")) {
      document.documentElement.classList.add("embed");
      const post = () => parent.postMessage({ trueonlineHeight: Math.ceil(document.body.getBoundingClientRect().height) }, "*");
      addEventListener("load", post); // browsers observe nothing in a frame that is out of sight
      new ResizeObserver(post).observe(document.body);
    }
  }

  return { h, svg, slider, choice, toggle, button, player, legend, chart, format, hash, announce, onResize, reducedMotion, sample, mark, newId };
})();
