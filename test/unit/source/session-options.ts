import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { SessionOptions } from '../../../src/source/session.js';
import { directoryWith } from '../../support/temporary.js';

/** Options of a session that knows nothing of this machine; its temporary directory is told too. */
export async function sessionOptions(
  more: Partial<SessionOptions> = {},
): Promise<SessionOptions & { temporaryDirectory: string }> {
  const root = await directoryWith({ 'registries.conf': '' });
  const temporaryDirectory = path.join(root, 'temporary');
  await mkdir(temporaryDirectory);
  return {
    homeDirectory: root,
    temporaryDirectory,
    architecture: 'x64',
    registry: { useHttp: true, retryTimeoutMs: 2000 },
    ...more,
    environment: { CONTAINERS_REGISTRIES_CONF: path.join(root, 'registries.conf'), ...more.environment },
  };
}
