import { chmod, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import { isFormatName, renderExternal } from '../../../../src/bundle/plain/external-format.js';
import { directoryWith } from '../../../support/temporary.js';
import { withPrograms } from './programs.js';

const configMap = `cat <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: made
data:
  format: "$OPMATE_FORMAT"
  name: "$OPMATE_NAME"
  namespace: "$OPMATE_INSTALL_NAMESPACE"
  watch: "$OPMATE_WATCH_NAMESPACES"
  config: "$(cat "$OPMATE_CONFIG" 2>/dev/null)"
  secret: "$SECRET_TOKEN"
  file: "$(cat "$1/file")"
  here: "$(cat file)"
END`;

describe('bundle/plain/external-format', () => {
  it('passes the directory and options to a program, and little of the environment', async () => {
    const directory = await directoryWith({ file: 'content' });
    const options = await withPrograms(
      { 'opmate-format-mine': configMap },
      { watchNamespaces: ['a', 'b'], config: { text: 'x', file: 'c' } },
    );
    const { objects, findings } = await renderExternal(directory, 'mine', options, options);
    expect(findings).toEqual([]);
    expect(objects[0]?.load()['data']).toEqual({
      format: 'mine',
      name: 'widget',
      namespace: 'here',
      watch: 'a,b',
      config: 'x',
      secret: '',
      file: 'content',
      here: 'content',
    });
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('reports the last line of a failing program, without secrets', async () => {
    const script = 'echo first >&2; echo "no recipe at https://me:word@host/x" >&2; echo >&2; exit 3';
    const options = await withPrograms({ 'opmate-format-mine': script });
    await expect(renderExternal(await directoryWith(), 'mine', options, options)).rejects.toMatchObject({
      code: 'INVALID',
      message: 'opmate-format-mine: no recipe at https://***@host/x (exit code 3)',
    });
  });

  it('names the program of an unknown format', async () => {
    const options = await withPrograms({});
    const missing = renderExternal(await directoryWith(), 'kustomize', options, options);
    await expect(missing).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      hint: expect.stringContaining('opmate-format-kustomize') as string,
    });
    for (const format of ['../evil', 'a/b', '', 'Plain', 'a b', '-a']) {
      expect(isFormatName(format)).toBe(false);
      await expect(renderExternal(await directoryWith(), format, options, options)).rejects.toThrow(
        'unknown format',
      );
    }
  });

  it('never runs programs in the rendered directory', async () => {
    const directory = await directoryWith({ 'opmate-format-mine': '#!/bin/sh\nexit 0\n' });
    await chmod(path.join(directory, 'opmate-format-mine'), 0o755);
    const options = await withPrograms({}, { environment: { PATH: '.::/usr/bin' } });
    await expect(renderExternal(directory, 'mine', options, options)).rejects.toThrow('unknown format');
  });

  it('stops programs that print too much, take too long or are cancelled', async () => {
    const directory = await directoryWith();
    const endless = await withPrograms({ 'opmate-format-mine': 'exec yes' }, { maxOutput: 100_000 });
    await expect(renderExternal(directory, 'mine', endless, endless)).rejects.toThrow(
      'prints more than 100000 bytes',
    );
    const slow = await withPrograms({ 'opmate-format-mine': 'sleep 60 & wait' }, { timeoutMs: 200 });
    await expect(renderExternal(directory, 'mine', slow, slow)).rejects.toThrow('timed out after 0.2 s');
    const controller = new AbortController();
    const { signal } = controller;
    const sleeping = await withPrograms({ 'opmate-format-mine': 'sleep 60' }, { signal });
    const unwanted = renderExternal(directory, 'mine', sleeping, sleeping);
    setTimeout(() => controller.abort(), 100);
    await expect(unwanted).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('does not wait for processes that a program leaves running', { timeout: 30_000 }, async () => {
    const made = 'printf "apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: made}\\n"';
    for (const left of ['sleep 60 &', 'sleep 60 >/dev/null &']) {
      const options = await withPrograms({ 'opmate-format-mine': `${left} ${made}` }, { timeoutMs: 20_000 });
      expect((await renderExternal(await directoryWith(), 'mine', options, options)).objects).toHaveLength(1);
    }
  });

  it('reports faults of the output, with their lines', async () => {
    const script =
      "printf 'apiVersion: v1\\nkind: ConfigMap\\n---\\n- 1\\n---\\nkind: Pod\\nmetadata: {name: x}\\n'";
    const options = await withPrograms({ 'opmate-format-mine': script, 'opmate-format-empty': 'true' });
    const { objects, findings } = await renderExternal(await directoryWith(), 'mine', options, options);
    expect(objects).toEqual([]);
    expect(findings.map(({ line, ...finding }) => `${line} ${formatMessage(finding)}`)).toEqual([
      '4 expected an object, got a list',
      '1 ConfigMap: metadata.name: missing',
      '6 Pod "x": apiVersion: missing',
    ]);
    const empty = await renderExternal(await directoryWith(), 'empty', options, options);
    expect(empty.findings).toEqual([
      {
        severity: 'error',
        code: expect.any(String) as string,
        problem: 'opmate-format-empty prints no objects',
      },
    ]);
  });
});
