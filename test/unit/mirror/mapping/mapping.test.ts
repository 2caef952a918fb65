import { describe, expect, it } from 'vitest';
import type { OpmateError } from '../../../../src/core/errors.js';
import { formatReference } from '../../../../src/core/reference.js';
import { parseImageLocation } from '../../../../src/mirror/naming/image-location.js';
import { type MappingOptions, mapImages } from '../../../../src/mirror/mapping/mapping.js';
import { formatMappingLines } from '../../../../src/mirror/plan/mirror-plan.js';
import type { PlannedImage } from '../../../../src/mirror/plan/planned-image.js';
import { toMirrorEntries } from '../../../../src/mirror/mapping/mirror-sets.js';

const [a, b] = ['a', 'b'].map((digit) => `sha256:${digit.repeat(64)}`);
const etcd =
  'quay.io/coreos/etcd-operator@sha256:c0301e4686c3ed4206e370b42de5a3bd2229b9fb4906cf85f3f30650424abec2';

function map(
  images: string[],
  to = 'reg.example/olm',
  from = 'quay.io/acme/cat:v1',
  more: Partial<MappingOptions> = {},
) {
  return mapImages(images, {
    source: parseImageLocation(from),
    destination: parseImageLocation(to, { isPrefix: true }),
    roots: { from: '/from', to: '/to' },
    maxComponents: 2,
    ...more,
  });
}

const lines = (...args: Parameters<typeof map>): string[] => formatMappingLines(map(...args));

function collisionsOf(images: string[], more: Partial<MappingOptions> = {}): string[] {
  try {
    map(images, 'reg.example/olm', undefined, more);
  } catch (error) {
    const { cause, message } = error as OpmateError;
    return cause instanceof AggregateError ? cause.errors.map((one: Error) => one.message) : [message];
  }
  return [];
}

describe('mirror/mapping', () => {
  it('has a sorted line an image, the catalog among them', () => {
    expect(lines([etcd, 'busybox', 'quay.io/zoo/app:v1', etcd])).toEqual([
      'docker.io/library/busybox:latest=reg.example/olm/busybox:latest',
      'quay.io/acme/cat:v1=reg.example/olm/acme-cat:v1',
      `${etcd}=reg.example/olm/coreos-etcd-operator:2f1eb95`,
      'quay.io/zoo/app:v1=reg.example/olm/zoo-app:v1',
    ]);
  });

  it('puts everything of a catalog below it in files', () => {
    expect(lines([etcd], 'file:///local/index', 'quay.io/example/image:tag')).toEqual([
      `${etcd}=file://local/index/example/image/coreos/etcd-operator:2f1eb95`,
      'quay.io/example/image:tag=file://local/index/example/image:tag',
    ]);
  });

  it('finds it there again, and gives it the same tags', () => {
    const from = 'file://local/index/example/image:tag';
    expect(lines([etcd, 'quay.io/a/b:v1'], 'reg.example', from)).toEqual([
      `file://local/index/example/image/a/b:v1=reg.example/a/b:v1`,
      `file://local/index/example/image/coreos/etcd-operator@${etcd.split('@')[1]}=reg.example/coreos/etcd-operator:2f1eb95`,
      `${from}=reg.example/local/index-example-image:tag`,
    ]);
    // A cluster asks for the images by the names that the catalog has.
    expect(toMirrorEntries(map([etcd], 'reg.example', from).images, 'repository')).toEqual([
      { source: 'quay.io/coreos/etcd-operator', mirrors: ['reg.example/coreos/etcd-operator'] },
    ]);
  });

  it('pushes to the repository that the line names, on Docker Hub too', () => {
    const [image] = map(['quay.io/a/b:v1'], 'docker.io/team').images;
    expect(formatReference((image as PlannedImage).target)).toBe(image?.destination);
  });

  it('says latest for a catalog without tag', () => {
    expect(lines([], 'reg.example', 'quay.io/acme/cat')).toEqual([
      'quay.io/acme/cat:latest=reg.example/acme/cat:latest',
    ]);
  });

  it('tells clusters of images with a digest only, by repository or registry', () => {
    const { images } = map([`quay.io/a/b@${a}`, `quay.io/a/b:v2@${b}`, 'quay.io/c/d:v1', `app@${a}`]);
    expect(toMirrorEntries(images, 'repository')).toEqual([
      { source: 'docker.io/library/app', mirrors: ['reg.example/olm/app'] },
      { source: 'quay.io/a/b', mirrors: ['reg.example/olm/a-b'] },
    ]);
    expect(toMirrorEntries(images, 'registry')).toEqual([
      { source: 'docker.io', mirrors: ['reg.example'] },
      { source: 'quay.io', mirrors: ['reg.example'] },
    ]);
  });

  it('goes on where a reference is none', () => {
    const { faults, images } = map(['UPPER/case', 'quay.io/a/b:v1', ' ']);
    expect(images).toHaveLength(2);
    expect(faults.map(({ error }) => error.message)).toEqual([
      expect.stringContaining('image reference " "'),
      expect.stringContaining('image reference "UPPER/case"'),
    ]);
  });

  it('takes an image that is named by tag, and by tag and digest, once', () => {
    const { images, warnings } = map(['quay.io/a/b:v1', `quay.io/a/b:v1@${a}`]);
    expect(formatMappingLines({ images })).toContain(`quay.io/a/b@${a}=reg.example/olm/a-b:v1`);
    expect(images).toHaveLength(2);
    expect(warnings).toEqual([
      `quay.io/a/b:v1: mirrored as ${a}, which the catalog names for this tag as well`,
    ]);
  });

  it('refuses two images on one tag, and names both', () => {
    expect(collisionsOf([`quay.io/a/b:v1@${a}`, `quay.io/a/b:v1@${b}`])).toEqual([
      `reg.example/olm/a-b:v1: same target for quay.io/a/b@${a} and quay.io/a/b@${b}`,
    ]);
  });

  it('lets two repositories share one, and refuses a tag that would mean two images', () => {
    const folded = ['quay.io/a-b/c:v1', 'quay.io/a/b-c:v2'];
    expect(collisionsOf(folded)).toEqual([]);
    const note = 'reg.example/olm/a-b-c: shared by quay.io/a-b/c, quay.io/a/b-c';
    expect(map(folded).warnings).toEqual([note]);
    expect(map(folded, undefined, undefined, { mergeRepositories: true }).warnings).toEqual([]);
    expect(map(folded, undefined, undefined, { maxComponents: 0 }).warnings).toEqual([]);
    expect(map([`quay.io/a-b/c:v1@${a}`, `quay.io/a/b-c:v1@${a}`]).warnings).toEqual([note]);
    const sameTag = ['quay.io/a-b/c:v1', 'quay.io/a/b-c:v1', 'docker.io/x/y:1', 'gcr.io/x/y:2'];
    for (const mergeRepositories of [false, true]) {
      expect(collisionsOf(sameTag, { mergeRepositories })).toEqual([
        'reg.example/olm/a-b-c:v1: same target for quay.io/a-b/c:v1 and quay.io/a/b-c:v1',
      ]);
    }
  });

  it('knows that Docker Hub has two names', () => {
    expect(
      collisionsOf(['docker.io/a/b:v1', 'index.docker.io/a/b:v1', 'index.docker.io/a/b:v2', 'a/b:v3']),
    ).toEqual([]);
  });
});
