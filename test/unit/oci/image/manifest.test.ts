import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../../src/core/errors.js';
import { findDuplicateKey } from '../../../../src/document/raw-json.js';
import { parseImageConfig, parseManifest } from '../../../../src/oci/image/manifest.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { bytesOf, descriptorOf } from '../../../support/images.js';

const config = descriptorOf('{}', mediaTypes.ociConfig);
const layer = descriptorOf('layer');
const image = { schemaVersion: 2, mediaType: mediaTypes.ociManifest, config, layers: [layer] };
const index = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests: [] };
const listed = { ...layer, mediaType: mediaTypes.dockerManifest };
const subject = 'quay.io/ns/name:v1';

function refusal(document: object | string, mediaType?: string): string {
  const bytes = typeof document === 'string' ? Buffer.from(document) : bytesOf(document);
  try {
    parseManifest(bytes, { subject, mediaType });
  } catch (error) {
    if (error instanceof OpmateError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'accepted';
}

describe('oci/manifest', () => {
  it('reads images and indexes, OCI and Docker', () => {
    expect(parseManifest(bytesOf(image), { subject })).toEqual({
      kind: 'image',
      mediaType: mediaTypes.ociManifest,
      manifest: image,
    });
    const list = {
      schemaVersion: 2,
      mediaType: mediaTypes.dockerManifestList,
      manifests: [{ ...listed, platform: { os: 'linux', architecture: 'arm', variant: 'v7' } }],
    };
    expect(parseManifest(bytesOf(list), { subject })).toEqual({
      kind: 'index',
      mediaType: mediaTypes.dockerManifestList,
      index: list,
    });
  });

  it('takes the type from the announcement, or from the shape, where the document does not say', () => {
    const bare = { ...image, mediaType: undefined };
    const bareIndex = { ...index, mediaType: undefined };
    const typeOf = (document: object, mediaType?: string): string =>
      parseManifest(bytesOf(document), { subject, mediaType }).mediaType;
    expect(typeOf(bare)).toBe(mediaTypes.ociManifest);
    expect(typeOf(bare, 'application/json; charset=utf-8')).toBe(mediaTypes.ociManifest);
    expect(typeOf(bare, mediaTypes.dockerManifest)).toBe(mediaTypes.dockerManifest);
    expect(typeOf(bareIndex)).toBe(mediaTypes.ociIndex);
    expect(typeOf(image, `${mediaTypes.ociManifest}; charset=utf-8`)).toBe(mediaTypes.ociManifest);
  });

  it.each([
    'application/octet-stream',
    'application/json',
    'application/vnd.docker.distribution.manifest.v1+prettyjws',
    mediaTypes.ociLayerGzip,
    `x${mediaTypes.ociManifest}`,
  ])('refuses an index entry of type %s, which clients may run all the same', (mediaType) => {
    const document = { ...index, manifests: [{ ...layer, mediaType }] };
    expect(refusal(document)).toContain('manifests[0].mediaType: ');
    expect(refusal(document)).toContain(`UNSUPPORTED`);
    expect(parseManifest(bytesOf(document), { subject, isReferrersList: true })).toMatchObject({
      index: { manifests: [{ mediaType }] },
    });
  });

  it('reads an index entry with parameters or in upper case as the type that others read', () => {
    for (const mediaType of [
      `${mediaTypes.ociManifest}; charset=utf-8`,
      'application/vnd.OCI.image.manifest.V1+json',
    ]) {
      expect(
        parseManifest(bytesOf({ ...index, manifests: [{ ...layer, mediaType }] }), { subject }),
      ).toMatchObject({
        index: { manifests: [{ mediaType: mediaTypes.ociManifest }] },
      });
    }
  });

  it('takes null for absent, as Go writes it', () => {
    const parsed = parseManifest(bytesOf({ ...image, layers: null, annotations: null }), { subject });
    expect(parsed).toMatchObject({ manifest: { layers: [] } });
  });

  it.each([
    ['layers and manifests', { ...image, manifests: [] }, 'not allowed in'],
    ['an index with layers', { ...index, layers: [] }, 'not allowed in'],
    ['an index with a config', { ...index, config }, 'not allowed in'],
    ['fsLayers', { ...image, fsLayers: [] }, 'not allowed in'],
    ['a key in another case', { ...image, Layers: [] }, 'expected key layers, got "Layers"'],
    ['no config', { schemaVersion: 2, layers: [] }, 'config: missing'],
    ['no schema version', { ...image, schemaVersion: undefined }, 'schemaVersion: expected 2'],
    [
      'a negative size',
      { ...image, layers: [{ ...layer, size: -1 }] },
      'layers[0].size: expected a size in bytes',
    ],
    ['a size of 2^62', { ...image, layers: [{ ...layer, size: 2 ** 62 }] }, 'layers[0].size'],
    ['a size as text', { ...image, config: { ...config, size: '2' } }, 'config.size'],
    [
      'a path as digest',
      { ...image, config: { ...config, digest: 'sha256:../../x' } },
      'config.digest: invalid digest',
    ],
    [
      'an upper-case digest',
      { ...image, config: { ...config, digest: layer.digest.toUpperCase() } },
      'config.digest: invalid digest',
    ],
    [
      'a short digest',
      { ...image, config: { ...config, digest: layer.digest.slice(0, -1) } },
      'config.digest: invalid digest',
    ],
    [
      'md5',
      { ...image, config: { ...config, digest: 'md5:d41d8cd98f00b204e9800998ecf8427e' } },
      'config.digest: invalid digest',
    ],
    ['no digest', { ...image, config: { ...config, digest: '' } }, 'config.digest: missing'],
    ['a layer that is null', { ...image, layers: [null] }, 'layers[0]: expected an object, got null'],
    ['layers that are no list', { ...image, layers: {} }, 'layers: expected a list'],
    ['annotations that are numbers', { ...image, annotations: { a: 1 } }, 'annotations.a: expected a string'],
  ])('refuses %s', (_, document, problem) => {
    expect(refusal(document)).toContain('INVALID quay.io/ns/name:v1: ');
    expect(refusal(document)).toContain(problem);
  });

  it('refuses a type other than the announced one', () => {
    expect(refusal(image, mediaTypes.dockerManifest)).toContain('INVALID quay.io/ns/name:v1: media type');
    expect(refusal(image, mediaTypes.ociIndex)).toContain('differs from the announced');
    const bare = { ...image, mediaType: undefined };
    expect(refusal(bare, mediaTypes.ociIndex)).toContain('not allowed in');
  });

  it('refuses a key given twice, at any depth and under any spelling', () => {
    const text = JSON.stringify(image);
    expect(refusal(text.replace('"layers"', '"layers":[],"layers"'))).toContain('duplicate key "layers"');
    expect(refusal(text.replace('"layers"', '"layers":[],"\\u006cayers"'))).toContain(
      'duplicate key "layers"',
    );
    expect(refusal(text.replace('"size":5', '"size":1, "size" : 5'))).toContain('duplicate key "size"');
  });

  it('names schema 1 and artifact manifests for what they are', () => {
    const schema1 = { schemaVersion: 1, name: 'x', fsLayers: [], history: [] };
    expect(refusal(schema1)).toContain(
      'UNSUPPORTED quay.io/ns/name:v1: Docker schema 1 images are no longer supported',
    );
    expect(refusal(image, 'application/vnd.docker.distribution.manifest.v1+prettyjws')).toContain('schema 1');
    const artifact = 'application/vnd.oci.artifact.manifest.v1+json';
    expect(refusal({ mediaType: artifact, blobs: [] })).toBe(
      `UNSUPPORTED ${subject}: "${artifact}" is neither an image nor an index`,
    );
    expect(refusal('<html>', 'text/html')).toContain('SYNTAX');
  });

  it('refuses what is no JSON, no UTF-8, or too large', () => {
    expect(refusal('[]')).toContain('expected an object');
    expect(refusal('{')).toContain('manifest: invalid JSON');
    expect(() => parseManifest(Buffer.from([0x7b, 0xff, 0x7d]), { subject })).toThrow(
      'manifest: invalid JSON',
    );
    expect(refusal(`{"a":"${'x'.repeat(4 * 1024 * 1024)}"}`)).toContain('LIMIT');
    const short = { mediaType: 'x', digest: layer.digest, size: 0 };
    expect(refusal({ ...index, manifests: Array.from({ length: 10_001 }, () => short) })).toContain('LIMIT');
  });

  it('keeps labels by any name apart from objects’ own properties', () => {
    const parsed = parseImageConfig(
      Buffer.from('{"os":"linux","config":{"Labels":{"__proto__":"x","a":""}}}'),
      subject,
    );
    expect(Object.entries(parsed.config?.Labels ?? {})).toEqual([
      ['__proto__', 'x'],
      ['a', ''],
    ]);
    // As in Go, null is the empty string.
    const nulls = parseImageConfig(Buffer.from('{"config":{"Labels":{"a":null,"b":"x"}}}'), subject);
    expect(nulls.config?.Labels).toEqual({ a: '', b: 'x' });
    expect(() => parseImageConfig(Buffer.from('{"config":{"Labels":{"a":1}}}'), subject)).toThrow(
      'config.Labels.a: expected a string',
    );
  });

  it('throws nothing but its own errors, whatever the document', () => {
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom(image, index, config, layer, [layer], 2));
    const document = fc.record(
      {
        schemaVersion: fc.constantFrom(1, 2, '2', null),
        mediaType: fc.constantFrom(...Object.values(mediaTypes)),
        config: value,
        layers: value,
        manifests: value,
        subject: value,
        annotations: value,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(document, fc.option(fc.constantFrom(...Object.values(mediaTypes))), (json, type) => {
        refusal(json, type ?? undefined);
      }),
    );
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void refusal(Buffer.from(bytes).toString('latin1'))));
  });

  it('finds no repeated key in what JSON.stringify wrote, and any that is put in', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => findDuplicateKey(JSON.stringify(value, null, 1)) === undefined),
    );
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), (key, value) => {
        const member = `${JSON.stringify(key)}:${JSON.stringify(value)}`;
        return findDuplicateKey(`[{${member} ,${member}}]`) === key;
      }),
    );
  });
});
