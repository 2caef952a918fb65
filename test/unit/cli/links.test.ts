import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { run } from '../../../src/cli/main.js';
import { inDirectory, smallBundle } from '../../support/small-bundle.js';
import { directoryWith } from '../../support/temporary.js';
import { createWorld } from './world.js';

const canary = 'canary-of-the-runner';
let work: string;

beforeEach(async () => {
  work = await directoryWith({
    'secret.yaml': `kind: Config\nusers:\n- name: ${canary}\n`,
    'secret.txt': `${canary}\n`,
    'catalog/catalog.yaml': 'schema: olm.package\nname: widget\n',
    'rules/catalog.yaml': 'schema: olm.package\nname: widget\n',
    'plain/manifests/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n',
    ...inDirectory('bundle', smallBundle()),
    ...inDirectory('parts/elsewhere', smallBundle()),
    'parts/bundle/metadata/annotations.yaml': smallBundle()['metadata/annotations.yaml'] as string,
    ...inDirectory('tree', { 'widget/1.0.0/csv.yaml': smallBundle()['manifests/csv.yaml'] as string }),
    'tree/widget/package.yaml': 'packageName: widget\nchannels:\n- name: a\n  currentCSV: widget.v1.0.0\n',
    'chart/Chart.yaml': 'apiVersion: v2\nname: widget\nversion: 1.0.0\n',
    'chart/templates/a.yaml': '',
    'secrets/a.yaml': '',
  });
  const links: Record<string, string> = {
    'catalog/linked.yaml': '../secret.yaml',
    'rules/.indexignore': '../secret.txt',
    'bundle/manifests/linked.yaml': '../../secret.yaml',
    'parts/bundle/manifests': '../elsewhere/manifests',
    'plain/manifests/linked.yaml': '../../secret.yaml',
    'tree/widget/1.0.0/linked.yaml': '../../../secret.yaml',
    'chart/templates/linked.yaml': '../../secret.yaml',
    'secrets/linked.yaml': '../secret.yaml',
  };
  for (const [name, target] of Object.entries(links)) await symlink(target, path.join(work, name));
});

async function opmate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const at = (arg: string): string => arg.replace(/^@/, `${work}/`);
  const world = createWorld({ workingDirectory: work, temporaryDirectory: work });
  const code = await run(args.map(at), world);
  return { code, stdout: world.stdout.text, stderr: world.stderr.text };
}

const install = ['--install-namespace', 'widget-system'];

const readers: [what: string, args: string[], link: string][] = [
  ['render of a catalog', ['render', '@catalog'], 'catalog/linked.yaml'],
  ['validate', ['validate', '@catalog'], 'catalog/linked.yaml'],
  ['validate -o json', ['validate', '@catalog', '-o', 'json'], 'catalog/linked.yaml'],
  ['list', ['list', 'packages', '@catalog'], 'catalog/linked.yaml'],
  ['rules of .indexignore', ['validate', '@rules'], 'rules/.indexignore'],
  ['catalog doctor', ['catalog', 'doctor', '@catalog'], 'catalog/linked.yaml'],
  ['render of a bundle', ['render', '@bundle'], 'bundle/manifests/linked.yaml'],
  ['bundle validate', ['bundle', 'validate', '@bundle'], 'bundle/manifests/linked.yaml'],
  ['bundle validate of a linked part', ['bundle', 'validate', '@parts/bundle'], 'parts/bundle/manifests'],
  ['bundle extract', ['bundle', 'extract', '@bundle', '-c', 'a'], 'bundle/manifests/linked.yaml'],
  ['bundle show', ['bundle', 'show', '@bundle'], 'bundle/manifests/linked.yaml'],
  ['bundle unpack', ['bundle', 'unpack', '@bundle', '-o', '@out'], 'bundle/manifests/linked.yaml'],
  ['bundle render', ['bundle', 'render', '@plain', '--format', 'plain'], 'plain/manifests/linked.yaml'],
  ['a chart', ['bundle', 'render', '@chart', '--format', 'helm', ...install], 'chart/templates/linked.yaml'],
  ['registry init', ['registry', 'init', '--manifests', '@tree', '-o', '@a.db'], '1.0.0/linked.yaml'],
  ['registry add', ['registry', 'add', '-b', '@bundle', '-d', '@a.db'], 'bundle/manifests/linked.yaml'],
  [
    'a directory of Secrets',
    ['bundle', 'render', '--secrets', '@secrets', '--secret', 'a', 'https://127.0.0.1:1/a.tgz', ...install],
    'secrets/linked.yaml',
  ],
];

