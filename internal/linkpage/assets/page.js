"use strict";
// Keeps the page up to date: asks for what it shows, and is answered when that
// has changed. It also takes back what the network's page gives.
(async () => {
  const main = document.querySelector("main[data-now]");
  const rest = (ms) => new Promise((done) => setTimeout(done, ms));
  let problem = "";
  const explain = () => {
    const place = main.querySelector(".problem");
    if (place) {
      place.textContent = problem;
      place.hidden = !problem;
    }
  };

  const prefix = "#passkey=";
  if (location.hash.startsWith(prefix)) {
    const answer = location.hash.slice(prefix.length);
    history.replaceState(null, "", location.pathname);
    try {
      const raw = atob(answer.replaceAll("-", "+").replaceAll("_", "/"));
      const res = await fetch(location.pathname + "/passkey", {
        method: "POST",
        body: Uint8Array.from(raw, (c) => c.charCodeAt(0)),
      });
      problem = res.ok ? "" : await res.text();
    } catch {
      problem = "The passkey did not arrive. Check your connection, and go to the network's page again.";
    }
    explain();
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) {
      return;
    }
    const text = main.querySelector("textarea");
    text.select();
    try {
      await navigator.clipboard.writeText(text.value);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C, or ⌘C on a Mac";
    }
  });

  for (;;) {
    let res;
    try {
      res = await fetch(main.dataset.now + "?seen=" + main.dataset.seen, { cache: "no-store" });
    } catch {
      await rest(2000); // offline for a moment
      continue;
    }
    if (res.status === 204 || res.status === 429 || res.status >= 500) {
      await rest(res.status === 429 ? 5000 : 1000);
      continue;
    }
    if (res.status !== 200) {
      location.reload();
      return;
    }
    main.innerHTML = await res.text();
    main.dataset.seen = res.headers.get("Page-Seen");
    document.title = main.querySelector("h1").textContent;
    explain();
    if (res.headers.get("Page-Done")) {
      return;
    }
  }
})();
