import { readFile } from 'node:fs/promises';

/** Returns the commit that was compiled and its date in UTC; both are empty for a build without git. */
export async function readBuild(): Promise<{ commit: string; date: string }> {
  const text = await readFile(new URL('../../build.json', import.meta.url), 'utf8').catch(() => undefined);
  return text === undefined
    ? { commit: '', date: '' }
    : (JSON.parse(text) as { commit: string; date: string });
}
