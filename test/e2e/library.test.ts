import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { projectRoot, useSandbox } from '../support/command-line.js';
import { startFaultRegistry } from '../support/fault-registry.js';
import { widgetCatalog } from './catalogs.js';
import { makeCatalogImage, serveBuilt } from './images.js';

const sandbox = useSandbox();

/** Runs a program that imports `opmate` as a dependent package does. */
async function runProgram(args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const env = sandbox.environment({ PATH: process.env['PATH'] }) as NodeJS.ProcessEnv;
  return promisify(execFile)(process.execPath, args, { cwd: projectRoot, env });
}

describe('the library', () => {
  it('renders, validates and lists as in the example', async () => {
    const example = path.join(projectRoot, 'docs/examples/render-and-validate.js');
    const { stdout, stderr } = await runProgram([example]);
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toEqual([
      'the catalog is valid',
      'skupper-operator stable skupper-operator.v1.8.2 replaces nothing',
      'skupper-operator stable skupper-operator.v1.8.3 replaces skupper-operator.v1.8.2',
      'skupper-operator stable skupper-operator.v1.8.4 replaces skupper-operator.v1.8.3',
      'skupper-operator stable skupper-operator.v1.9.0 replaces skupper-operator.v1.8.4',
      'olm.package skupper-operator',
      'olm.channel stable',
      ...['1.8.2', '1.8.3', '1.8.4', '1.9.0'].map((version) => `olm.bundle skupper-operator.v${version}`),
      '',
    ]);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('adds bundles to an index and lists its contents as in the example', async () => {
    const { stdout, stderr } = await runProgram([path.join(projectRoot, 'docs/examples/edit-index.js')]);
    expect(stderr).toBe('');
    const [added, ...images] = stdout.trimEnd().split('\n');
    const versions = ['1.8.2', '1.8.3', '1.8.4', '1.9.0'];
    expect(added).toBe(`added ${versions.map((version) => `skupper-operator.v${version}`).join(', ')}`);
    expect(images).toHaveLength(7);
    expect(images).toEqual([...images].sort());
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('never prints', async () => {
    const registry = await startFaultRegistry();
    try {
      serveBuilt(registry, 'ns/widget', 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
      registry.on({ path: /\/manifests\/v1$/, times: 1, respond: { status: 503 } });
      const program = `
        import { openSession, render, validate, loadCatalog, drawGraph } from 'opmate';
        let writes = 0;
        for (const stream of [process.stdout, process.stderr]) {
          const write = stream.write.bind(stream);
          stream.write = (...args) => (writes++, write(...args));
        }
        const session = await openSession({
          environment: { OPMATE_CACHE_DIR: '/dev/null/none' }, homeDirectory: '/nonexistent',
          temporaryDirectory: ${JSON.stringify(sandbox.temporary)}, architecture: 'arm64',
          registry: { useHttp: true },
        });
        const image = '${registry.host}/ns/widget:v1';
        let size = 0;
        for await (const piece of render([image, 'fixtures/bundles/microcks/0.3.0'], session)) size += piece.length;
        const { passed } = await validate(image, session);
        const catalog = await loadCatalog(image, session);
        const pieces = [...drawGraph(await catalog.facts(), {}).text].length;
        await catalog.close();
        const codes = [];
        for (const bad of ['nowhere', 'oci:nowhere', 'fixtures/bundles/microcks/0.3.0', '${registry.host}/ns/none:v1']) {
          await validate(bad, session).catch((error) => codes.push(error.code));
        }
        await session.close();
        const before = writes;
        console.log(JSON.stringify({ writes: before, size: size > 1000, passed, pieces: pieces > 0, codes }));
      `;
      const { stdout, stderr } = await runProgram(['--input-type=module', '-e', program]);
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toEqual({
        writes: 0,
        size: true,
        passed: true,
        pieces: true,
        codes: ['NOT_FOUND', 'NOT_FOUND', 'UNSUPPORTED', 'NOT_FOUND'],
      });
      expect(await sandbox.leftovers()).toEqual([]);
    } finally {
      await registry.close();
    }
  });
});
