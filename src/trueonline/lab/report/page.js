"use strict";
// Every chart's specification and data are in the page; this draws them and ties them to their controls.

const GAP = 14; // pixels between panels
const MANY = 5000; // points, from which on a canvas is faster than SVG is sharp
const LOOK = {
  font: getComputedStyle(document.body).fontFamily,
  background: "transparent",
  axis: {
    labelFontSize: 11, labelColor: "#3d454d", labelOverlap: "greedy", labelSeparation: 4, tickCount: 5,
    domain: false, gridColor: "#e8ebee", tickColor: "#9aa3ad",
  },
  header: { labelFontSize: 12, labelFontWeight: 600, labelColor: "#1d2329", labelPadding: 6 },
  facet: { spacing: GAP },
  view: { stroke: "#b4bcc5" },
};

/** Rows from columns: a column is its values, or the distinct values and the code of each row. */
function unpack(columns) {
  const readers = Object.entries(columns).map(([name, column]) =>
    Array.isArray(column) ? [name, (i) => column[i]] : [name, (i) => column.values[column.codes[i]]]);
  return columns.y.map((_, i) => Object.fromEntries(readers.map(([name, read]) => [name, read(i)])));
}

/** Show the values of a row beside the pointer; without a row, nothing. Text only ever enters as text. */
function tell(event, titles, row) {
  const tip = document.querySelector(".tip");
  tip.hidden = !row;
  if (!row) return;
  const table = document.createElement("table");
  for (const [name, title] of Object.entries(titles)) {
    if (row[name] === null) continue;
    const line = table.insertRow();
    line.append(document.createElement("th"), document.createElement("td"));
    line.cells[0].textContent = title;
    line.cells[1].textContent = typeof row[name] === "number" ? Number(row[name].toPrecision(5)) : row[name];
  }
  tip.replaceChildren(table);
  const { width, height } = tip.getBoundingClientRect();
  const beyond = event.clientX + 16 + width > document.documentElement.clientWidth;
  tip.style.left = `${Math.max(4, beyond ? event.clientX - 16 - width : event.clientX + 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 16, window.innerHeight - height - 4))}px`;
}

class Plot {
  constructor(figure) {
    this.find = (selector) => figure.querySelector(selector);
    Object.assign(this, JSON.parse(this.find("script").textContent)); // columns, specs, notes, choices, across, …
    this.rows = unpack(this.columns);
    this.box = this.find(".plot");
    this.log = this.find(".log");
    this.choice = this.find(".choice");
    this.buttons = [...figure.querySelectorAll(".legend button")];
    this.last = Promise.resolve();
    this.log?.addEventListener("change", () => this.draw());
    this.choice?.addEventListener("input", () => this.steer());
    for (const button of this.buttons) button.addEventListener("click", () => this.toggle(button));
  }

  shown() {
    return this.buttons.filter((button) => button.getAttribute("aria-pressed") === "true");
  }

  /** Hide or show one series. When the last one goes, all come back: an empty chart tells nothing. */
  toggle(button) {
    button.setAttribute("aria-pressed", !this.shown().includes(button));
    if (!this.shown().length) for (const each of this.buttons) each.setAttribute("aria-pressed", true);
    this.steer();
  }

  /** Bring the chart in line with its legend and its choice. */
  async steer() {
    const output = this.find("output");
    if (output) output.value = this.choices[this.choice.value];
    if (!this.drawn) return;
    this.drawn.view.signal("shown", this.shown().map((button) => button.dataset.name));
    if (this.choice) this.drawn.view.signal("chosen", Number(this.choice.value));
    await this.drawn.view.runAsync();
  }

  /** The panels' size in the room that there is; where it is too little, the chart's own box scrolls. */
  size() {
    const room = this.box.clientWidth - 40 - (this.headed ? 24 : 0) - GAP * (this.across - 1);
    const [narrowest, lowest, highest, share] = this.panels > 1 ? [190, 170, 220, 0.62] : [240, 220, 360, 0.5];
    const width = Math.max(narrowest, Math.floor(room / this.across));
    return { width, height: Math.round(Math.min(highest, Math.max(lowest, share * width))) };
  }

  /** Draw anew, after any drawing that is still under way: two at once would fight for the box. */
  draw() {
    this.last = this.last.then(() => this.redraw()).catch((error) => {
      this.find(".note").textContent = `This chart cannot be drawn: ${error.message}`;
      console.error(error);
    });
    return this.last;
  }

  async redraw() {
    const kind = this.log?.checked ? "log" : "linear";
    const spec = { ...structuredClone(this.specs[kind]), datasets: { rows: this.rows } };
    const { width, height } = this.size();
    Object.assign(spec.spec ?? spec, { width, height });
    const across = { labelLimit: width };
    const left = this.box.scrollLeft;
    this.box.style.height = this.drawn ? `${this.box.offsetHeight}px` : ""; // the page must not jump meanwhile
    this.drawn?.finalize();
    this.drawn = await vegaEmbed(this.box.firstElementChild, spec, {
      mode: "vega-lite",
      actions: false,
      ast: true, // expressions are interpreted, so that the page's policy can forbid eval
      config: { ...LOOK, headerRow: { labelLimit: height + GAP }, headerColumn: across, headerFacet: across },
      // Of a nearest point Vega hands over the cell around it, whose datum is the point.
      tooltip: (_, event, item, value) => tell(event, this.titles, value && (item.datum.datum ?? item.datum)),
      renderer: this.rows.length / (this.choices?.length ?? 1) > MANY ? "canvas" : "svg",
    });
    this.width = width;
    this.find(".note").textContent = this.notes[kind];
    await this.steer();
    const over = this.box.scrollWidth - this.box.clientWidth; // by labels wider than foreseen
    if (over > 0 && over < 60) {
      const fitting = width - Math.ceil(over / this.across);
      await this.drawn.view.signal(spec.spec ? "child_width" : "width", fitting).resize().runAsync();
    }
    this.box.style.height = "";
    this.box.scrollLeft = left;
  }
}

async function main() {
  const plots = [...document.querySelectorAll("figure")].map((figure) => new Plot(figure));
  for (const plot of plots) await plot.draw(); // one by one, so that the page can be read meanwhile
  document.documentElement.dataset.drawn = plots.filter((plot) => plot.drawn).length;

  let soon;
  window.addEventListener("resize", () => {
    clearTimeout(soon);
    soon = setTimeout(() => plots.filter((plot) => plot.size().width !== plot.width).forEach((plot) => plot.draw()), 200);
  });
}

// Paper cannot be clicked: print with all details open.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const details of opened) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});

main();
