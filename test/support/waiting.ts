/** Options of `vi.waitUntil` and `vi.waitFor`: what comes about at once may take this long on a busy machine. */
export const busy = { timeout: 60_000 };
