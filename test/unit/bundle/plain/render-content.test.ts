import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import {
  type RenderContentOptions,
  type RenderedContent,
  renderContent,
} from '../../../../src/bundle/plain/render-content.js';
import { directoryWith } from '../../../support/temporary.js';
import { withPrograms } from './programs.js';
import { type SmallOperator, smallCrd, smallOperator } from './small-operator.js';

async function bundleDirectory(operator: SmallOperator = {}): Promise<string> {
  const { manifests, metadata } = smallOperator(operator);
  return directoryWith({
    ...Object.fromEntries(manifests.map(({ name, content }) => [`manifests/${name}`, content])),
    ...Object.fromEntries(metadata.map(({ name, content }) => [`metadata/${name}`, content])),
  });
}

async function render(
  directory: string,
  format: string,
  more: Partial<RenderContentOptions> = {},
): Promise<RenderedContent> {
  const session = await withPrograms({});
  return renderContent(directory, format, session, { ...session, config: undefined, ...more });
}

const titles = (objects: readonly { kind: string; namespace: string; name: string }[]): string[] =>
  objects.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`);

describe('bundle/plain/render-content', () => {
  it('installs to the given, the suggested, or a namespace named after the package', async () => {
    const wanting = await bundleDirectory({
      annotations: { 'operatorframework.io/suggested-namespace': 'wanted' },
    });
    const plain = await bundleDirectory();
    const namespaceOf = async (directory: string, installNamespace: string): Promise<string> => {
      const made = await render(directory, 'registry-v1', { installNamespace });
      expect(made.findings).toEqual([]);
      expect({ packageName: made.packageName, version: made.version }).toEqual({
        packageName: 'widget',
        version: '1.0.0',
      });
      expect(made.objects.find(({ kind }) => kind === 'Deployment')?.namespace).toBe(made.installNamespace);
      return made.installNamespace;
    };
    expect(await namespaceOf(wanting, 'told')).toBe('told');
    expect(await namespaceOf(wanting, '')).toBe('wanted');
    expect(await namespaceOf(plain, '')).toBe('widget-system');
  });

  it('names the clouds of which an operator requests credentials', async () => {
    const annotations = { 'features.operators.openshift.io/token-auth-aws': 'true' };
    const made = await render(await bundleDirectory({ annotations }), 'registry-v1');
    expect(made.clouds).toHaveLength(1);
    const other = await render(await bundleDirectory(), 'registry-v1');
    expect(other.clouds).toBeUndefined();
  });

  it('moves plain objects of namespaced kinds to the install namespace, and only those', async () => {
    const object = (apiVersion: string, kind: string, namespace = ''): string =>
      JSON.stringify({ apiVersion, kind, metadata: { name: 'a', ...(namespace !== '' && { namespace }) } });
    const directory = await directoryWith({
      'a.json': object('v1', 'ConfigMap'),
      'b.json': object('v1', 'Namespace'),
      'c.json': object('apps/v1', 'Deployment', 'other'),
      'd.json': object('example.com/v1', 'Widget'),
      'e.json': object('elsewhere.io/v1', 'Gadget'),
      'f.json': JSON.stringify(smallCrd('widgets')),
    });
    const placed = await render(directory, 'plain');
    expect(titles(placed.objects)).toEqual([
      'ConfigMap here/a',
      'CustomResourceDefinition /widgets.example.com',
      'Deployment other/a',
      'Gadget /a',
      'Namespace /a',
      'Widget here/a',
    ]);
    expect(placed.objects[0]?.load()['metadata']).toEqual({ name: 'a', namespace: 'here' });
    const asTheyAre = await render(directory, 'plain', { installNamespace: '' });
    expect(titles(asTheyAre.objects)[0]).toBe('ConfigMap /a');
  });

  it('refuses objects that become duplicates in the install namespace', async () => {
    const map = (metadata: object, data: object): string =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    const directory = await directoryWith({
      'a.json': map({ name: 'a' }, { x: '1' }),
      'b.json': map({ name: 'a', namespace: 'here' }, { x: '2' }),
    });
    const { objects, findings } = await render(directory, 'plain');
    expect(objects).toEqual([]);
    expect(findings.map(formatMessage).join()).toContain('ConfigMap "a" in namespace "here": duplicate');
  });

  it('warns of removed APIs and of objects too large to be stored', async () => {
    const directory = await directoryWith({
      'a.yaml': 'apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: old}\n',
      'b.json': JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'large' },
        data: { x: 'x'.repeat(1_100_000) },
      }),
      'c.json': JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'fits' },
        data: { x: 'x'.repeat(1_000_000) },
      }),
    });
    const { warnings } = await render(directory, 'plain');
    expect(warnings.map(({ file, ...finding }) => `${file}: ${formatMessage(finding)}`)).toEqual([
      'b.json: ConfigMap "large": larger than 1 MiB: clusters may refuse to store it',
      'a.yaml: PodDisruptionBudget "old": policy/v1beta1 was removed in Kubernetes 1.25',
    ]);
  });

  it('renders unknown formats with a program', async () => {
    const script = "echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}'";
    const session = await withPrograms({ 'opmate-format-mine': script });
    const options = { ...session, config: undefined };
    const { objects } = await renderContent(await directoryWith(), 'mine', session, options);
    expect(titles(objects)).toEqual(['ConfigMap here/x']);
  });
});
