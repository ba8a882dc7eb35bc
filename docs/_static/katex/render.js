// Draw a page's equations with the copy of KaTeX in this folder. Sphinx adds this script to pages with equations only.
"use strict";

(() => {
  const here = new URL(".", document.currentScript.src);
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("katex.min.css", here);
  const library = document.createElement("script");
  library.src = new URL("katex.min.js", here);

  const draw = () => {
    for (const place of document.querySelectorAll(".math")) {
      const found = place.textContent.match(/\\\(([^]*)\\\)|\\\[([^]*)\\\]/);
      if (!found) continue;
      const number = place.querySelector(".eqno");
      const target = document.createElement(place.tagName);
      katex.render(found[1] ?? found[2], target, { displayMode: found[2] !== undefined, throwOnError: false });
      place.replaceChildren(...(number ? [number] : []), ...target.childNodes);
    }
  };
  library.addEventListener("load", () => {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", draw);
    else draw();
  });
  document.head.append(style, library);
})();