describe('cli: links that lead out of a directory', () => {
  it.each(readers)('are refused by %s, and not read', async (_what, args, link) => {
    const { code, stdout, stderr } = await opmate(...args);
    expect(code).not.toBe(0);
    expect(stdout + stderr).toContain(link);
    expect(stdout + stderr).toMatch(/links to \\*".*secret|links to \\*".*elsewhere/);
    expect(stdout + stderr).not.toContain(canary);
  });

  it('are followed where the user says so', async () => {
    const { code, stdout } = await opmate('bundle', 'extract', '@bundle', '-c', 'a', '--follow-links');
    expect({ code, text: stdout.includes(canary) }).toEqual({ code: 0, text: true });
    expect((await opmate('bundle', 'validate', '@parts/bundle', '--follow-links')).stderr).not.toContain(
      'links to',
    );
  });

  it('show nothing of a file that is no part of a catalog', async () => {
    const { code, stderr } = await opmate('validate', '@catalog', '--follow-links');
    expect(code).toBe(1);
    expect(stderr).toContain('catalog/linked.yaml: not a file of a catalog');
    expect(stderr).not.toContain(canary);
  });

  it.each([
    ['bundle validate', ['bundle', 'validate', '@quoted']],
    ['bundle show', ['bundle', 'show', '@quoted']],
    ['render', ['render', '@quoted']],
    ['bundle render', ['bundle', 'render', '@quoted', ...install]],
    ['bundle render of plain manifests', ['bundle', 'render', '@odd', '--format', 'plain']],
    ['registry init', ['registry', 'init', '--manifests', '@oddtree', '-o', '@b.db']],
  ])('are followed without quoting what is no manifest: %s', async (_what, args) => {
    const alias = 'a: *canary-of-the-runner\n';
    const csv = smallBundle()['manifests/csv.yaml'] as string;
    await Promise.all(
      Object.entries({
        'alias.yaml': alias,
        ...inDirectory('quoted', smallBundle()),
        'odd/manifests/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n',
        'oddtree/widget/1.0.0/csv.yaml': csv,
        'oddtree/widget/package.yaml':
          'packageName: widget\nchannels:\n- name: a\n  currentCSV: widget.v1.0.0\n',
      }).map(async ([name, text]) => {
        await mkdir(path.dirname(path.join(work, name)), { recursive: true });
        await writeFile(path.join(work, name), text);
      }),
    );
    for (const link of ['quoted/manifests', 'odd/manifests', 'oddtree/widget/1.0.0']) {
      await symlink(path.join(work, 'alias.yaml'), path.join(work, link, 'linked.yaml'));
    }
    const { code, stdout, stderr } = await opmate(...args, '--follow-links');
    expect(code).not.toBe(0);
    expect(stdout + stderr).toMatch(/linked\.yaml(:1)?: not a manifest/);
    expect(stdout + stderr).not.toContain(canary);
  });

  it('stay what they are within it', async () => {
    const directory = await directoryWith({ 'real/catalog.yaml': 'schema: olm.package\nname: widget\n' });
    await symlink('real/catalog.yaml', path.join(directory, 'again.yaml'));
    await symlink(directory, path.join(work, 'named'));
    const { stdout } = await opmate('render', '@named', '-o', 'yaml');
    expect(stdout.match(/name: widget/g)).toHaveLength(2);
  });
});

describe('cli: validate', () => {
  it('shows no credentials of what it quotes', async () => {
    const directory = await directoryWith({ 'a.json': '{"auths":{"r.io":{"auth":"czNjcjN0OnBhc3M="}}}' });
    for (const output of [[], ['-o', 'json'], ['-o', 'yaml']]) {
      const { code, stdout, stderr } = await opmate('validate', directory, ...output);
      expect(code).toBe(1);
      expect(stdout + stderr).toContain('missing root schema field');
      expect(stdout + stderr).not.toContain('czNjcjN0OnBhc3M');
    }
  });
});
