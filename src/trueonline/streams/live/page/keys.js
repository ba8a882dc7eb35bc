// Keys of the page, which do nothing where the user types, or where the browser has a use for them.

export function bindKeys(keys) {
  addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=search]");
    const own = event.target.matches("button, summary, input") && [" ", "Enter"].includes(event.key); // does its own thing
    if (event.ctrlKey || event.metaKey || event.altKey || own) return;
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
}
