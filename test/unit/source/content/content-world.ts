import type { ContentOptions, PlacedSource } from '../../../../src/source/content/content.js';
import type { ContentPlace } from '../../../../src/source/place.js';
import type { Workbench } from '../../../support/connect.js';
import { directoryWith } from '../../../support/temporary.js';

/** Options that know nothing of this machine but its programs. */
export async function contentOptions(
  bench: Workbench,
  more: Partial<ContentOptions> = {},
): Promise<ContentOptions> {
  const connection = bench.connect({ useHttp: true, maxAttempts: 1 });
  return {
    connect: () => connection,
    connectAnew: (changes) => Promise.resolve(bench.connect({ useHttp: true, maxAttempts: 1, ...changes })),
    temporaryDirectory: await directoryWith(),
    now: () => new Date('2026-01-01T00:00:00Z'),
    hostPlatform: { os: 'linux', architecture: 'amd64' },
    environment: { PATH: process.env['PATH'], HOME: bench.home },
    ...more,
  };
}

export function placedAt(name: string, source: ContentPlace, destination = ''): PlacedSource {
  return { name, source, destination };
}
