import { rmSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { compare, opmate } from './support/measure.js';

export const summary =
  'start-up: help, version, wrong usage, validate of a small catalog, render of one bundle, as ratios to an empty script';

const catalog = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
  { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1.0.0' }] },
  {
    schema: 'olm.bundle',
    package: 'widget',
    name: 'widget.v1.0.0',
    image: 'example.com/widget:v1',
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } }],
  },
];

export async function run() {
  const nothing = fileURLToPath(new URL('./support/nothing.js', import.meta.url));
  const bundle = fileURLToPath(new URL('../fixtures/bundles/microcks/0.2.1', import.meta.url));
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  writeFileSync(
    path.join(directory, 'catalog.json'),
    catalog.map((blob) => `${JSON.stringify(blob)}\n`).join(''),
  );
  const commands = [
    ['--version', 1.3, ['--version']],
    ['--help', 1.3, ['--help']],
    ['help of mirror', 1.3, ['mirror', '--help']],
    ['completion of bash', 1.3, ['completion', 'bash']],
    ['version', 1.3, ['version']],
    ['unknown command', 1.5, ['none'], 2],
    ['unknown option', 1.6, ['render', '--none'], 2],
    ['mirror plan without arguments', 2.1, ['mirror', 'plan'], 2],
    ['validate of a small catalog', 2, ['validate', directory]],
    ['render of one bundle', 2, ['render', bundle, '--alpha-image-ref-template', 'example.com/b:v1']],
  ];
  let isGood = true;
  for (const [name, maxRatio, args, exitCode = 0] of commands) {
    const result = await compare({
      name,
      subject: [opmate, args, {}, exitCode],
      baseline: [nothing, []],
      runs: 20,
      maxRatio,
    });
    isGood &&= result !== false;
  }
  rmSync(directory, { recursive: true, force: true });
  return isGood;
}
