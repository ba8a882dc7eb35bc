// Explorable pages say how high they are, so that their frames need no scroll bars.
"use strict";

addEventListener("message", (event) => {
  const height = Number(event.data?.trueonlineHeight);
  if (!(height > 0)) return;
  for (const frame of document.querySelectorAll(".explorable iframe")) {
    if (frame.contentWindow === event.source) frame.style.height = `${Math.ceil(height)}px`;
  }
});
