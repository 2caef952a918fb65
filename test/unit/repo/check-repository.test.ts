import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/core/log.js';
import { checkRepository } from '../../../src/api/repo/check-repository.js';
import { readRepositoryChanges } from '../../../src/api/repo/repository-changes.js';
import { failureOf } from '../../support/connect.js';
import {
  bundleInCheckout,
  ciConfig,
  openRepositoryWorld,
  repositoryWith,
} from '../../support/operator-repository.js';

describe('repository checks', () => {
  it('reports findings with the names of operator-pipelines, file, line and hint', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      'operators/widget/ci.yaml': 'updateGraph: replaces-mod\nreviewers: []\n',
    });
    const findings = await checkRepository(root, session);
    expect(findings).toContainEqual(
      expect.objectContaining({
        code: 'check_schema_operator_ci_config',
        severity: 'error',
        problem: 'updateGraph: unsupported value "replaces-mod"',
        hint: 'use "replaces-mode"',
        file: path.join(root, 'operators/widget/ci.yaml'),
        line: 1,
      }),
    );
    expect(findings.filter(({ code }) => code === 'check_schema_operator_ci_config')).toHaveLength(2);
    const skip = ['check_schema_operator_ci_config', 'check_ci_upgrade_graph'];
    expect(await checkRepository(root, session, { skip })).toEqual([]);
  });

  it('passes a bundle that is not there, as one that a change deletes', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      'operators/widget/1.0.0/manifests/csv.yaml': '',
      'operators/widget/1.0.0/metadata/annotations.yaml': '',
    });
    const lines: string[] = [];
    const logger = {
      ...silentLogger,
      log: (level: string, message: string) => void lines.push(`${level}: ${message}`),
    };
    const logged = { ...session, logger };
    const findings = await checkRepository(root, logged, { names: ['widget/1.0.1', 'widget/1.0.0'] });
    expect(JSON.stringify(findings)).not.toContain('1.0.1');
    const place = path.join(root, 'operators/widget/1.0.1');
    expect(lines).toEqual([`warn: ${place}: not a bundle, not checked (use a known version: "1.0.0")`]);
    expect(await failureOf(checkRepository(root, session, { names: ['widget/'] }))).toMatchObject({
      code: 'USAGE',
    });
  });

  it('refuses a catalog that the repository lacks, with those that it has', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      'operators/widget/ci.yaml': 'updateGraph: semver-mode\n',
      'catalogs/v4.18/widget/catalog.json': '',
      'catalogs/v4.19/widget/catalog.json': '',
    });
    for (const [name, hint] of [
      ['v4.99', 'use one of v4.18, v4.19'],
      ['4.18', 'use "v4.18"'],
    ] as const) {
      expect(await failureOf(checkRepository(root, session, { catalogs: ['v4.18', name] }))).toMatchObject({
        code: 'NOT_FOUND',
        message: `${path.join(root, 'catalogs')}: catalog "${name}" not found`,
        hint,
      });
    }
  });

  it('names the nearest check for an unknown one', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({ 'operators/widget/ci.yaml': 'updateGraph: semver-mode\n' });
    expect(await failureOf(checkRepository(root, session, { skip: ['check_using_fcb'] }))).toMatchObject({
      code: 'USAGE',
      hint: 'did you mean "check_using_fbc"?',
    });
  });

  it('looks at every bundle of a catalog, and ends allowed registries at a component', async () => {
    const { session } = await openRepositoryWorld();
    const bundle = (name: string, image: string, properties: object[]): string =>
      JSON.stringify({ schema: 'olm.bundle', package: 'widget', name, image, properties });
    const identity = { type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } };
    const object = { type: 'olm.bundle.object', value: { data: 'e30=' } };
    const root = await repositoryWith({
      'config.yaml': 'allowed_bundle_registries: [quay.io/good]\n',
      'operators/widget/ci.yaml': ciConfig({ 'a.yaml': ['v4.18'] }),
      'catalogs/v4.18/widget/catalog.json': [
        JSON.stringify({ schema: 'olm.package', name: 'widget', defaultChannel: 'stable' }),
        bundle('widget.v1.0.0', 'quay.io/good/widget:v1', [identity]),
        bundle('widget.v1.1.0', 'quay.io/good-but-other/widget:v1', [identity, object]),
      ].join('\n'),
    });
    const findings = await checkRepository(root, session);
    expect(findings.map(({ code, line }) => `${code} ${line}`)).toEqual([
      'check_bundle_images_in_fbc 3',
      'check_olm_bundle_object_in_fbc 3',
    ]);
  });

  it('turns an unreadable bundle into findings of the checks that need it', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      'operators/widget/ci.yaml': 'updateGraph: semver-mode\n',
      'operators/widget/1.0.0/manifests/widget.clusterserviceversion.yaml': 'a: [',
      'operators/widget/1.0.0/metadata/annotations.yaml':
        'annotations:\n  operators.operatorframework.io.bundle.package.v1: widget\n',
    });
    const findings = await checkRepository(root, session, { names: ['widget/1.0.0'] });
    const errors = findings.filter(({ severity }) => severity === 'error');
    expect(errors.map(({ code }) => code)).toContain('check_required_fields');
    expect(errors.every(({ file }) => file?.endsWith('clusterserviceversion.yaml') === true)).toBe(true);
  });
});

