import { readFileSync } from 'node:fs';

/** Returns the lines of a file of recorded answers in `fixtures/vectors`. */
export function readVectors<T>(name: string): T[] {
  return readFileSync(new URL(`../../fixtures/vectors/${name}`, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
