"use strict";
// The step on the network's page: asks for the passkey when its owner presses a button, and goes back to the page that
// asked for it. The extension runs this file, and so does everybody who pastes it into the console. It needs no
// permission, sends nothing anywhere else, and keeps nothing.
/** posternPasskey shows who asks, and asks for the passkey when the button is pressed. */
function posternPasskey(request) {
    const id = "postern-passkey";
    document.getElementById(id)?.remove();
    const host = document.createElement("div");
    host.id = id;
    host.setAttribute("role", "dialog");
    host.setAttribute("aria-label", "Passkey for Postern");
    const root = host.attachShadow({ mode: "open" });
    const add = (parent, tag, text, style = {}) => {
        const element = document.createElement(tag);
        element.textContent = text;
        Object.assign(element.style, style);
        parent.append(element);
        return element;
    };
    const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
    const server = new URL(request.back).origin;
    const box = add(root, "div", "", {
        position: "fixed", inset: "1rem 1rem auto auto", zIndex: "2147483647", boxSizing: "border-box", width: "24rem",
        maxWidth: "calc(100vw - 2rem)", padding: "1.25rem", borderRadius: "1rem", border: "1px solid #d9dee3",
        background: "#fff", color: "#15191d", font: "16px/1.5 system-ui, sans-serif",
        boxShadow: "0 1rem 3rem #0004",
    });
    const title = add(box, "h2", "Use your passkey?", { margin: "0 0 .5rem", font: "700 20px/1.25 system-ui, sans-serif" });
    title.tabIndex = -1;
    add(box, "p", `${request.name || "Somebody"} wants to link your account to this server:`, { margin: "0 0 .25rem" });
    add(box, "p", server, { margin: "0 0 .75rem", fontWeight: "700", overflowWrap: "anywhere" });
    add(box, "p", "After that, the server can read and send your messages. Continue only if you began this yourself, " +
        "a moment ago.", { margin: "0 0 1rem" });
    const note = add(box, "p", "", { margin: "0 0 1rem", color: "#a4262c" });
    note.setAttribute("role", "alert");
    note.hidden = true;
    const button = { font: "700 16px/1 system-ui, sans-serif", padding: ".9rem 1.1rem", borderRadius: ".75rem", cursor: "pointer" };
    const use = add(box, "button", "Use my passkey", {
        ...button, border: "0", background: "#0b6e4f", color: "#fff", marginRight: ".5rem",
    });
    const cancel = add(box, "button", "Cancel", { ...button, border: "1px solid #d9dee3", background: "#fff", color: "#15191d" });
    const get = async () => {
        const o = request.publicKey;
        const credential = (await navigator.credentials.get({
            publicKey: {
                challenge: bytes(o.challenge),
                timeout: o.timeout,
                rpId: o.rpId,
                allowCredentials: o.allowCredentials.map((c) => ({
                    id: bytes(c.id), type: "public-key", transports: c.transports,
                })),
                userVerification: o.userVerification,
                extensions: o.extensions,
            },
        }));
        const r = credential.response;
        return {
            id: credential.id, rawId: text(credential.rawId), type: credential.type,
            response: {
                clientDataJSON: text(r.clientDataJSON), authenticatorData: text(r.authenticatorData), signature: text(r.signature),
                userHandle: r.userHandle ? text(r.userHandle) : null,
            },
        };
    };
    use.addEventListener("click", async (event) => {
        if (!event.isTrusted) {
            return; // the page itself pressed it
        }
        use.disabled = true;
        note.hidden = true;
        try {
            const answer = new TextEncoder().encode(JSON.stringify(await get()));
            location.assign(`${request.back}#passkey=${text(answer.buffer)}`);
        }
        catch (problem) {
            use.disabled = false;
            note.hidden = false;
            note.textContent = problem instanceof DOMException && problem.name === "NotAllowedError"
                ? "The browser got no passkey: nobody chose one, or this browser does not have it. Try again, and choose your " +
                    "phone if the passkey is there."
                : `The browser refused: ${problem instanceof Error ? problem.message : String(problem)}`;
        }
    });
    cancel.addEventListener("click", () => host.remove());
    document.documentElement.append(host);
    title.focus();
}
