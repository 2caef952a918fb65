import type { MetasQuery } from '../catalogs/content-index.js';
import { checkParameters } from './exchange.js';

/** Reads a `metas` query, the first value of each key. Throws Refusal for keys other than these and `others`. */
export function readMetasQuery(parameters: URLSearchParams, others: readonly string[] = []): MetasQuery {
  checkParameters(parameters, ['schema', 'package', 'name', ...others]);
  return {
    schema: parameters.get('schema') ?? '',
    package: parameters.get('package') ?? '',
    name: parameters.get('name') ?? '',
  };
}
