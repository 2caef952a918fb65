import { describe, expect, it } from 'vitest';

import { parseReference } from '../../../../src/core/reference.js';
import {
  encodeDeleteList,
  listDeletions,
  parseDeleteList,
  requireBelow,
} from '../../../../src/mirror/delete/delete-list.js';
import { formatSource, nameBelow, targetReference } from '../../../../src/mirror/naming/mirror-target.js';
import type { SetImage } from '../../../../src/mirror/plan/planned-image.js';
import { createKeptImages } from '../../../../src/mirror/delete/kept-images.js';
import { messagesThrown } from '../../../support/diagnostics.js';

const listing = (...items: string[]): string =>
  `apiVersion: mirror.openshift.io/v2alpha1\nitems:\n${items.join('')}kind: DeleteImageList\n`;
const item = (reference: string, type = 'generic'): string =>
  `- imageName: docker://quay.io/acme/x:v1\n  imageReference: docker://${reference}\n  type: ${type}\n`;
const faultsOf = messagesThrown;

const target = { registry: 'reg.test', path: 'ocm' };
const digest = `sha256:${'1a'.repeat(32)}`;
function planned(kind: SetImage['kind'], text: string): SetImage {
  const reference = parseReference(text);
  const name = nameBelow(reference);
  const location = targetReference(target, `ocm/${name.repository}`, name.tag);
  const names = {
    source: formatSource(reference),
    title: text,
    target: location,
    destination: location.text,
  };
  return { kind, reference, ...names, name, bundles: [], texts: new Set([text]) };
}
const images = [
  planned('related', `quay.io/acme/widget@${digest}`),
  planned('bundle', 'quay.io/acme/bundle:v1'),
  planned('additional', `quay.io/acme/tool:v2@${digest}`),
  planned('catalog', 'quay.io/acme/index:v1'),
];
const options = { target, signatures: false, v1Tags: false, keep: createKeptImages() };
const listed = (more: Partial<typeof options> = {}): string[] =>
  listDeletions({ images }, { ...options, ...more }).items.map(({ imageReference, type }) => {
    return `${imageReference} ${type}`;
  });
const at = 'docker://reg.test/ocm/acme';
const tag = digest.replace(':', '-');

