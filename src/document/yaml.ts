import type { JsonValue } from './json.js';
import { YamlError } from './yaml/error.js';
import { parseFastYaml } from './yaml/fast.js';
import { type PlacedYaml, parseFullYaml, parseFullYamlWithPlaces } from './yaml/full.js';

export { encodeYaml } from './yaml/encode.js';
export { YamlError };

/** Limits of one document. */
interface YamlLimits {
  /** Maximum number of aliases (`*name`); default: 10,000. */
  maxAliases?: number;
  /** Maximum nesting of mappings and sequences; default: 1,000. */
  maxDepth?: number;
}

/**
 * Reads one YAML document like Go's sigs.k8s.io/yaml (YAML 1.1, go-yaml 2).
 *
 * `yes`, `on`, `y` and the like are booleans; `017`, `0x1F`, `0b1`, `1_000` are integers, exact to 64 bits;
 * timestamps stay text; the last duplicate key takes precedence; `<<` merges; numeric and boolean keys become text.
 * Keys keep the order of the text. Empty text is null. Documents after the first are ignored. Texts of 13 characters
 * and more may be slices that keep the whole `text` in memory: copy what outlives it.
 *
 * Throws YamlError for what Go rejects (null keys, `.inf` and `.nan` included) and for exceeded limits. Accepts `\/`
 * and surrogate pairs in double quotes, as JSON has them, although Go rejects both.
 */
export function parseYaml(text: string, options: YamlLimits = {}): JsonValue {
  return withinLimits(text, options, (limits) => {
    const fast = parseFastYaml(text, limits.maxDepth);
    return fast === undefined ? parseFullYaml(text, limits) : fast.value;
  });
}

/**
 * Reads one YAML document like `parseYaml`, with the places of keys and items, duplicate keys and a further document:
 * for hand-written files. Throws YamlError.
 */
export function parseYamlWithPlaces(text: string, options: YamlLimits = {}): PlacedYaml {
  return withinLimits(text, options, (limits) => parseFullYamlWithPlaces(text, limits));
}

function withinLimits<T>(text: string, options: YamlLimits, read: (limits: Required<YamlLimits>) => T): T {
  const maxAliases = options.maxAliases ?? 10_000;
  const maxDepth = options.maxDepth ?? 1_000;
  try {
    return read({ maxAliases, maxDepth });
  } catch (error) {
    // `maxDepth` may exceed what the stack holds.
    if (error instanceof RangeError) throw new YamlError('yaml: nested too deeply');
    if (!(error instanceof YamlError) || error.line === undefined) throw error;
    // What is open at the end is reported behind it.
    const lastLine = text.trimEnd().split('\n').length;
    throw error.line <= lastLine ? error : new YamlError(error.message, lastLine, error.withoutLine);
  }
}
