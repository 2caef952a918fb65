import { homedir } from 'node:os';
import path from 'node:path';
import { readOwnFile } from '../files/own-files.js';

export { platformOfMachine } from '../source/machine.js';

/** Returns the user's home directory; the root, as container engines set it, for a user without an entry and HOME. */
export function getHomeDirectory(): string {
  try {
    return homedir();
  } catch {
    return path.parse(process.execPath).root;
  }
}

/** Returns a number from 0 to 1 that spreads requests over time. */
export function drawRandom(): number {
  return Math.random();
}

/** Returns the version of opmate. */
export function ownVersion(): string {
  const { version } = JSON.parse(readOwnFile('package.json').toString()) as { version: string };
  return version;
}
