// What stands beside the charts: the newest alerts, and who predicts.

import { moment } from "./axis.js";
import { alertWords, percent } from "./words.js";

const LISTED = 12; // alerts
const REMEMBERED = 1000; // alerts that are marked in the charts
const HEAVIEST = 4; // experts of a question
const SOME = 0.05; // smaller shares are told together

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

export class Alerts {
  // `look(alert)` is called to look at one of them.
  constructor(section, list, look) {
    Object.assign(this, { section, list, look });
    this.clear();
  }

  clear() {
    this.known = []; // the oldest first
    this.written = "";
    this.section.hidden = true;
  }

  // The server tells the newest ones, of which some may be known.
  add(alerts) {
    const key = ({ time, question }) => `${time} ${question}`;
    const known = new Set(this.known.map(key));
    const fresh = alerts.filter((each) => !known.has(key(each)));
    this.known = [...this.known, ...fresh].sort((a, b) => a.time - b.time).slice(-REMEMBERED);
  }

  tell(step, clock) {
    const newest = this.known.slice(-LISTED).reverse();
    const written = JSON.stringify([newest, step, clock]);
    if (written === this.written) return;
    this.written = written;
    this.section.hidden = !newest.length;
    this.list.replaceChildren(...newest.map((alert) => {
      const item = element("li", ""), button = element("button", "told");
      Object.assign(button, { type: "button", title: `surprise ${alert.surprise}: show it` });
      button.append(element("span", "when", moment(alert.time, step, clock)), element("span", "what", alert.question),
        element("span", "against", alertWords(alert)));
      button.addEventListener("click", () => this.look(alert));
      item.append(button);
      return item;
    }));
  }
}

// The heaviest experts of each question that is shown. `experts` has lists of [words, share], by number of question.
export function tellExperts(section, place, questions, shown, experts) {
  const known = shown.filter((number) => experts[number]?.length);
  section.hidden = !known.length;
  place.replaceChildren(...known.flatMap((number) => {
    const list = element("ul", "experts");
    const heaviest = [...experts[number]].sort((a, b) => b[1] - a[1]).slice(0, HEAVIEST).filter(([, share], k) => !k || share >= SOME);
    const others = 1 - heaviest.reduce((sum, [, share]) => sum + share, 0);
    list.append(...[...heaviest, ["all others", others]].filter(([, share]) => share >= 0.005).map(([words, share]) => {
      const item = element("li", ""), bar = element("i", "bar");
      bar.style.width = `${100 * Math.min(share, 1)}%`;
      item.append(element("span", "share", percent(share)), element("span", "words", words.replaceAll(" = ", "\u00a0=\u00a0")), bar);
      if (words === "all others") item.className = "others";
      return item;
    }));
    return [element("h3", "", questions[number].name), list];
  }));
}
