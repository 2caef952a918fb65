import type { JsonValue } from './json.js';
import { YamlError } from './yaml-error.js';
import { parseFastYaml } from './yaml-fast.js';
import { type PlacedYaml, parseFullYaml, parseFullYamlWithPlaces } from './yaml-full.js';

export { encodeYaml } from './yaml-encode.js';
export { YamlError };

/** Caps on what one document may make of its reader. */
interface YamlLimits {
  /** Aliases (`*name`) in the document; 10,000 by default. */
  maxAliases?: number;
  /** Nesting of mappings and sequences; 1,000 by default. */
  maxDepth?: number;
}

/**
 * Reads one YAML document as Go's sigs.k8s.io/yaml does (YAML 1.1 over go-yaml 2).
 *
 * `yes`, `on`, `y` and their kin are booleans; `017`, `0x1F`, `0b1`, `1_000` are integers, exact up to
 * 64 bits; timestamps stay text; the last of equal keys wins; `<<` merges; keys that are numbers or
 * booleans become text. Keys are in the order of the text. An empty text is null, and of several
 * documents the first one counts. Texts of 13 characters and more may be slices that keep the whole
 * `text` alive: copy what outlives it.
 *
 * Throws YamlError for what Go refuses (null keys, `.inf` and `.nan` among it) and where a limit is
 * reached. Taken although Go refuses it: `\/` and surrogate pairs in double quotes, as JSON has them.
 */
export function parseYaml(text: string, options: YamlLimits = {}): JsonValue {
  return withinStack(options, (limits) => {
    const fast = parseFastYaml(text, limits.maxDepth);
    return fast === undefined ? parseFullYaml(text, limits) : fast.value;
  });
}

/**
 * Reads one YAML document as `parseYaml` does, and keeps where its keys and items stand, which keys are
 * duplicate and whether another document follows: for files that people write by hand. Throws YamlError.
 */
export function parseYamlWithPlaces(text: string, options: YamlLimits = {}): PlacedYaml {
  return withinStack(options, (limits) => parseFullYamlWithPlaces(text, limits));
}

function withinStack<T>(options: YamlLimits, read: (limits: Required<YamlLimits>) => T): T {
  const maxAliases = options.maxAliases ?? 10_000;
  const maxDepth = options.maxDepth ?? 1_000;
  try {
    return read({ maxAliases, maxDepth });
  } catch (error) {
    // A caller may have asked for more levels than the stack holds.
    if (error instanceof RangeError) throw new YamlError('yaml: nested too deeply');
    throw error;
  }
}
