import { execFileSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import { renderHelm } from '../../../../src/bundle/plain/helm.js';
import { directoryWith } from '../../../support/temporary.js';
import { withPrograms } from './programs.js';

const chartFile = 'apiVersion: v2\nname: widget-chart\nversion: 1.2.3\n';
const object = (name: string, more = ''): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n${more}`;
const standIn = `cat <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: args}
data: {args: "$*", home: "$HOME", plugins: "$HELM_PLUGINS", secret: "$SECRET_TOKEN"}
END`;

describe('bundle/plain/helm', () => {
  it('renders the chart at the root or in the only chart directory', async () => {
    const root = await directoryWith({ 'Chart.yaml': chartFile, 'charts/sub/Chart.yaml': chartFile });
    const below = await directoryWith({ 'it/Chart.yaml': chartFile, 'docs/x': '', README: '' });
    const options = await withPrograms({ helm: standIn });
    for (const [directory, chart] of [
      [root, root],
      [below, `${below}/it`],
    ] as const) {
      const { objects, findings, chartName, version } = await renderHelm(directory, options, options);
      expect({ findings, chartName, version }).toEqual({
        findings: [],
        chartName: 'widget-chart',
        version: '1.2.3',
      });
      const data = objects[0]?.load()['data'] as Record<string, string>;
      expect(data['args']).toBe(`template widget ${chart} --namespace here --include-crds --skip-tests`);
      expect(data['home']).toContain(options.temporaryDirectory);
      expect(data['plugins']).toContain(options.temporaryDirectory);
      expect(data['secret']).toBe('');
    }
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('reports no chart, several charts, and a broken one', async () => {
    const options = await withPrograms({ helm: standIn });
    const messageOf = async (files: Record<string, string>): Promise<string | undefined> =>
      (await renderHelm(await directoryWith(files), options, options)).findings.map(formatMessage)[0];
    expect(await messageOf({ 'a/b': '' })).toBe('no Helm chart found');
    expect(await messageOf({ 'b/Chart.yaml': chartFile, 'a/Chart.yaml': chartFile })).toBe(
      'several charts of helm are there: a, b',
    );
    expect(await messageOf({ 'Chart.yaml': 'name: x\n' })).toBe('version: missing');
    expect(await messageOf({ 'Chart.yaml': 'name: x\nversion: 1.0\n' })).toBe(
      'version: expected a string, got the number 1',
    );
    expect(await messageOf({ 'Chart.yaml': `${chartFile}name: y\n` })).toContain('name: duplicate key');
    const broken = await renderHelm(await directoryWith({ 'it/Chart.yaml': 'a: b\n\tc' }), options, options);
    expect(broken.findings).toMatchObject([{ file: 'it/Chart.yaml', line: 2 }]);
  });

  it('reports a missing helm, and the message of a failing one', async () => {
    const directory = await directoryWith({ 'Chart.yaml': chartFile });
    const without = await withPrograms({}, { environment: {} });
    await expect(renderHelm(directory, without, without)).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: 'helm: not installed',
    });
    const failing = await withPrograms({ helm: 'echo "Error: values don\'t meet the schema" >&2; exit 1' });
    await expect(renderHelm(directory, failing, failing)).rejects.toThrow(
      "helm: Error: values don't meet the schema",
    );
    const config = { text: '[', file: 'spec.config' };
    const refusing = await withPrograms(
      { helm: 'echo "Error: failed to parse $9: x" >&2; exit 1' },
      { config },
    );
    await expect(renderHelm(directory, refusing, refusing)).rejects.toThrow(
      'helm: Error: failed to parse spec.config: x',
    );
    const misnamed = await withPrograms({ helm: standIn }, { name: 'A--b' });
    const named = await renderHelm(directory, misnamed, misnamed);
    expect(named.findings.map(formatMessage).join()).toContain('name "A--b": helm takes');
  });

  it('warns of varying output, and of hooks', async () => {
    const directory = await directoryWith({ 'Chart.yaml': chartFile });
    const changing = await withPrograms({
      helm: `cat <<END\n${object('a', '  annotations: {helm.sh/hook: pre-install}\ndata: {now: "$(date +%N)"}\n')}END`,
    });
    const { warnings } = await renderHelm(directory, changing, changing);
    expect(warnings.map(formatMessage)).toEqual([
      'the chart renders other manifests each time',
      'ConfigMap "a": a hook of helm (pre-install), applied as any other object',
    ]);
  });

  const real = realHelm();
  it.skipIf(real === undefined)(
    `renders through the real helm${real === undefined ? ' (not installed)' : ''}`,
    async () => {
      const directory = await directoryWith({
        'Chart.yaml': chartFile,
        'values.yaml': 'size: 1\n',
        'crds/crd.yaml':
          'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n',
        'templates/map.yaml': object(
          '{{ .Release.Name }}-{{ .Release.Namespace }}',
          'data: {size: "{{ .Values.size }}"}\n',
        ),
        'templates/tests/test.yaml': object('test', '  annotations: {helm.sh/hook: test}\n'),
      });
      const environment = { PATH: process.env['PATH'] };
      const options = await withPrograms({}, { environment, config: { text: 'size: 7\n', file: 'v.yaml' } });
      const made = await renderHelm(directory, options, options);
      expect({ ...made, objects: [] }).toMatchObject({ findings: [], warnings: [] });
      expect(made.objects.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
        'ConfigMap widget-here',
        'CustomResourceDefinition a.b',
      ]);
      expect(made.objects[0]?.load()['data']).toEqual({ size: '7' });
    },
  );
});

function realHelm(): string | undefined {
  try {
    return execFileSync('helm', ['version', '--short'], { encoding: 'utf8' });
  } catch {
    return undefined;
  }
}
