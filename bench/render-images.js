import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { compare, opmate } from './support/measure.js';
import { pushBundles, readBundles, serveRegistry } from './support/registry.js';

export const summary =
  'render of 100 bundle images from a local registry, as a ratio to fetching and unpacking them';

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  const registry = await serveRegistry(work);
  try {
    const references = await pushBundles(registry.host, work, readBundles(100));
    const fetchAll = fileURLToPath(new URL('./support/fetch-images.js', import.meta.url));
    // The goal is 2 s on two cores; fetching the same bytes without reading them takes about a third of that.
    return await compare({
      name: `render of ${references.length} images`,
      subject: [opmate, ['render', '--use-http', ...references]],
      baseline: [fetchAll, [registry.url, ...references]],
      maxRatio: 8,
    });
  } finally {
    registry.stop();
    rmSync(work, { recursive: true, force: true });
  }
}
