"use strict";
// The extension's worker: tells the network's page whether a server was allowed. The permissions that the owner of the
// browser has given are the only list of servers.
((extension) => {
    extension.runtime.onMessage.addListener((message, sender, answer) => {
        if (sender.id !== extension.runtime.id || typeof message.server !== "string") {
            return false;
        }
        const { protocol, hostname } = new URL(message.server);
        extension.permissions.contains({ origins: [`${protocol}//${hostname}/*`] }).then(answer, () => answer(false));
        return true; // the answer follows
    });
})(globalThis.chrome);
