"use strict";
// Keeps the page up to date: asks for what it shows, and is answered when that
// has changed.
(async () => {
  const main = document.querySelector("main[data-now]");
  const rest = (ms) => new Promise((done) => setTimeout(done, ms));
  for (;;) {
    let res;
    try {
      res = await fetch(main.dataset.now + "?seen=" + main.dataset.seen, { cache: "no-store" });
    } catch {
      await rest(2000); // offline for a moment
      continue;
    }
    if (res.status === 204 || res.status >= 500) {
      await rest(1000);
      continue;
    }
    if (res.status !== 200) {
      location.reload();
      return;
    }
    main.innerHTML = await res.text();
    main.dataset.seen = res.headers.get("Page-Seen");
    document.title = main.querySelector("h1").textContent;
    if (res.headers.get("Page-Done")) {
      return;
    }
  }
})();
