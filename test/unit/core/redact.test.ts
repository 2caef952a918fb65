import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSecretName, redactForeign, redactUrls, withoutSecretFields } from '../../../src/core/redact.js';

describe('core/redact', () => {
  it.each([
    ['https://user:p@ss@host/x', 'https://***@host/x'],
    [
      'git clone https://user:p/a?s#s@host.example/repo failed',
      'git clone https://***@host.example/repo failed',
    ],
    ['https://token@host/x', 'https://***@host/x'],
    ['ftp://a:b@c,https://d:e@f', 'ftp://***@c,https://***@f'],
    ['proxy http://jo:p:w@proxy:3128 failed', 'proxy http://***@proxy:3128 failed'],
    ['client_secret=abc def', 'client_secret=*** def'],
    ['?client_secret=abc&grant=x', '?client_secret=***&grant=x'],
    ['db_password=x', 'db_password=***'],
    ['DB_PASSWORD="my secret pass" next', 'DB_PASSWORD=*** next'],
    ["PGPASSWORD='a b c' next", 'PGPASSWORD=*** next'],
    [String.raw`password: "a \"b\" c" rest`, 'password: *** rest'],
    ['password="never closed and more', 'password=***'],
    ['{"client_secret":"abc def","x":1}', '{"client_secret":"***","x":1}'],
    ['{"clientSecret" : "abc def"}', '{"clientSecret" : "***"}'],
    [String.raw`{\"password\":\"a b\",\"x\":1}`, String.raw`{\"password\":"***",\"x\":1}`],
    ['"identitytoken":"abc def"', '"identitytoken":"***"'],
    ['"auth": "aGVsbG86d29ybGQ="', '"auth": "***"'],
    ['aws_secret_access_key = abc/def', 'aws_secret_access_key = ***'],
    ['api_key=abc apiKey=abc', 'api_key=*** apiKey=***'],
    ['secret: hunter2', 'secret: ***'],
    ['Authorization: Bearer abc', 'Authorization: Bearer ***'],
    ['authorization: token abcdef ghi', 'authorization: token ***'],
    ['Basic am86aHVudGVyMg==', 'Basic ***'],
    ['X-Auth-Token: abcdef', 'X-Auth-Token: ***'],
    ['Set-Cookie: sid=abc; Path=/', 'Set-Cookie: ***'],
    ['helper --password hunter2 --user jo', 'helper --password *** --user jo'],
    ['https://x/?a=1&X-Amz-Signature=abc%3D&b=2', 'https://x/?a=1&X-Amz-Signature=***&b=2'],
    ['got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc', 'got ***'],
    ['got ghp_0123456789abcdefghijABCDEFGHIJ', 'got ***'],
    [
      '-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----',
      '-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----',
    ],
  ])('removes what is secret of %s', (text, redacted) => {
    expect(redactForeign(text)).toBe(redacted);
  });

  it.each([
    'quay.io/ns/dex-auth:v1: manifest unknown',
    'pushed dex-auth:v1',
    'localhost:5000/my-secret:v1 not found',
    'ns/token:v1, ns/db-password:v1 and ns/authorization:v1',
    'quay.io/ns/my-secret: unauthorized',
  ])('leaves names of images in foreign text: %s', (text) => {
    expect(redactForeign(text)).toBe(text);
  });

  it.each([
    ['https://user:p@ss@host/x', 'https://***@host/x'],
    ['open git+https://jo:p/a#s@host.example/x failed', 'open git+https://***@host.example/x failed'],
    ['https://token@host/x', 'https://***@host/x'],
    ['ssh://jo:word@host/x', 'ssh://***@host/x'],
    ['GET https://host/x?access_token=abc&n=1', 'GET https://host/x?access_token=***&n=1'],
  ])('removes the credentials of the URL in %s', (text, redacted) => {
    expect(redactUrls(text)).toBe(redacted);
  });

  it.each([
    'pushed localhost:5000/dex-auth:v1',
    'opmate serve localhost:5000/my-secret:v1 --use-http',
    'package "dex-auth": "stable": no channel head',
    'Secret: password missing',
    '"auth": expected an object',
    'Authorization: Basic expected',
    'db-password=x',
    'git+ssh://git@github.com/ns/name#main',
    'oci://catalog@sha256:0123456789ab',
    'docker://quay.io/ns/name:v1@sha256:abc',
  ])('redactUrls leaves everything else: %s', (text) => {
    expect(redactUrls(text)).toBe(text);
  });

  it('masks the user of a URL that became a path', () => {
    expect(redactForeign("ENOENT: no such file, stat '/a/https:/jo:hunter2@files.example/x.yaml'")).toBe(
      "ENOENT: no such file, stat '/a/https:/***@files.example/x.yaml'",
    );
  });

  it('knows names of secrets, but not names of what names a secret', () => {
    const names = [
      'password',
      'db_password',
      'identitytoken',
      'auth',
      'clientSecret',
      'aws_secret_access_key',
    ];
    expect(names.filter((name) => !isSecretName(name))).toEqual([]);
    const others = ['pullSecret', 'secretName', 'passwordFile', 'secrets', 'author', 'tokenKey', 'name'];
    expect(others.filter(isSecretName)).toEqual([]);
  });

  it.each([
    'https://host:5000/ns/name@sha256:abc',
    'https://[::1]:5000/ns/name@sha256:abc',
    'docker://quay.io/ns/name:v1@sha256:abc',
    'spec.source.image.pullSecret: unknown field "x"',
    'token: not found',
    'key "token": expected a string',
    '/tmp/db-secret: no such file or directory',
    'author: Jane',
    'render basic template',
    'quay.io/ns/name: token server auth.quay.io: registry returned 401 Unauthorized',
    'put them into a Secret in a file: --secrets DIRECTORY --secret NAME',
    'write http://user:password@host:port',
    'passwordFile=/run/secrets/x',
    'secrets: a, b',
  ])('leaves a message as it is: %s', (text) => {
    expect(redactForeign(text)).toBe(text);
  });

  it('masks the named secrets of a document, and the data of Secrets', () => {
    const document = {
      ...{ name: 'dex-auth', auths: { 'r.io': { auth: 'aGk=' } }, items: [{ password: 5, port: 5 }] },
      ...{ list: [{ kind: 'Secret', metadata: { name: 'token' }, data: { a: 'Yg==' } }] },
    };
    expect(withoutSecretFields(document)).toEqual({
      ...{ name: 'dex-auth', auths: { 'r.io': { auth: '***' } }, items: [{ password: '***', port: 5 }] },
      ...{ list: [{ kind: 'Secret', metadata: { name: 'token' }, data: '***' }] },
    });
  });

  it('lets no value of a named secret through, however it is quoted', () => {
    const names = fc.constantFrom('password', 'db_password', 'client_secret', 'access_token', 'DB_PASSWD');
    const word = fc.stringMatching(/^zq[A-Za-z0-9@/.+-]{0,20}$/);
    const forms = fc.constantFrom(
      (name: string, text: string) => `${name}=${text}`,
      (name: string, text: string) => `${name}: ${text}`,
      (name: string, text: string) => `"${name}": "a ${text} b"`,
      (name: string, text: string) => `${name}='a ${text} b'`,
      (name: string, text: string) => `https://jo:${text}@host/?${name}=${text}&x=1`,
    );
    fc.assert(
      fc.property(names, word, forms, (name, text, form) => {
        expect(redactForeign(`before ${form(name, text)} after`)).not.toContain('zq');
      }),
    );
  });

  it.each([
    'a://b:c',
    'password',
    'password="',
    'password="\\',
    'token_',
    '--a-',
    'eyJaaaaaaaaa-',
    '-----BEGIN RSA PRIVATE KEY-----',
    'authorization: basic ',
    '?X-Amz-',
    'token: ',
  ])('gets to the end of a megabyte of %s', (piece) => {
    const text = piece.repeat(Math.ceil(1_048_576 / piece.length));
    expect(redactForeign(text)).toBeTypeOf('string');
    expect(redactForeign(`${text} db_password=hunter2`)).not.toContain('hunter2');
  });
});
