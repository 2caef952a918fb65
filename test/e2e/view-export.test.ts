import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { isStagingName } from '../../src/files/staging.js';
import { useSandbox } from '../support/command-line.js';
import { catalogOf } from './catalogs.js';

const sandbox = useSandbox();
const packageCount = 30;

beforeAll(async () => {
  const entries = Array.from({ length: 20 }, (_, i) => i);
  const files = Array.from({ length: packageCount }, (_, i) => {
    const name = `widget-${i}`;
    const chain = entries.map((minor) => ({
      name: `${name}.v1.${minor}.0`,
      ...(minor > 0 && { replaces: `${name}.v1.${minor - 1}.0` }),
    }));
    return [`catalog/${name}.json`, catalogOf(name, chain)] as const;
  });
  await sandbox.write(Object.fromEntries(files));
});

describe('opmate view --export', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'ends with 130 on %s while it writes, and leaves nothing',
    async (signal) => {
      const running = sandbox.start(['view', 'catalog', '--export', 'site']);
      const written = async (): Promise<number> => {
        const staging = (await readdir(sandbox.work)).find(isStagingName);
        if (staging === undefined) return 0;
        return (await readdir(path.join(sandbox.work, staging, 'data')).catch(() => [])).length;
      };
      while ((await written()) === 0 && running.child.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 2));
      expect(await running.stop(signal)).toEqual({ code: 130, stdout: '', stderr: 'interrupted\n' });
      expect(await readdir(sandbox.work)).toEqual(['catalog']);
      expect(await sandbox.leftovers()).toEqual([]);
    },
  );

  it('can be repeated where it was interrupted', async () => {
    const { code } = await sandbox.run(['view', 'catalog', '--export', 'site']);
    expect(code).toBe(0);
    expect(await readdir(path.join(sandbox.work, 'site/data'))).toHaveLength(packageCount + 3);
  });
});
