import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import { load } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundlesDirectory, projectRoot, useSandbox } from '../support/command-line.js';
import { caseOf, widgetCatalog } from './catalogs.js';
import { rawTar } from '../support/tar.js';
import { makeCatalogImage, storeImage } from './images.js';

const sandbox = useSandbox();
const schemaFile = path.join(projectRoot, 'schemas', 'validate-output.schema.json');
const matchesSchema = new Ajv().compile(JSON.parse(readFileSync(schemaFile, 'utf8')) as object);

interface Verdict {
  passed: boolean;
  error?: { message: string };
  problems?: { message: string; file?: string; line?: number; hint?: string }[];
}

beforeAll(async () => {
  await sandbox.write({
    'valid/catalog.json': widgetCatalog,
    'cycle/catalog.json': caseOf('cycle').catalog,
    'heads/catalog.json': caseOf('two-heads').catalog,
    'unreadable/a.json': '{"schema":"olm.package",\n"name":3}\n',
    'unreadable/b.yaml': 'schema: olm.package\nname: [\n',
    'unreadable/c.json': '{"schema":"olm.package"\n',
  });
});

describe('opmate validate', () => {
  it.each([
    ['character device', { flag: '3' }, 'c/b.json: a device, pipe or socket'],
    ['block device', { flag: '4' }, 'c/b.json: a device, pipe or socket'],
    ['pipe', { flag: '6' }, 'c/b.json: a device, pipe or socket'],
    ['dangling link', { flag: '2', linkName: 'gone.json' }, 'c/b.json: symbolic link to "gone.json"'],
    [
      'link out of the archive',
      { flag: '2', linkName: '/etc/hosts' },
      'c/b.json: symbolic link to "/etc/hosts"',
    ],
  ])('refuses an archive in which a file of the catalog is a %s', async (_, entry, problem) => {
    const files = [
      { name: 'c/a.json', content: widgetCatalog },
      { name: 'c/b.json', ...entry },
    ];
    await sandbox.write({ 'catalog.tar': rawTar(files) });
    for (const command of ['validate', 'render']) {
      expect(await sandbox.run([command, 'catalog.tar'])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining(problem) as string,
      });
    }
  });

  it('prints nothing for a valid catalog', async () => {
    expect(await sandbox.run(['validate', 'valid'])).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it.each(['cycle', 'two-heads', 'version-dup', 'no-package', 'deprecation-unknown-channel'])(
    'says what opm says of a catalog with a fault (%s), and the place of every problem',
    async (name) => {
      const { catalog, message } = caseOf(name);
      await sandbox.write({ [`${name}/catalog.json`]: catalog });
      const { code, stdout, stderr } = await sandbox.run(['validate', name]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      const lines = stderr.split('\n');
      const own = message.trimEnd().split('\n');
      expect(lines.filter((line) => own.includes(line))).toEqual(own);
      expect(stderr).toMatch(new RegExp(`(?:^error:|^ +at) ${name}/catalog\\.json:\\d+(?::|$)`, 'm'));
      // Each problem is said once.
      const said = lines.filter((line) => line !== '');
      expect(new Set(said).size).toBe(said.length);
    },
  );

  it('prints a hint', async () => {
    const { stderr } = await sandbox.run(['validate', 'cycle']);
    expect(stderr).toMatch(
      /^ +hint: remove "widget\.v1\.3\.0", the newest entry, from replaces of "widget\.v1\.0\.0"$/m,
    );
  });

  it('reports every unreadable file in one run', async () => {
    const { code, stderr } = await sandbox.run(['validate', 'unreadable']);
    expect(code).toBe(1);
    for (const file of ['a.json:', 'b.yaml:', 'c.json:']) expect(stderr).toContain(`unreadable/${file}`);
  });

  it.each(['valid', 'cycle', 'heads', 'unreadable'])(
    'writes its verdict on %s as data that keeps to the schema',
    async (name) => {
      const json = await sandbox.run(['validate', name, '-o', 'json']);
      const yaml = await sandbox.run(['validate', name, '--output=yaml']);
      const verdict = JSON.parse(json.stdout) as Verdict;
      expect(matchesSchema(verdict), JSON.stringify(matchesSchema.errors)).toBe(true);
      expect(load(yaml.stdout)).toEqual(verdict);
      expect([json.code, yaml.code, json.stderr, yaml.stderr]).toEqual(
        verdict.passed ? [0, 0, '', ''] : [1, 1, '', ''],
      );
      expect(verdict.passed).toBe(name === 'valid');
      for (const problem of verdict.problems ?? []) {
        expect(problem.file).toMatch(new RegExp(`^${name}/`));
        expect(problem.line).toBeGreaterThan(0);
      }
    },
  );

  it('prints with -o text the same text to stdout as to stderr without', async () => {
    const plain = await sandbox.run(['validate', 'cycle']);
    const text = await sandbox.run(['validate', 'cycle', '-o', 'text']);
    expect(text).toEqual({ code: 1, stdout: plain.stderr, stderr: '' });
    expect(await sandbox.run(['validate', 'valid', '-o', 'text'])).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });

  it.each([
    [['valid', '-o', 'xml'], 'invalid --output value "xml", expected (text|json|yaml|sarif|junit|github)'],
    [['nowhere'], 'nowhere: no such file or directory'],
    [['valid/catalog.json'], '"valid/catalog.json" is not a directory'],
    [
      [path.join(bundlesDirectory, 'microcks/0.3.0')],
      'is a bundle, not a catalog\nhint: check a bundle with opmate bundle validate\n',
    ],
    [[], 'missing required argument "catalog"'],
    [['valid', 'cycle'], 'unexpected argument "cycle"'],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await sandbox.run(['validate', ...args]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('checks the catalog of an image, and names the file', async () => {
    const image = await makeCatalogImage({ 'widget/catalog.json': caseOf('cycle').catalog });
    await storeImage(path.join(sandbox.work, 'layout'), 'v1', image);
    const { code, stderr } = await sandbox.run(['validate', 'oci:layout:v1']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^ +at oci:layout:v1\/configs\/widget\/catalog\.json:3$/m);
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
