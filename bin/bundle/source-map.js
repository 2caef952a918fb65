// The source map of the program: lines of src only, since columns and libraries would make it four times as large.
import { decode, encode } from '@jridgewell/sourcemap-codec';

/**
 * Combines the maps of the three steps of the program: of what esbuild bundled, the index that each line had in it before
 * lines were moved, and of what esbuild minified.
 */
export function combineMaps({ bundled, lines, minified }) {
  const places = decode(bundled.mappings).map((segments) => {
    const [, source, line] = segments.find((segment) => segment.length > 1) ?? [];
    return source === undefined || bundled.sources[source].includes('node_modules/')
      ? undefined
      : { source: bundled.sources[source], line };
  });
  const sources = new Map();
  const indexOf = (source) => {
    if (!sources.has(source)) sources.set(source, sources.size);
    return sources.get(source);
  };
  const mappings = decode(minified.mappings).map((segments) => {
    const kept = [];
    let last;
    for (const [column, , line] of segments) {
      const place = places[lines[line]];
      if (place?.source === last?.source && place?.line === last?.line) continue;
      kept.push(place === undefined ? [column] : [column, indexOf(place.source), place.line, 0]);
      last = place;
    }
    return kept;
  });
  return JSON.stringify({
    version: 3,
    sources: [...sources.keys()],
    names: [],
    mappings: encode(mappings),
  });
}
