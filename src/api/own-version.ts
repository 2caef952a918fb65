import { readFile } from 'node:fs/promises';

/** Returns the version of opmate. */
export async function ownVersion(): Promise<string> {
  const packageFile = new URL('../../package.json', import.meta.url);
  const { version } = JSON.parse(await readFile(packageFile, 'utf8')) as { version: string };
  return version;
}
