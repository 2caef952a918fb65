import { expect, it } from 'vitest';
import { readLookasides } from '../../../../src/mirror/verification/lookaside.js';
import { directoryWith } from '../../../support/temporary.js';

async function read(files: Record<string, string>): Promise<ReadonlyMap<string, string>> {
  const entries = Object.entries(files).map(([name, text]) => [`stores/${name}`, text]);
  return readLookasides('stores', await directoryWith(Object.fromEntries(entries) as Record<string, string>));
}

it('reads signature stores by scope, lookaside before sigstore', async () => {
  const stores = await read({
    'a.yaml': 'default-docker:\n  sigstore: https://old.example\n',
    'b.yaml':
      'docker:\n  quay.io/a:\n    lookaside: file:///store\n    sigstore: https://x.example\n    use-sigstore-attachments: true\n',
    'c.yaml': '# nothing\n',
    'd.txt': 'not: read\n',
  });
  expect([...stores]).toEqual([
    ['', 'https://old.example'],
    ['quay.io/a', 'file:///store'],
  ]);
});

it.each([
  ['docker-default: x\n', 'stores/a.yaml:1:1: docker-default: unknown field'],
  ['default-dokcer: {}\n', 'stores/a.yaml:1:1: default-dokcer: unknown field'],
  ['docker:\n  quay.io:\n    lokaside: x\n', 'stores/a.yaml:3:5: docker["quay.io"].lokaside: unknown field'],
  ['- a\n', 'stores/a.yaml:1:1: expected an object, got a list'],
  ['docker: 5\n', 'stores/a.yaml:1:1: docker: expected an object, got the number 5'],
  [
    'default-docker:\n  lookaside: nowhere\n',
    'stores/a.yaml:2:3: default-docker.lookaside: expected an http, https or file URL, got "nowhere"',
  ],
  ['docker: {}\n---\ndocker: {}\n', 'stores/a.yaml:2:1: unexpected second document'],
])('refuses stores that would not be used: %j', async (text, message) => {
  await expect(read({ 'a.yaml': text })).rejects.toThrow(message);
});

it('refuses a scope with two stores', async () => {
  const one = 'docker:\n  quay.io: {}\n';
  await expect(read({ 'a.yaml': one, 'b.yaml': one })).rejects.toThrow(
    'stores/b.yaml:2:3: docker["quay.io"]: duplicate, first defined in stores/a.yaml:2',
  );
});

it('refuses a missing directory by its name as written', async () => {
  await expect(readLookasides('t', await directoryWith())).rejects.toThrow('t: no such file or directory');
});
