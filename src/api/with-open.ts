/** Runs `work` with an opened resource, and closes it afterwards. Throws what either of them throws. */
export async function withOpen<R extends { close(): unknown }, T>(
  resource: R | Promise<R>,
  work: (resource: R) => T | Promise<T>,
): Promise<T> {
  const opened = await resource;
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}
