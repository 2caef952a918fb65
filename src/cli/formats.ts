import type { CatalogFormat } from '../model/encode.js';
import { UsageError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';

/** Checks `--output` of commands that write catalogs or records. Throws UsageError. */
export function catalogFormat(output = 'json'): CatalogFormat {
  if (output === 'json' || output === 'yaml') return output;
  throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (json|yaml)`);
}
