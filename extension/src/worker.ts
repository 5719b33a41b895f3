// The extension's worker: tells the network's page whether a server was allowed. The permissions that the owner of the
// browser has given are the only list of servers.

interface PosternWorker {
  runtime: {
    id: string;
    onMessage: {
      addListener(
        handle: (message: { server?: unknown }, sender: { id?: string; origin?: string }, answer: (ok: boolean) => void) => boolean,
      ): void;
    };
  };
  permissions: { contains(wanted: { origins: string[] }): Promise<boolean> };
}

((extension: PosternWorker) => {
  extension.runtime.onMessage.addListener((message, sender, answer) => {
    if (sender.id !== extension.runtime.id || typeof message.server !== "string") {
      return false;
    }
    const { protocol, hostname } = new URL(message.server);
    extension.permissions.contains({ origins: [`${protocol}//${hostname}/*`] }).then(answer, () => answer(false));
    return true; // the answer follows
  });
})((globalThis as unknown as { chrome: PosternWorker }).chrome);
