import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../../../src/cli/main.js';
import { inDirectory, smallBundle } from '../../support/small-bundle.js';
import { directoryWith } from '../../support/temporary.js';
import { createWorld } from './world.js';

async function opmate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const world = createWorld({ temporaryDirectory: await directoryWith() });
  const code = await run(args, world);
  return { code, stdout: world.stdout.text, stderr: world.stderr.text };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe('cli: findings as text', () => {
  it('are limited in bundle validate, with the count of the rest', async () => {
    const directory = await directoryWith({
      ...inDirectory('bundle', smallBundle()),
      ...Object.fromEntries(numbers(150).map((i) => [`bundle/manifests/broken${i}.yaml`, 'a: b: c\n'])),
    });
    const bundle = path.join(directory, 'bundle');
    const { code, stderr } = await opmate('bundle', 'validate', bundle);
    expect(code).toBe(3);
    expect(stderr.match(/broken\d+\.yaml:/g)?.length).toBeLessThan(101);
    const { stdout } = await opmate('bundle', 'validate', bundle, '-o', 'json');
    const { findings } = JSON.parse(stdout) as { findings: unknown[] };
    expect(findings.length).toBeGreaterThan(150);
    expect(stderr).toContain(`… and ${findings.length - 100} more findings`);
    // The bytes of opm are a contract.
    expect((await opmate('alpha', 'bundle', 'validate', '--tag', bundle)).stderr).not.toContain(
      'more findings',
    );
  });

  it('are limited in catalog doctor, with the count of the rest', async () => {
    const blobs = numbers(120).map((i) => ({ schema: 'olm.package', name: `p${i}`, defaultChannel: 'a' }));
    const directory = await directoryWith({ 'a.json': blobs.map((blob) => JSON.stringify(blob)).join('\n') });
    const { code, stdout } = await opmate('catalog', 'doctor', directory);
    expect(code).toBe(3);
    expect(stdout.match(/^p\d+$/gm)).toHaveLength(100);
    expect(stdout).toMatch(/^… and \d+ more findings in other packages; -o json shows all$/m);
  });

  it('show a last finding rather than count it', async () => {
    const findingsOf = async (amount: number): Promise<string> => {
      const bundles = numbers(amount).map((i) => ({
        schema: 'olm.bundle',
        package: 'p',
        name: `p.v${i}.0.0`,
        image: `example.com/p:v${i}`,
        properties: [{ type: 'olm.package', value: { packageName: 'p', version: `${i}.0.0` } }],
      }));
      const blobs = [{ schema: 'olm.package', name: 'p', defaultChannel: 'a' }, ...bundles];
      const directory = await directoryWith({
        'a.json': blobs.map((blob) => JSON.stringify(blob)).join('\n'),
      });
      return (await opmate('catalog', 'doctor', directory)).stdout;
    };
    expect((await findingsOf(4)).match(/bundle-image-tag: "/g)).toHaveLength(4);
    expect(await findingsOf(5)).toContain('bundle-image-tag: 2 more findings; -o json shows all');
  });

  it('leave ranges with too many links of a template to one node each, unless as opm', async () => {
    const names = numbers(120).map((i) => `p.v0.0.${i}`);
    const template = {
      schema: 'olm.template.substitutes',
      entries: [
        { schema: 'olm.package', name: 'p', defaultChannel: 'a' },
        {
          schema: 'olm.channel',
          package: 'p',
          name: 'a',
          entries: names.map((name, i) => ({
            name,
            ...(i > 0 && { replaces: names[i - 1], skipRange: `<0.0.${i}` }),
          })),
        },
        ...names.map((name, i) => ({
          schema: 'olm.bundle',
          package: 'p',
          name,
          image: `quay.io/p/p:v0.0.${i}`,
          properties: [{ type: 'olm.package', value: { packageName: 'p', version: `0.0.${i}` } }],
        })),
      ],
      substitutions: [],
    };
    const file = path.join(await directoryWith({ 't.json': JSON.stringify(template) }), 't.json');
    const drawn = await opmate('template', 'render', file, '-o', 'mermaid');
    const asOpm = await opmate('alpha', 'render-template', file, '-o', 'mermaid');
    expect(drawn.stderr).toContain('drawing each SkipRange as one node');
    expect(drawn.stdout.length).toBeLessThan(asOpm.stdout.length / 5);
  });
});
