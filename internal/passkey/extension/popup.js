"use strict";
// The extension's window: allows a server, lists those that are allowed, and removes them.
((extension) => {
    const find = (selector) => document.querySelector(selector);
    const vendor = "https://web.whatsapp.com/*";
    const show = async () => {
        const list = find("ul");
        list.replaceChildren();
        for (const origin of (await extension.permissions.getAll()).origins ?? []) {
            if (origin === vendor) {
                continue;
            }
            const item = document.createElement("li");
            const remove = document.createElement("button");
            remove.textContent = "Remove";
            remove.addEventListener("click", async () => {
                await extension.permissions.remove({ origins: [origin] });
                await show();
            });
            item.append(origin.replace(/\/\*$/, ""), " ", remove);
            list.append(item);
        }
        find("#none").hidden = list.childElementCount > 0;
    };
    find("form").addEventListener("submit", async (event) => {
        event.preventDefault();
        const note = find("#note");
        note.textContent = "";
        let server;
        try {
            server = new URL(find("input").value.trim());
        }
        catch {
            note.textContent = "Enter the address of your server, such as https://postern.example.com";
            return;
        }
        const allowed = await extension.permissions
            .request({ origins: [`${server.protocol}//${server.hostname}/*`] })
            .catch(() => false);
        note.textContent = allowed ? "" : "The server was not allowed. Its address begins with https://, or with http://localhost.";
        await show();
    });
    void show();
})(globalThis.chrome);
