// How much time is shown: a few lengths that fit the speed of the stream, and all of it.

import { remember, remembered } from "./memory.js";

const DAY = 86400;
const LENGTHS = [1, 10, 60, 600, 3600, DAY, 7 * DAY, 30 * DAY, 365 * DAY, 3650 * DAY]; // seconds
const SCARCE = 24; // a length that shows fewer samples than this is too short
const PLENTY = 1000; // samples in ten seconds, so that one second is worth a look
const WORDS = new Map([[3600, "1 hour"], [DAY, "1 day"], [7 * DAY, "1 week"], [30 * DAY, "30 days"], [365 * DAY, "1 year"], [3650 * DAY, "10 years"]]);

export const ALL = "all";

// Lengths for samples that are `step` seconds apart, of which `kept` can be drawn one by one.
export function lengths(step, kept) {
  const shortest = 10 / step >= PLENTY ? 0 : 1;
  const first = LENGTHS.findIndex((each, k) => k >= shortest && each >= SCARCE * step);
  const some = first < 0 ? [] : LENGTHS.slice(first, first + 3).filter((each, k) => k === 0 || each <= 1.5 * kept * step);
  return [...some, ALL];
}

function lengthWords(length) {
  if (length === ALL) return "all";
  return WORDS.get(length) ?? (length < 60 ? `${length} s` : `${length / 60} min`);
}

// The buttons. `length` is the one that was chosen, and `chosen()` is called when it is another.
export class Spans {
  constructor(group, chosen) {
    Object.assign(this, { group, chosen, length: ALL });
  }

  offer(offered) {
    const before = [...this.group.children].map((button) => button.dataset.length).join();
    if (before === offered.join()) return;
    const wanted = remembered("length", null);
    this.length = offered.includes(wanted) ? wanted : offered[1] ?? ALL;
    this.group.replaceChildren(...offered.map((each, k) => this.button(each, k + 1)));
    this.mark(true);
  }

  button(length, key) {
    const button = document.createElement("button"), words = lengthWords(length);
    const title = length === ALL ? `Show all since the beginning (${key})` : `Show the last ${words} (${key})`;
    Object.assign(button, { type: "button", textContent: words, title });
    button.dataset.length = length;
    button.setAttribute("aria-keyshortcuts", key);
    button.addEventListener("click", () => {
      this.length = length;
      remember("length", length);
      this.chosen();
    });
    return button;
  }

  // Mark the one that is shown, if the newest samples are.
  mark(following) {
    for (const button of this.group.children) button.setAttribute("aria-pressed", following && button.dataset.length === String(this.length));
  }
}
