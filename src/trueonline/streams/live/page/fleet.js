// The signals of a fleet, the worst first.

import { clockOf, moment, zoneWords } from "./axis.js";
import { write } from "./figures.js";
import { alertWords, amount, isEarly, skillCell, whole } from "./words.js";
import { Connection } from "./wire.js";

const $ = (id) => document.getElementById(id);
const EVERY = 2000; // ms between two looks
const STATES = { learning: "learning", ended: "the stream has ended", stopped: "trueonline was stopped", lost: "connection lost – trying again" };
let known = null, silent = false, stopped = false;

history.replaceState(null, "", location.pathname); // the token is in the cookie now, and need not be in the address

async function look() {
  try {
    const answer = await fetch("signals");
    if (!answer.ok) throw new Error(answer.statusText);
    known = await answer.json();
    silent = stopped = false;
  } catch {
    silent = true;
  }
  tell();
  setTimeout(look, EVERY);
}

function tell() {
  const state = stopped ? "stopped" : silent ? "lost" : known?.state;
  write("state", STATES[state] ?? "waiting for samples");
  $("state").dataset.state = state;
  if (!known) return;
  for (const name of ["signals", "samples", "alerts"]) write(name, whole(name === "signals" ? known.of ?? known.signals.length : known[name]));
  write("note", known.note);
  $("note").hidden = !known.note;
  const words = $("find").value.toLowerCase();
  const found = known.signals.filter(({ name }) => name.toLowerCase().includes(words));
  document.querySelector("table").hidden = !found.length;
  $("list").replaceChildren(...found.map(row));
  if (known.signals.length) write("zone", zoneWords(clockOf(known.signals[0].time, known.offset), known.zone));
  const left = (known.of ?? known.signals.length) - known.signals.length;
  $("more").hidden = left <= 0 && found.length > 0;
  write("more", found.length ? `and ${whole(left)} more that are less surprising` : known.signals.length ? "no signal has that in its name" : "Waiting for samples …");
}

function row(signal) {
  const { name, value, prediction, worst, alerts, last, time } = signal;
  const line = document.createElement("tr"), link = document.createElement("a"), head = document.createElement("th");
  head.scope = "row";
  link.href = `?signal=${encodeURIComponent(name)}`;
  link.textContent = name;
  head.append(link);
  const early = signal.better !== null && isEarly(signal, signal.scored, signal.step);
  const alert = last ? `${moment(last.time, signal.step, clockOf(time, known.offset))}: ${alertWords(last)}` : "";
  const cells = [[worst.toFixed(3), worst >= 0.99 ? "bad" : ""], [amount(value, 4)], [amount(prediction, 4)],
    skillCell(signal.better ?? NaN, early), [alerts ? whole(alerts) : "–"], [alert, "what"]];
  line.append(head, ...cells.map(([text, kind = ""]) => {
    const cell = document.createElement("td");
    cell.textContent = text;
    cell.className = kind;
    return cell;
  }));
  return line;
}

$("find").addEventListener("input", tell);
look();
new Connection(() => {}, null, (_, orderly) => { // it only tells how the server ended
  stopped ||= orderly;
  tell();
});
