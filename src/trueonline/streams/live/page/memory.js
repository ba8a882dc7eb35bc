// What the browser remembers of this page, where it may.

export function remember(name, value) {
  try { localStorage.setItem(`trueonline.${name}`, JSON.stringify(value)); } catch { /* not allowed here: it is forgotten */ }
}

export function remembered(name, otherwise) {
  try { return JSON.parse(localStorage.getItem(`trueonline.${name}`)) ?? otherwise; } catch { return otherwise; }
}
