/**
 * Reports whether a shell pattern matches a path: `*` and `?` match within a component, `[a-z]` and `[^a]` one
 * character, `\\` quotes the next. A malformed pattern matches nothing. Runs in linear time. (Source: Go,
 * path/filepath.Match.)
 */
export function matchGlob(glob: string, path: string): boolean {
  const pattern = [...glob];
  const name = [...path];
  let p = 0;
  let n = 0;
  let starAt = -1;
  let starName = 0;
  while (n < name.length) {
    const step = p < pattern.length ? matchOne(pattern, p, name[n] as string) : undefined;
    if (step === 'star') {
      starAt = p++;
      starName = n;
    } else if (step !== undefined) {
      p = step;
      n++;
    } else if (starAt >= 0 && name[starName] !== '/') {
      p = starAt + 1;
      n = ++starName;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Returns the pattern offset after matching one character, `star` at a `*`, undefined for a mismatch. */
function matchOne(
  pattern: readonly string[],
  position: number,
  character: string,
): number | 'star' | undefined {
  const token = pattern[position];
  if (token === '*') return 'star';
  if (token === '?') return character === '/' ? undefined : position + 1;
  if (token === '\\') return pattern[position + 1] === character ? position + 2 : undefined;
  if (token !== '[') return token === character ? position + 1 : undefined;
  let i = position + 1;
  const negated = pattern[i] === '^';
  if (negated) i++;
  let hit = false;
  const readBound = (): string | undefined => {
    const bound = pattern[i++];
    if (bound === '\\') return pattern[i++];
    return bound === '-' || bound === ']' ? undefined : bound;
  };
  do {
    const low = readBound();
    let high = low;
    if (pattern[i] === '-') {
      i++;
      high = readBound();
    }
    if (low === undefined || high === undefined) return undefined;
    if (low <= character && character <= high) hit = true;
  } while (pattern[i] !== ']');
  return hit === negated ? undefined : i + 1;
}
