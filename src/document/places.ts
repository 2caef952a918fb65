import type { DocumentPath, TextPosition } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { parseYamlWithPlaces } from './yaml.js';
import type { PlacedYaml } from './yaml/full.js';

/** Returns the first document of a YAML or JSON text with its places; undefined if it does not parse. */
export function findPlaces(text: string): PlacedYaml | undefined {
  try {
    return parseYamlWithPlaces(text);
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

/** Returns the place of a path, or of its nearest parent. */
export function nearestPlace(document: PlacedYaml, path: DocumentPath): TextPosition | undefined {
  for (let length = path.length; length > 0; length--) {
    const place = document.findPlace(path.slice(0, length));
    if (place !== undefined) return place;
  }
  return undefined;
}
