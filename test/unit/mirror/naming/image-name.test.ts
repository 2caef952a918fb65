import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatImageName,
  getDestinationTag,
  joinPath,
  parseImageName,
  withDockerDefaults,
} from '../../../../src/mirror/naming/image-name.js';
import { formatImageLocation, parseImageLocation } from '../../../../src/mirror/naming/image-location.js';

const a = `sha256:${'a'.repeat(64)}`;

describe('mirror/image-name', () => {
  it.each([
    ['quay.io/acme/app:v1', 'quay.io', 'acme/app', 'v1', undefined],
    ['quay.io/acme/deep/app:v1', 'quay.io', 'acme/deep/app', 'v1', undefined],
    ['quay.io/app', 'quay.io', 'app', undefined, undefined],
    ['localhost/acme/app', 'localhost', 'acme/app', undefined, undefined],
    ['localhost:5000/acme/app', 'localhost:5000', 'acme/app', undefined, undefined],
    ['host:5000/acme/app', 'host:5000', 'acme/app', undefined, undefined],
    ['acme/app:v1', '', 'acme/app', 'v1', undefined],
    ['app', '', 'app', undefined, undefined],
    ['myhost:5000', '', 'myhost', '5000', undefined],
    ['docker.io/busybox', 'docker.io', 'library/busybox', undefined, undefined],
    [`quay.io/acme/app:v1@${a}`, 'quay.io', 'acme/app', 'v1', a],
    [`app@${a}`, '', 'app', undefined, a],
  ])('takes %s apart', (text, registry, repository, tag, digest) => {
    expect(parseImageName(text)).toEqual({ registry, repository, tag, digest });
  });

  it.each([
    ['quay.io', 'quay.io'],
    ['reg.example:5000', 'reg.example:5000'],
    ['localhost:5000', 'localhost:5000'],
    ['localhost', 'localhost'],
  ])('takes %s for a registry where images are put below it', (text, registry) => {
    expect(parseImageName(text, { isPrefix: true })).toEqual({ registry, repository: '' });
  });

  it.each([
    '',
    '/',
    'quay.io',
    'quay.io/',
    'quay.io/A/b',
    'a b',
    'quay.io/a:',
    'quay.io/a@sha256:1',
    'a//b',
    '-a',
  ])('refuses %j', (text) => expect(() => parseImageName(text)).toThrow(/image reference/));

  it('never repeats credentials', () => {
    expect(() => parseImageName('user:secret@quay.io/a/b')).toThrow(/^(?!.*secret).*$/);
  });

  it.each([
    [`quay.io/acme/app:v1@${a}`, `quay.io/acme/app@${a}`],
    ['app', 'docker.io/library/app:latest'],
    [`app@${a}`, `docker.io/library/app@${a}`],
    ['acme/app:1', 'docker.io/acme/app:1'],
    ['quay.io/app', 'quay.io/app:latest'],
  ])('prints %s with defaults as %s', (text, printed) => {
    expect(formatImageName(withDockerDefaults(parseImageName(text)))).toBe(printed);
  });

  const hex = '154d7e0295a94fb3d2a97309d711186a98a7308da37a5cd3d50360c6b2ba57de';
  it.each([
    [`docker.io/my/image@sha256:${hex}`, 'a1d77056'],
    [`docker.io/my/digest-image@sha256:${hex}`, 'dcbadf49'],
    [
      'registry.access.redhat.com/ubi8-minimal@sha256:9285da611437622492f9ef4229877efe302589f1401bbd4052e9bb261b3d4387',
      '51f124fa',
    ],
    [
      'quay.io/coreos/etcd-operator@sha256:c0301e4686c3ed4206e370b42de5a3bd2229b9fb4906cf85f3f30650424abec2',
      '2f1eb95',
    ],
    [`quay.io/acme/app:v1@${a}`, 'v1'],
    ['quay.io/acme/app', 'latest'],
  ])('tags %s as %s', (text, tag) => expect(getDestinationTag(parseImageName(text))).toBe(tag));

  it.each([
    ['', 'docker.io/my/image', 2, 'my/image'],
    ['my-org', 'docker.io/my/image', 2, 'my-org/my-image'],
    ['my-org', 'docker.io/my/image', 3, 'my-org/my/image'],
    ['my-org/sub-org', 'docker.io/my/image', 3, 'my-org/sub-org/my-image'],
    ['my-org/sub-org', 'docker.io/my/image', 4, 'my-org/sub-org/my/image'],
    ['my-org/sub-org', 'docker.io/my/image', undefined, 'my-org/sub-org/my/image'],
    ['', 'registry.access.redhat.com/ubi8-minimal', 2, 'ubi8-minimal'],
    ['', 'registry.access.redhat.com/ubi8-minimal', undefined, 'ubi8-minimal'],
    ['', 'quay.io/a/b/c/d', 2, 'a/b-c-d'],
  ])('puts into %j %s with %s components at %s', (prefix, text, max, path) => {
    expect(joinPath(prefix, parseImageName(text).repository, max)).toBe(path);
  });

  it.each([
    ['file:///local/index', true, 'file://local/index'],
    ['file://local/index/', true, 'file://local/index'],
    ['file://local/index/acme/cat:v1', false, 'file://local/index/acme/cat:v1'],
    [`file://local/cat@${a}`, false, `file://local/cat@${a}`],
    ['docker://quay.io/acme', true, 'quay.io/acme'],
    ['quay.io/acme/cat:v1', false, 'quay.io/acme/cat:v1'],
  ])('reads the place %s', (text, isPrefix, printed) => {
    expect(formatImageLocation(parseImageLocation(text, { isPrefix }))).toBe(printed);
  });

  it.each([
    ['s3://bucket/x', 'UNSUPPORTED'],
    ['file://../up', 'UNSAFE'],
    ['file:///a/../../b', 'UNSAFE'],
    ['file://', 'INVALID'],
    ['file://a b', 'INVALID'],
    ['ftp://host/x', 'INVALID'],
  ])('refuses the place %s', (text, code) => {
    expect(() => parseImageLocation(text, { isPrefix: true })).toThrow(expect.objectContaining({ code }));
  });

  it('reads again what it prints', () => {
    const component = fc.stringMatching(/^[a-z0-9]{1,6}(-[a-z0-9]{1,3})?$/);
    const registry = fc.constantFrom('quay.io', 'localhost', 'host:5000', 'reg.example:8443');
    const tag = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,10}$/);
    fc.assert(
      fc.property(
        registry,
        fc.array(component, { minLength: 1, maxLength: 5 }),
        tag,
        (host, path, version) => {
          const text = `${host}/${path.join('/')}:${version}`;
          expect(formatImageName(parseImageName(text))).toBe(text);
        },
      ),
    );
  });

  it('takes any text apart or refuses it', () => {
    fc.assert(
      fc.property(fc.string(), fc.boolean(), (text, isPrefix) => {
        try {
          parseImageLocation(text, { isPrefix });
        } catch (error) {
          expect(error).toHaveProperty('code', expect.stringMatching(/INVALID|UNSAFE|UNSUPPORTED/));
        }
      }),
    );
  });
});
