import { readOwnFile } from '../files/own-files.js';

/** Returns the version of opmate. */
export function ownVersion(): string {
  const { version } = JSON.parse(readOwnFile('package.json').toString()) as { version: string };
  return version;
}
