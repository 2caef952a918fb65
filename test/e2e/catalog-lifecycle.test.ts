import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { catalogOf } from './catalogs.js';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();

const lifecycle = (packageName: string, endDate: string, versions = ['1.0']): object => ({
  schema: 'io.openshift.operators.lifecycles.v1alpha1',
  package: packageName,
  versions: versions.map((name) => ({
    name,
    phases: [{ name: 'Full support', startDate: '2026-01-01', endDate }],
    platformCompatibility: [{ name: 'openshift', versions: ['5.0'] }],
  })),
});

const read = (file: string): Promise<string> => readFile(path.join(sandbox.work, file), 'utf8');
let copy = 0;
let directory = '';

beforeEach(async () => {
  directory = `catalog-${copy++}`;
  await sandbox.write({
    [`${directory}/widget/catalog.json`]: catalogOf('widget', [{ name: 'widget.v1.0.0' }]),
    [`${directory}/of-gadget/catalog.yaml`]: catalogOf('gadget', [{ name: 'gadget.v1.0.0' }]),
    'widget.json': lifecycle('widget', '2026-12-31'),
    'both.json': [lifecycle('widget', '2027-12-31'), lifecycle('gadget', '2026-12-31')]
      .map((blob) => JSON.stringify(blob))
      .join('\n'),
  });
});

describe('opmate catalog lifecycle inject', () => {
  it('writes lifecycle.json beside the package, whose name the directory may not have', async () => {
    const { code, stderr } = await sandbox.run(['catalog', 'lifecycle', 'inject', directory, 'both.json']);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(await read(`${directory}/widget/lifecycle.json`))).toMatchObject({ package: 'widget' });
    expect(JSON.parse(await read(`${directory}/of-gadget/lifecycle.json`))).toMatchObject({
      package: 'gadget',
    });
    expect((await sandbox.run(['validate', directory])).code).toBe(0);
    const again = await sandbox.run(['catalog', 'lifecycle', 'inject', directory, 'both.json']);
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).toContain('nothing to change');
  });

  it('refuses all if one differs, unless told to overwrite it', async () => {
    await sandbox.run(['catalog', 'lifecycle', 'inject', directory, 'widget.json']);
    const before = await read(`${directory}/widget/lifecycle.json`);
    const refused = await sandbox.run(['catalog', 'lifecycle', 'inject', directory, 'both.json']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `package "widget" has another lifecycle, in ${directory}/widget/lifecycle.json`,
    );
    expect(await read(`${directory}/widget/lifecycle.json`)).toBe(before);
    expect(await readdir(path.join(sandbox.work, directory, 'of-gadget'))).toEqual(['catalog.yaml']);
    const args = ['catalog', 'lifecycle', 'inject', directory, 'both.json', '--overwrite'];
    expect(await sandbox.run(args)).toMatchObject({ code: 0 });
    expect(await read(`${directory}/widget/lifecycle.json`)).toContain('2027-12-31');
  });

  it('keeps a file of that name that is something else', async () => {
    await sandbox.write({
      [`${directory}/.indexignore`]: 'lifecycle.json\n',
      [`${directory}/widget/lifecycle.json`]: 'mine',
    });
    const { code } = await sandbox.run([
      'catalog',
      'lifecycle',
      'inject',
      directory,
      'widget.json',
      '--overwrite',
    ]);
    expect(code).toBe(1);
    expect(await read(`${directory}/widget/lifecycle.json`)).toBe('mine');
  });

  it('adds nothing below OpenShift 5.0, of which 4.23 is another name', async () => {
    for (const [version, files] of [
      ['4.22', 1],
      ['4.23', 2],
    ] as const) {
      const args = ['catalog', 'lifecycle', 'inject', directory, 'widget.json', '--openshift', version];
      expect(await sandbox.run(args)).toMatchObject({ code: 0 });
      expect(await readdir(path.join(sandbox.work, directory, 'widget'))).toHaveLength(files);
    }
  });

  it('reports all faults of the data with their lines, and writes nothing', async () => {
    await sandbox.write({
      'bad.yaml': [
        'schema: io.openshift.operators.lifecycles.v1alpha1',
        'package: widgets',
        'versions:',
        '- name: "1.0"',
        '  phases:',
        '  - {name: Full support, startDate: 2026-02-30}',
        '---',
        'schema: olm.package',
        'name: widget',
        '',
      ].join('\n'),
      'unknown.json': lifecycle('widgets', '2026-12-31'),
    });
    const { code, stderr } = await sandbox.run([
      'catalog',
      'lifecycle',
      'inject',
      directory,
      'bad.yaml',
      'none.json',
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('bad.yaml:6');
    expect(stderr).toContain('bad.yaml:8');
    expect(stderr).toContain('none.json');
    const unknown = await sandbox.run(['catalog', 'lifecycle', 'inject', directory, 'unknown.json']);
    expect(unknown.stderr).toContain('package "widgets" not found');
    expect(unknown.stderr).toContain('did you mean "widget"?');
    expect(await readdir(path.join(sandbox.work, directory, 'widget'))).toEqual(['catalog.json']);
  });
});

describe('opmate catalog lifecycle check', () => {
  it('reports what is wrong, and what is missing if required', async () => {
    await sandbox.run(['catalog', 'lifecycle', 'inject', directory, 'widget.json']);
    expect(await sandbox.run(['catalog', 'lifecycle', 'check', directory])).toMatchObject({
      code: 0,
      stdout: 'no problems found\n',
    });
    const required = await sandbox.run([
      'catalog',
      'lifecycle',
      'check',
      directory,
      '--require',
      '-o',
      'json',
    ]);
    expect(required.code).toBe(3);
    expect(JSON.parse(required.stdout)).toMatchObject({
      passed: false,
      findings: [{ code: 'lifecycle', problem: 'has no lifecycle blob', package: 'gadget' }],
    });
    await sandbox.write({ [`${directory}/widget/lifecycle.json`]: lifecycle('widget', '2025-01-01') });
    const wrong = await sandbox.run(['catalog', 'lifecycle', 'check', directory, '-o', 'github']);
    expect(wrong.code).toBe(3);
    expect(wrong.stdout).toMatch(/^::warning file=catalog-\d+\/widget\/lifecycle\.json,line=\d+/m);
  });
});

describe('opmate catalog lifecycle diff', () => {
  it('shows versions, phases and platforms that differ', async () => {
    await sandbox.write({
      'newer.json': JSON.stringify(lifecycle('widget', '2026-06-30', ['1.0', '1.1'])),
    });
    const { code, stdout } = await sandbox.run(['catalog', 'lifecycle', 'diff', 'widget.json', 'newer.json']);
    expect(code).toBe(3);
    expect(stdout).toBe(
      [
        'widget',
        '  ~ version 1.0, phase Full support: 2026-01-01..2026-12-31 -> 2026-01-01..2026-06-30',
        '  + version 1.1: Full support 2026-01-01..2026-06-30',
        '',
      ].join('\n'),
    );
    await sandbox.run(['catalog', 'lifecycle', 'inject', directory, 'widget.json']);
    expect(await sandbox.run(['catalog', 'lifecycle', 'diff', directory, 'widget.json'])).toMatchObject({
      code: 0,
      stdout: 'no differences\n',
    });
  });
});