describe('mirror/delete-list', () => {
  it('lists images by name, and no catalog', () => {
    expect(listed()).toEqual([
      `${at}/bundle:v1 operatorBundle`,
      `${at}/tool:v2 generic`,
      `${at}/widget:${tag} operatorRelatedImage`,
    ]);
    expect(listed({ signatures: true })).toEqual([
      `${at}/bundle:v1 operatorBundle`,
      `${at}/tool:${tag}.sig generic`,
      `${at}/tool:v2 generic`,
      `${at}/widget:${tag} operatorRelatedImage`,
      `${at}/widget:${tag}.sig operatorRelatedImage`,
    ]);
  });

  it('gives the tags that oc-mirror v1 gave', () => {
    const etcd = `quay.io/coreos/etcd-operator@sha256:c0301e4686c3ed4206e370b42de5a3bd2229b9fb4906cf85f3f30650424abec2`;
    const more = { images: [...images, planned('related', etcd)] };
    const { items } = listDeletions(more, { ...options, v1Tags: true });
    const references = items.map(({ imageReference }) => imageReference);
    expect(references).toContain('docker://reg.test/ocm/coreos/etcd-operator:2f1eb95');
    expect(references).toContain(`${at}/tool:latest`);
    expect(references).toContain(`${at}/bundle:v1`);
  });

  it('reads what it writes', () => {
    const { items } = listDeletions({ images }, options);
    const text = encodeDeleteList(items);
    expect(text).toContain(
      `- imageName: docker://quay.io/acme/bundle:v1\n  imageReference: ${at}/bundle:v1\n`,
    );
    const read = parseDeleteList(text, 'list.yaml');
    expect(read.map(({ imageName, imageReference, type }) => ({ imageName, imageReference, type }))).toEqual(
      items,
    );
    requireBelow(read, target, 'list.yaml');
    requireBelow(read, { registry: 'reg.test', path: '' }, 'list.yaml');
  });

  it.each([
    ['no YAML', 'a: {', 'list.yaml:1: yaml: did not find expected'],
    [
      'another kind',
      listing(item('r.test/a:v1')).replace('Delete', ''),
      'kind: expected DeleteImageList, got "ImageList"',
    ],
    [
      'another version',
      listing(item('r.test/a:v1')).replace('v2alpha1', 'v1'),
      'apiVersion: expected mirror.openshift.io/v2alpha1, got "mirror.openshift.io/v1"',
    ],
    ['nothing listed', listing().replace('items:', 'items: []'), 'items: nothing to delete'],
    ['items that are none', listing().replace('items:', 'items: {a: b}'), 'items: expected a list'],
    [
      'an unknown field',
      listing(item('r.test/a:v1').replace('imageName', 'name')),
      'list.yaml:3:3: items[0].name: unknown field',
    ],
    [
      'a key twice',
      listing(`${item('r.test/a:v1')}  type: generic\n`),
      'list.yaml:6:3: items[0].type: duplicate key',
    ],
    [
      'an unknown type',
      listing(item('r.test/a:v1', 'image')),
      'list.yaml:5:3: items[0].type: unsupported value "image"',
    ],
    ['no type', listing(item('r.test/a:v1', '""')), 'items[0].type: missing'],
    ['no reference', listing('- type: generic\n'), 'items[0].imageReference: missing'],
    ['no object', listing('- r.test/a:v1\n'), 'list.yaml:3:3: items[0]: expected an object, got a string'],
    [
      'another transport',
      listing(item('x').replace('docker://x', 'oci:/tmp/x')),
      'does not begin with docker://',
    ],
    [
      'neither tag nor digest',
      listing(item('r.test/ocm/a')),
      '"docker://r.test/ocm/a" has neither tag nor digest',
    ],
    ['a path that climbs', listing(item('r.test/ocm/../a:v1')), 'list.yaml:4:3: items[0].imageReference: '],
    [
      'too much text',
      `${listing(item('r.test/a:v1'))}#${'x'.repeat(2 ** 24)}`,
      'list.yaml: larger than the maximum of 16777216 characters',
    ],
  ])('refuses %s', (_what, text, message) => {
    const faults = faultsOf(() => parseDeleteList(text, 'list.yaml'));
    expect(faults.find((fault) => fault.includes(message)) ?? faults).toContain(message);
  });

  it('refuses more images than anybody mirrors', () => {
    const text = listing(...new Array<string>(50_001).fill('- {type: a}\n'));
    expect(faultsOf(() => parseDeleteList(text, 'list.yaml'))).toEqual([
      'list.yaml:2:1: items: more than the maximum of 50000 entries',
    ]);
  });

  it.each([
    ['other.test/ocm/a:v1', 'generic', 'below docker://reg.test/ocm'],
    ['reg.test/ocm2/a:v1', 'generic', 'below docker://reg.test/ocm'],
    ['reg.test/a:v1', 'operatorBundle', 'below docker://reg.test/ocm'],
    ['reg.test/ocm/a:v1', 'ocpRelease', 'in docker://reg.test/ocm/openshift/release-images'],
    [
      'reg.test/ocm/openshift/release/x:v1',
      'ocpReleaseContent',
      'in docker://reg.test/ocm/openshift/release',
    ],
  ])('refuses %s as %s', (reference, type, where) => {
    const items = parseDeleteList(listing(item('reg.test/ocm/a:v1'), item(reference, type)), 'list.yaml');
    expect(faultsOf(() => requireBelow(items, target, 'list.yaml'))).toEqual([
      `list.yaml:6:3: "docker://${reference}" is not ${where}`,
    ]);
  });

  it('takes releases where they are', () => {
    const [where, type] = ['reg.test/ocm/openshift/release:v1', 'ocpReleaseContent'];
    requireBelow(parseDeleteList(listing(item(where, type)), 'list.yaml'), target, 'list.yaml');
  });

  it('takes releases where a maximum of path components has put them', () => {
    const short = listing(item('reg.test/ocm/openshift-release:v1', 'ocpReleaseContent'));
    const items = parseDeleteList(short, 'list.yaml');
    requireBelow(items, { ...target, maxNestedPaths: 2 }, 'list.yaml');
    expect(faultsOf(() => requireBelow(items, { ...target, maxNestedPaths: 3 }, 'list.yaml'))).toEqual([
      'list.yaml:3:3: "docker://reg.test/ocm/openshift-release:v1" is not in docker://reg.test/ocm/openshift/release',
    ]);
  });
});
