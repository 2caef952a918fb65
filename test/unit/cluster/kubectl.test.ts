import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/core/log.js';
import { Kubectl, readMessages, parseObjects } from '../../../src/cluster/kubectl.js';
import { directoryWith } from '../../support/temporary.js';

const version = '[ "$1" = version ] && { echo \'{"clientVersion":{"gitVersion":"v1.30.1"}}\'; exit 0; }';

/** A program in the place of kubectl. */
async function programOf(script: string, signal?: AbortSignal): Promise<Kubectl> {
  const directory = await directoryWith({ kubectl: `#!/bin/sh\n${script}\n` });
  const program = path.join(directory, 'kubectl');
  await chmod(program, 0o755);
  return new Kubectl({
    program,
    environment: { PATH: process.env['PATH'] },
    workingDirectory: directory,
    logger: silentLogger,
    signal,
  });
}

describe('cluster/kubectl', () => {
  it('passes objects on standard input and arguments unchanged, without a shell', async () => {
    const kubectl = await programOf(`${version}; printf '%s\\n' "$@"; cat`);
    const big = 9007199254740993n;
    const { stdout } = await kubectl.run(['get', '$(touch x); `y`'], { objects: [{ kind: 'A', big }] });
    expect(stdout).toBe(
      'get\n$(touch x); `y`\n{"apiVersion":"v1","kind":"List","items":[{"kind":"A","big":9007199254740993}]}',
    );
  });

  it.each([
    ['echo hello', /kubectl: not kubectl$/, 'UNSUPPORTED'],
    [`echo '{"gitVersion": "v1.9.3"}'`, /kubectl 1\.9 is too old$/, 'UNSUPPORTED'],
    [
      `${version}; echo 'error: context "x" does not exist' >&2; exit 1`,
      /^kubectl: context "x"/,
      'NOT_FOUND',
    ],
    [
      `${version}; echo 'Unable to connect to the server: x509: unknown authority' >&2; exit 1`,
      /^kubectl: Unable to connect/,
      'NETWORK',
    ],
    [
      `${version}; echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1`,
      /^kubectl: You must be logged in/,
      'AUTH',
    ],
  ])('says what is wrong with the program or the way to the cluster: %s', async (script, message, code) => {
    const kubectl = await programOf(script);
    const error: unknown = await kubectl.run(['get']).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringMatching(message) as string, code });
  });

  it('stops the program when cancelled, unless it must finish', async () => {
    const cancel = new AbortController();
    const kubectl = await programOf(
      `${version}; trap 'exit 1' TERM; echo started; sleep 30 & wait`,
      cancel.signal,
    );
    await kubectl.version();
    const running = kubectl.run(['get']);
    cancel.abort();
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED' });
    const other = await programOf(`${version}; echo done`, cancel.signal);
    await expect(other.run(['get'])).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('does not stop programs that must not be cancelled', async () => {
    const cancel = new AbortController();
    const kubectl = await programOf(`${version}; echo done`, cancel.signal);
    await kubectl.version();
    cancel.abort();
    expect(await kubectl.run(['get'], { isCancellable: false })).toEqual({ stdout: 'done\n', errors: [] });
  });

  it('stops the program after its timeout', async () => {
    const kubectl = await programOf(`${version}; exec sleep 30`);
    await expect(kubectl.run(['get'], { timeoutMs: 50 })).rejects.toMatchObject({ code: 'LIMIT' });
  });

  it('extracts errors and warnings from the output of kubectl', () => {
    const text = [
      'Warning: policy/v1beta1 is deprecated',
      "E0101 10:00:00.000000 1 memcache.go:265] couldn't get current server API group list",
      'error: Apply failed with 2 conflicts: conflicts with "helm":',
      '- .spec.a',
      '- .spec.b',
      'Please review the fields above--they currently have other managers. Here',
      'are the ways you can resolve this warning:',
      'Error from server (Invalid): Secret "s" is invalid: illegal base64, error found in #10 byte of ...|"p":"hunter2"|...',
    ].join('\n');
    expect(readMessages(text)).toEqual({
      warnings: ['policy/v1beta1 is deprecated'],
      errors: [
        'Apply failed with 2 conflicts: conflicts with "helm": - .spec.a - .spec.b',
        'Error from server (Invalid): Secret "s" is invalid: illegal base64',
      ],
    });
  });

  it('redacts the data of Secrets, encoded or not', async () => {
    const kubectl = await programOf(
      `${version}; echo "error: bad: hunter2 aHVudGVyMg== swordfish" >&2; exit 1`,
    );
    kubectl.hideSecrets([
      { kind: 'Secret', data: { a: 'aHVudGVyMg==' } },
      { kind: 'Secret', stringData: { b: 'swordfish' } },
    ]);
    expect(await kubectl.run(['get'])).toMatchObject({ errors: ['bad: *** *** ***'] });
  });

  it('redacts the data of Secrets in base64 and escaped, as messages of the API server quote it', async () => {
    const value = 'line "one"\nline <two>';
    const forms = [
      Buffer.from(value).toString('base64'),
      JSON.stringify(value),
      String.raw`"line \"one\"\nline \u003ctwo\u003e"`,
    ];
    const message = `Invalid value: ${forms.join(' ')}`.replaceAll('\\', '\\\\').replaceAll("'", '');
    const kubectl = await programOf(`${version}; printf '%b\\n' 'error: ${message}' >&2; exit 1`);
    kubectl.hideSecrets([{ kind: 'Secret', stringData: { b: value } }]);
    const { errors } = await kubectl.run(['get']);
    expect(errors.join()).not.toMatch(/one|two/);
  });

  it('reads one object, a List and a sequence of objects', () => {
    const one = { kind: 'A', text: 'x' };
    expect(parseObjects('')).toEqual([]);
    expect(parseObjects(JSON.stringify(one))).toEqual([one]);
    expect(parseObjects(JSON.stringify({ kind: 'List', items: [one, one] }))).toEqual([one, one]);
    const text = JSON.stringify(one, null, 4);
    expect(parseObjects(`${text}\n${text}\n`)).toEqual([one, one]);
    expect(() => parseObjects('{')).toThrow('kubectl: output is not JSON');
  });
});
