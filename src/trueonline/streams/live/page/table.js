// The list of questions: which are shown, and how well each is answered.

import { amount, EARLY, errorsOf, firstScore, isEarly, latelyWords, questionWords, skillCell, skillWords, whole } from "./words.js";

const ROWS = 200; // more than that are not listed at a time
const FIND = 15; // with more questions than that there is a field to find them

export class Table {
  // `toggle(number)` shows or hides a question.
  constructor(body, field, more, toggle) {
    Object.assign(this, { body, field, more, toggle });
    this.questions = [];
    this.scores = null;
    this.shown = [];
    field.addEventListener("input", () => this.list());
  }

  fill(questions, most) {
    Object.assign(this, { questions, most, scores: null });
    this.field.hidden = questions.length <= FIND;
    this.list();
  }

  // List what is looked for. If that is too much, what is shown comes first.
  list() {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = [...this.questions.keys()];
    found = found.filter((number) => words.every((word) => this.questions[number].name.toLowerCase().includes(word)));
    const all = found.length;
    if (all > ROWS) {
      const first = new Set(this.shown);
      found = [...found.filter((number) => first.has(number)), ...found.filter((number) => !first.has(number))].slice(0, ROWS);
    }
    this.rows = new Map(found.map((number) => [number, this.row(number)]));
    this.body.replaceChildren(...this.rows.values());
    this.more.hidden = all > 0 && all <= ROWS;
    this.more.textContent = all ? `and ${whole(all - found.length)} more: find them by name` : "no question has that in its name";
    this.mark(this.shown);
    this.update(this.scores, this.step);
  }

  row(number) {
    const row = document.createElement("tr");
    const question = this.questions[number];
    row.innerHTML = '<th scope="row"><label><input type="checkbox"><span></span></label></th><td>–</td><td>–</td><td>–</td>';
    row.querySelector("span").textContent = question.name;
    row.title = `${question.name}: ${questionWords(question)}`;
    row.querySelector("input").addEventListener("change", () => this.toggle(number));
    return row;
  }

  mark(shown) {
    this.shown = shown;
    const set = new Set(shown);
    for (const [number, row] of this.rows ?? []) {
      const box = row.querySelector("input");
      box.checked = set.has(number);
      box.disabled = !box.checked && shown.length >= this.most;
      box.title = box.disabled ? `at most ${this.most} at a time` : "";
    }
  }

  // `step` is the usual time between two samples.
  update(scores, step = this.step) {
    Object.assign(this, { scores, step });
    if (!scores) return;
    for (const [number, row] of this.rows) {
      const overall = errorsOf(scores, number), recent = errorsOf(scores, number, true);
      const { error, skill } = Number.isFinite(overall.error) ? overall : recent; // the recent ones are known first
      const known = [skillWords(overall), latelyWords(recent)].filter(Boolean).join("\n");
      const cells = row.cells;
      cells[1].title = cells[2].title = known || firstScore(this.questions[number]);
      cells[1].textContent = amount(error);
      const early = Number.isFinite(skill) && isEarly(this.questions[number], scores.scored[number], this.step);
      if (early) cells[2].title = `${EARLY}\n${known}`;
      [cells[2].textContent, cells[2].className] = skillCell(skill, early);
      cells[3].textContent = whole(scores.scored[number]);
    }
  }
}
