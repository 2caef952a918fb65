import { truncate } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkRepository } from '../../../src/api/repo/check-repository.js';
import { renderRepository } from '../../../src/api/repo/render-repository.js';
import { readRepositoryStatus } from '../../../src/api/repo/repository-status.js';
import { failureOf } from '../../support/connect.js';
import {
  ciConfig,
  openRepositoryWorld,
  repositoryWith,
  type RepositoryWorld,
} from '../../support/operator-repository.js';

const file = 'operators/widget/ci.yaml';
const mapping =
  '  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.18], type: olm.template.basic}\n';

/** Returns what rendering, the status and the checks of a repository report about `ci.yaml`. */
async function problemsOf({ session }: RepositoryWorld, text: string): Promise<string[][]> {
  const root = await repositoryWith({ [file]: text });
  const withoutRoot = (message: string): string => message.replaceAll(`${root}/`, '');
  const status = await readRepositoryStatus(root, session);
  const findings = await checkRepository(root, session);
  const rendered = await renderRepository(root, session).then(
    () => [],
    (error: Error) => [withoutRoot(error.message)],
  );
  return [
    rendered,
    status.errors.map(({ message }) => withoutRoot(message)),
    findings
      .filter(({ severity }) => severity === 'error')
      .map(({ file: name = '', line, column, problem }) =>
        withoutRoot(`${name}:${line}:${column}: ${problem}`),
      ),
  ];
}

describe('ci.yaml', () => {
  it('reports a misspelled fbc in each command, with its place', async () => {
    const world = await openRepositoryWorld();
    for (const name of ['fcb', 'FBC', 'fb', 'file_based_catalogs']) {
      const problem = `${file}:2:1: ${name}: unknown field`;
      const problems = await problemsOf(world, `reviewers: [a]\n${name}:\n  enabled: true\n${mapping}`);
      expect(problems, name).toEqual([[problem], [problem], [problem]]);
    }
    const { session } = world;
    const root = await repositoryWith({ [file]: `fcb:\n${mapping}` });
    expect(await failureOf(renderRepository(root, session))).toMatchObject({ hint: 'use "fbc"' });
  });

  it('reports keys of fbc that lack their indentation', async () => {
    const world = await openRepositoryWorld();
    const problems = await problemsOf(world, `fbc:\nenabled: true\ncatalog_mapping: []\n`);
    for (const messages of problems) {
      expect(messages.join('\n')).toContain(`${file}:2:1: enabled: unknown field`);
      expect(messages.join('\n')).toContain(`${file}:3:1: catalog_mapping: unknown field`);
    }
  });

  it('ignores keys of other tools, and names similar to fbc beside it', async () => {
    const world = await openRepositoryWorld();
    for (const text of ['foo: {a: 1}\nenabled: true\n', 'abc: 1\nfbc: {enabled: true}\n', '', 'a: 1\n']) {
      expect(await problemsOf(world, text), text).toEqual([[], [], []]);
    }
  });

  it('reports duplicate keys and further documents in each command', async () => {
    const world = await openRepositoryWorld();
    const text = `fbc:\n  enabled: true\nfbc:\n  enabled: false\n---\nfbc: {}\n`;
    for (const messages of await problemsOf(world, text)) {
      expect(messages.join('\n')).toContain(`${file}:3:1: fbc: duplicate key, first defined on line 1`);
      expect(messages.join('\n')).toContain(`${file}:5:1: unexpected second document`);
    }
  });

  it('warns of catalogs that pipelines do not read, and refuses names that no directory can have', async () => {
    const { session } = await openRepositoryWorld();
    const names = ['4.22', 'V4.18', ' v4.18', 'v4.19', 'nightly'];
    const root = await repositoryWith({ [file]: ciConfig({ 'a.yaml': names }) });
    const findings = await checkRepository(root, session);
    expect(findings.map(({ severity, problem, hint }) => `${severity}: ${problem}: ${hint}`)).toEqual([
      'warning: directory "catalogs/4.22" is not read by pipelines: use v4.22',
      'warning: directory "catalogs/V4.18" is not read by pipelines: use v4.18',
      'warning: directory "catalogs/ v4.18" is not read by pipelines: use v4.18',
    ]);
    for (const name of ['v4.18\n', 'v4.18\u001b[31m', 'v'.repeat(256)]) {
      const broken = await repositoryWith({ [file]: ciConfig({ 'a.yaml': [name] }) });
      expect((await failureOf(renderRepository(broken, session))).message).toContain(
        'catalog_names[0]: expected the name of a catalog directory',
      );
    }
  });

  it('refuses a template of more than 16 MiB before it is read', async () => {
    const { session } = await openRepositoryWorld();
    const templates = 'operators/widget/catalog-templates';
    const root = await repositoryWith({
      [file]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${templates}/a.yaml`]: '',
    });
    await truncate(path.join(root, templates, 'a.yaml'), 2 ** 40);
    expect(await failureOf(renderRepository(root, session))).toMatchObject({
      code: 'LIMIT',
      message: `${path.join(root, templates, 'a.yaml')}: a template of more than 16777216 bytes`,
    });
  });
});
