// The figures at the top of the page.

import { amount, median, span, uptime, whole } from "./words.js";

const $ = (id) => document.getElementById(id);

export function write(id, words) {
  if ($(id).textContent !== words) $(id).textContent = words;
}

const pace = (value) => (value < 10 ? amount(value) : whole(value));

const SLOW = 2; // seconds between samples from which on nobody thinks of a rate

// `received` is the number of samples that came, `delays` are those of the newest, in ms, and `step` is the usual time between
// two samples.
export function tellFigures({ status, missed, delays, step, received }) {
  write("pace", status.pace && status.pace !== 1 ? `replayed ${pace(status.pace)} times as fast as recorded` : "");
  write("samples", whole(status.samples ?? received));
  write("rate", step >= SLOW ? `every ${span(step)}` : Number.isFinite(status.rate) ? `${amount(status.rate)} Hz` : "–");
  const reasons = Object.entries(status.dropped ?? {}).filter(([, number]) => number > 0);
  write("dropped", whole(reasons.reduce((sum, [, number]) => sum + number, 0)));
  const text = reasons.map(([reason, number]) => `${reason}: ${whole(number)}`);
  $("dropping").title = text.join("\n") || "nothing was dropped";
  if ($("reasons").dataset.text !== text.join()) {
    $("reasons").dataset.text = text.join();
    $("reasons").replaceChildren(...(text.length ? text : ["nothing was dropped"]).map((line) => {
      const item = document.createElement("li");
      item.textContent = line;
      return item;
    }));
  }
  $("clipping").hidden = !status.clipped;
  write("clipped", whole(status.clipped));
  $("missing").hidden = !missed;
  write("missed", whole(missed));
  write("delay", delays.length ? `${whole(Math.max(median(delays), 0))} ms` : "–");
  write("uptime", uptime(status.uptime));
}