describe('changes of a repository', () => {
  it('compares the working tree with a revision, and names broken rules', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      'operators/widget/ci.yaml': 'updateGraph: semver-mode\n',
      ...bundleInCheckout('widget', '1.0.0'),
    });
    const git = (...args: string[]): Buffer =>
      execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args]);
    git('init', '-q');
    git('add', '-A');
    git('commit', '-qm', 'base');
    for (const [name, text] of Object.entries(bundleInCheckout('widget', '1.1.0'))) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
    const withGit = { ...session, environment: { ...session.environment, PATH: process.env['PATH'] } };
    const added = await readRepositoryChanges(root, withGit, { base: 'HEAD' });
    expect(added.result).toMatchObject({ added_bundles: ['widget/1.1.0'], modified_operators: ['widget'] });
    expect(added.problems).toEqual([]);
    await writeFile(path.join(root, 'README.md'), '');
    await rm(path.join(root, 'operators/widget/1.0.0'), { recursive: true });
    const mixed = await readRepositoryChanges(root, withGit, { base: 'HEAD' });
    expect(mixed.problems.map(({ code }) => code)).toEqual([
      'extra-files',
      'bundle-added-and-deleted',
      'bundle-deleted',
    ]);
    const checked = await checkRepository(root, withGit, { base: 'HEAD' });
    expect(checked.every(({ package: name }) => name === 'widget')).toBe(true);
    expect(await failureOf(readRepositoryChanges(root, withGit, { base: 'none' }))).toMatchObject({
      message: expect.stringContaining('revision "none" not found') as string,
    });
  });

  it('compares with no revision that a shallow clone has without its history', async () => {
    const { session } = await openRepositoryWorld();
    const origin = await repositoryWith({ 'operators/widget/ci.yaml': 'updateGraph: semver-mode\n' });
    const git = (directory: string, ...args: string[]): Buffer =>
      execFileSync('git', ['-C', directory, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args]);
    git(origin, 'init', '-q', '-b', 'main');
    for (const message of ['first', 'second']) {
      await writeFile(path.join(origin, message), '');
      git(origin, 'add', '-A');
      git(origin, 'commit', '-qm', message);
    }
    git(origin, 'checkout', '-qb', 'branch', 'main~1');
    await writeFile(path.join(origin, 'operators/widget/ci.yaml'), 'updateGraph: replaces-mode\n');
    git(origin, 'commit', '-qam', 'change');
    const root = path.join(origin, 'clone');
    git(origin, 'clone', '-q', '--depth', '1', '--branch', 'branch', `file://${origin}`, root);
    git(root, 'fetch', '-q', '--depth', '1', 'origin', 'main:main');
    const withGit = { ...session, environment: { ...session.environment, PATH: process.env['PATH'] } };
    expect(await failureOf(readRepositoryChanges(root, withGit, { base: 'main' }))).toMatchObject({
      message: `${root}: no common ancestor of "main" and HEAD in a shallow clone`,
      hint: 'run git fetch with unshallow to get the history',
    });
    git(root, 'fetch', '-q', '--unshallow', 'origin', 'branch', 'main');
    const { result } = await readRepositoryChanges(root, withGit, { base: 'main' });
    expect(result).toMatchObject({ modified_operators: ['widget'], extra_files: [] });
  });
});
