import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../../src/core/diagnostic.js';
import {
  compareCrds,
  storedVersionWarnings,
} from '../../../../../src/bundle/plain/crd-upgrade/crd-upgrade.js';
import { type Manifest, readManifests } from '../../../../../src/kube/manifests.js';
import { smallCrd } from '../small-operator.js';

function manifestOf(crd: object, name = 'crd.yaml'): Manifest {
  const content = Buffer.from(JSON.stringify(crd, null, 1));
  return readManifests([{ name, content }], { prefix: '' }).manifests[0] as Manifest;
}

/** A version with a property of each of these schemas. */
function version(name: string, properties: object, more: object = {}): object {
  const spec = { type: 'object', properties };
  const openAPIV3Schema = { type: 'object', properties: { spec } };
  return { name, served: true, storage: false, schema: { openAPIV3Schema }, ...more };
}

function findings(oldSpec: object, newSpec: object): string[] {
  const [old, next] = [oldSpec, newSpec].map((spec) => manifestOf(smallCrd('widgets', spec))) as [
    Manifest,
    Manifest,
  ];
  return compareCrds(old, next).map((one) => formatMessage(one).replace(/^\w+ "[^"]*": /, ''));
}

const text = { type: 'string' };

describe('bundle/plain/crd-upgrade/crd-upgrade', () => {
  it('accepts additions, and reports removals and changes by version and path', () => {
    const old = { versions: [version('v1', { a: text, list: { type: 'array', items: text } })] };
    const wider = { versions: [version('v1', { a: text, b: text, list: { type: 'array', items: text } })] };
    expect(findings(old, wider)).toEqual([]);
    expect(
      findings(wider, { versions: [version('v1', { a: text, list: { type: 'array', items: {} } })] }),
    ).toEqual([
      'existingFieldRemoval: removed field: v1.^.spec.b',
      'v1: ^.spec.b: type: removed: "string" -> none',
      'v1: ^.spec.list.items: type: removed: "string" -> none',
    ]);
  });

  it('reports a change of scope, with its line', () => {
    const [old, next] = [smallCrd('widgets'), smallCrd('widgets', { scope: 'Cluster' })].map((crd) =>
      manifestOf(crd),
    ) as [Manifest, Manifest];
    expect(compareCrds(old, next)).toEqual([
      {
        severity: 'error',
        code: 'scope',
        crd: 'widgets.example.com',
        subject: 'CustomResourceDefinition "widgets.example.com"',
        problem: 'scope: changed: "Namespaced" -> "Cluster"',
        file: 'crd.yaml',
        line: 13,
        column: 3,
      },
    ]);
  });

  it('compares served versions as Kubernetes orders them, unless a webhook converts', () => {
    const old = { versions: [version('v1', { a: text })] };
    const versions = [
      version('v1', { a: text }),
      version('v1beta1', { a: text, b: text }),
      version('v1alpha2', {}),
    ];
    expect(findings(old, { versions })).toEqual(['v1beta1 -> v1: ^.spec.b: type: removed: "string" -> none']);
    expect(findings({ versions }, { versions })).toEqual([]);
    const conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'] } };
    expect(findings(old, { versions, conversion })).toEqual([]);
    const unserved = versions.map((one) => ({ ...one, served: false }));
    expect(findings(old, { versions: unserved })).toEqual([]);
  });

  it('reports removed stored versions, and warns if only a cluster has the status', () => {
    const stored = { ...smallCrd('widgets'), status: { storedVersions: ['v0', 'v1'] } };
    const [old, next] = [manifestOf(stored), manifestOf(smallCrd('widgets'))] as [Manifest, Manifest];
    expect(compareCrds(old, next).map(({ code }) => code)).toEqual(['storedVersionRemoval']);
    const v2 = manifestOf(smallCrd('widgets', { versions: [version('v2', {}, { storage: true })] }));
    expect(compareCrds(next, v2)).toEqual([]);
    expect(storedVersionWarnings(next, v2).map(formatMessage)).toEqual([
      'CustomResourceDefinition "widgets.example.com": version v1, which was stored, is gone',
    ]);
    expect(storedVersionWarnings(old, v2)).toEqual([]);
  });

  it('reports unreadable definitions', () => {
    const good = manifestOf(smallCrd('widgets'));
    const old = manifestOf({ ...smallCrd('widgets'), apiVersion: 'apiextensions.k8s.io/v1beta1' });
    expect(compareCrds(old, good).map(({ code, line }) => [code, line])).toEqual([['form', 2]]);
    const odd = manifestOf(smallCrd('widgets', { versions: { v1: {} } }));
    expect(compareCrds(good, odd).map(formatMessage)).toEqual([
      'CustomResourceDefinition "widgets.example.com": spec.versions: expected a list, got an object',
    ]);
  });
});
