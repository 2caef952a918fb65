/** Programs that stand in for others, found through PATH. */
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import type { ProgramOptions, ProgramSession } from '../../../../src/bundle/plain/external-format.js';
import { directoryWith } from '../../../support/temporary.js';

/** A directory with these shell scripts, to be put on PATH. */
export async function directoryWithPrograms(scripts: Record<string, string>): Promise<string> {
  const files = Object.entries(scripts).map(([name, script]) => [name, `#!/bin/sh\n${script}\n`]);
  const directory = await directoryWith(Object.fromEntries(files) as Record<string, string>);
  for (const name of Object.keys(scripts)) await chmod(path.join(directory, name), 0o755);
  return directory;
}

/** A session and options for rendering with these scripts on PATH. */
export async function withPrograms(
  scripts: Record<string, string>,
  options: Partial<ProgramOptions & ProgramSession> = {},
): Promise<ProgramOptions & ProgramSession> {
  const programs = await directoryWithPrograms(scripts);
  return {
    name: 'widget',
    installNamespace: 'here',
    environment: { PATH: `${programs}:/usr/bin:/bin`, SECRET_TOKEN: 'hidden' },
    temporaryDirectory: await directoryWith(),
    now: () => new Date(0),
    ...options,
  };
}
