import {
  type ContentOptions,
  type OpenedContent,
  type PlacedSource,
  openCombinedContent,
} from '../../../../src/source/content/content.js';
import type { SourceSession } from '../../../../src/source/session.js';
import type { ContentPlace } from '../../../../src/source/place.js';
import type { Workbench } from '../../../support/connect.js';
import { directoryWith } from '../../../support/temporary.js';

/** A session, and how content is opened with it. */
export type Opening = SourceSession & ContentOptions;

export function openWith(sources: readonly PlacedSource[], opening: Opening): Promise<OpenedContent> {
  return openCombinedContent(sources, opening, opening);
}

/** A session that knows nothing of this machine but its programs. */
export async function contentOptions(bench: Workbench, more: Partial<Opening> = {}): Promise<Opening> {
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
