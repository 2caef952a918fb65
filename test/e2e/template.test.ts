import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { smallBundle } from '../support/small-bundle.js';
import { makeImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
let registry: FaultRegistry;

beforeAll(async () => {
  registry = await startFaultRegistry();
  const labels = { 'operators.operatorframework.io.bundle.package.v1': 'widget' };
  for (const version of ['1.0.0', '1.1.0']) {
    const image = await makeImage({ files: smallBundle({ version }), labels });
    serveBuilt(registry, 'ns/widget', `v${version}`, image);
  }
  const image = (version: string): string => `${registry.host}/ns/widget:v${version}`;
  const basic = (channel: string): string =>
    'schema: olm.template.basic\nentries:\n- {schema: olm.package, name: widget, defaultChannel: stable}\n' +
    `- {schema: olm.channel, package: widget, name: ${channel}, entries: [{name: widget.v1.0.0}]}\n` +
    `- {schema: olm.bundle, image: "${image('1.0.0')}"}\n`;
  await sandbox.write({
    'semver.yaml': `schema: olm.semver\nstable:\n  bundles:\n  - image: ${image('1.0.0')}\n  - image: ${image('1.1.0')}\n`,
    'basic.yaml': `${basic('stable')}comment: x\n`,
    'invalid.yaml': basic('other'),
    'missing.yaml': `schema: olm.semver\nfast:\n  bundles:\n  - image: ${image('2')}\n  - image: ${image('3')}\n`,
    'catalog/a.json': { schema: 'olm.bundle', name: 'b', package: 'p', image: 'r/b:1' },
    'broken.json': '{"schema":"olm.bundle","image":5}\n{"schema":"olm.package","name":5}\n',
  });
});

afterAll(() => registry.close());

/** `opmate template render ARGS`, or as `opm` has it. */
const render = (args: string[], stdin?: string) =>
  sandbox.run(['template', 'render', '--use-http', ...args], stdin === undefined ? {} : { stdin });
const renderAsOpm = (args: string[]) => sandbox.run(['alpha', 'render-template', '--use-http', ...args]);

const fileOf = (name: string): string => readFileSync(path.join(sandbox.work, name), 'utf8');

describe('opmate template render', () => {
  it('writes the same from a file and from stdin, with a type or without', async () => {
    const first = await renderAsOpm(['semver.yaml', '-o', 'yaml']);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toContain('defaultChannel: stable-v1.1\n');
    const stdin = fileOf('semver.yaml');
    for (const args of [[], ['semver'], ['-'], ['semver', '-']]) {
      const again = await render([...args, '-o', 'yaml'], stdin);
      expect(again).toEqual(first);
    }
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('draws the graph with bundles that OLM v0 cannot reach', async () => {
    const { code, stdout } = await renderAsOpm(['semver.yaml', '-o', 'mermaid']);
    expect(code).toBe(0);
    expect(stdout).toContain('subgraph widget-stable-v1.1["stable-v1.1"]');
    expect(stdout).toContain('-- replace -->');
  });

  it('warns about keys without effect, and about an invalid catalog unless opm compatible', async () => {
    const known = await render(['basic.yaml']);
    expect(known.code).toBe(0);
    expect(known.stderr).toContain('basic.yaml:6: unknown key "comment" has no effect');
    const own = await render(['invalid.yaml']);
    const plain = await renderAsOpm(['invalid.yaml']);
    expect(own.stderr).toMatch(/^warn: invalid\.yaml:\d+: the catalog is not valid: /m);
    expect(plain).toEqual({ code: 0, stdout: own.stdout, stderr: '' });
  });

  it('reports progress by the number of images', async () => {
    const { code, stderr } = await render(['semver.yaml', '--log-format', 'json']);
    expect(code).toBe(0);
    const events = stderr
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { progress?: Record<string, unknown> }).progress)
      .filter((progress) => progress?.['task'] === 'render semver.yaml');
    const total = events[0]?.['total'];
    expect(total).toBeGreaterThan(0);
    expect(events.map((event) => [event?.['state'], event?.['current']])).toEqual([
      ...Array.from({ length: Number(total) + 1 }, (_, current) => ['update', current]),
      ['done', undefined],
    ]);
  });

  it('lists every missing image, and writes nothing', async () => {
    const { code, stdout, stderr } = await render(['missing.yaml']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: missing\.yaml:4: .*ns\/widget:v2": not found$/m);
    expect(stderr).toMatch(/^error: missing\.yaml:5: .*ns\/widget:v3": not found$/m);
  });

  it('reports the location of an inline bundle, and suggests the type of a basic template', async () => {
    await sandbox.write({
      'whole.yaml': `schema: olm.template.basic\nentries:\n- {schema: olm.bundle, name: x}\n`,
    });
    const { stderr } = await render(['whole.yaml']);
    expect(stderr).toMatch(
      /^error: rendering template: unexpected fields present in basic template bundle\nat: whole\.yaml:3\n/,
    );
  });

  it.each([
    [['foo', 'semver.yaml'], 'invalid template type "foo", must be one of: [basic semver substitutes]'],
    [['semver.yaml', '-o', 'xml'], 'invalid --output value "xml", expected (json|yaml|mermaid)'],
    [['semver.yaml', '--migrate-level', 'x'], 'unknown migration level "x"'],
  ])('refuses wrong usage with 2, and with 1 where opm does (%#)', async (args, message) => {
    const own = await render(args);
    expect(own.code).toBe(2);
    expect(own.stderr).toContain(message);
    expect((await renderAsOpm(args)).code).toBe(1);
  });

  it('reports a missing file or a directory', async () => {
    for (const [file, problem] of [
      ['none.yaml', 'no such file or directory'],
      ['catalog', 'is a directory'],
    ] as const) {
      const { code, stderr } = await render([file]);
      expect(code).toBe(1);
      expect(stderr).toBe(`error: ${file}: ${problem}\n`);
    }
  });
});

describe('opmate template convert', () => {
  it('creates the same template from a file, a directory and stdin', async () => {
    const expected = { schema: 'olm.template.basic', entries: [{ schema: 'olm.bundle', image: 'r/b:1' }] };
    for (const args of [['catalog/a.json'], ['catalog'], ['-'], []]) {
      const options = { stdin: fileOf('catalog/a.json') };
      const { code, stdout } = await sandbox.run(['alpha', 'convert-template', 'basic', ...args], options);
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toEqual(expected);
    }
  });

  it('lists every unreadable blob', async () => {
    const { code, stdout, stderr } = await sandbox.run(['template', 'convert', 'basic', 'broken.json']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: broken\.json:1: converting: parse bundle: /m);
    expect(stderr).toMatch(
      /^error: broken\.json:2: converting: expected value for key "name" to be a string/m,
    );
  });

  it('names a missing input', async () => {
    const { code, stderr } = await sandbox.run(['alpha', 'convert-template', 'substitutes', 'none']);
    expect(code).toBe(1);
    expect(stderr).toContain('none: no such file or directory');
  });
});
