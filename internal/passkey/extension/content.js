"use strict";
// The extension's part of the network's page: takes a request out of the address, and shows it if the owner of the
// browser has allowed the server that asks.
/** posternRequest reads a request out of the fragment of an address; undefined if there is none. */
function posternRequest(fragment) {
    const prefix = "#postern=";
    if (!fragment.startsWith(prefix)) {
        return undefined;
    }
    try {
        const raw = atob(fragment.slice(prefix.length).replaceAll("-", "+").replaceAll("_", "/"));
        const request = JSON.parse(new TextDecoder().decode(Uint8Array.from(raw, (c) => c.charCodeAt(0))));
        const back = new URL(request.back);
        const local = back.protocol === "http:" && ["localhost", "127.0.0.1"].includes(back.hostname);
        return back.protocol === "https:" || local ? request : undefined;
    }
    catch {
        return undefined; // not one of ours
    }
}
/** posternRefused says that the server was not allowed. */
function posternRefused(server) {
    const note = document.createElement("p");
    note.id = "postern-passkey";
    note.setAttribute("role", "alert");
    note.textContent = `Postern: ${server} asks for your passkey, and you have not allowed this server. If you know it, press ` +
        "the extension's icon, allow the server, and begin again. If you do not, close this page.";
    Object.assign(note.style, {
        position: "fixed", inset: "1rem 1rem auto auto", zIndex: "2147483647", width: "24rem", maxWidth: "calc(100vw - 2rem)",
        boxSizing: "border-box", margin: "0", padding: "1.25rem", borderRadius: "1rem", border: "2px solid #a4262c",
        background: "#fff", color: "#15191d", font: "16px/1.5 system-ui, sans-serif", overflowWrap: "anywhere",
    });
    document.body.append(note);
}
/** posternBegin handles the request in the address of the page, and removes it from there. */
async function posternBegin() {
    const request = posternRequest(location.hash);
    if (!request) {
        return;
    }
    history.replaceState(history.state, "", location.pathname + location.search);
    const server = new URL(request.back).origin;
    const allowed = await chrome.runtime.sendMessage({ server });
    if (document.readyState === "loading") {
        await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
    }
    if (allowed) {
        posternPasskey(request);
    }
    else {
        posternRefused(server);
    }
}
void posternBegin();
