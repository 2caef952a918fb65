import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { load } from 'js-yaml';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { runCommandLine } from '../../src/cli/program.js';
import type { CommandContext } from '../../src/cli/context.js';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';

const sandbox = useSandbox();
const skupper = path.join(bundlesDirectory, 'skupper-operator/1.9.0');

describe('opmate bundle show', () => {
  it('shows a bundle on one screen', async () => {
    const { code, stdout, stderr } = await sandbox.run(['bundle', 'show', skupper]);
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.slice(0, 5)).toEqual([
      'bundle        skupper-operator.v1.9.0',
      'package       skupper-operator',
      'version       1.9.0',
      'display name  Skupper',
      'channels      alpha, stable (default), stable-1, stable-1.9',
    ]);
    expect(stdout).toContain(
      '\npermissions   skupper-site-controller: 24 cluster-wide rules; risks: secrets,',
    );
    expect(lines.length).toBeLessThan(40);
    expect((await sandbox.run(['bundle', 'show', skupper])).stdout).toBe(stdout);
  });

  it('writes all details as JSON and YAML', async () => {
    const json = await sandbox.run(['bundle', 'show', skupper, '-o', 'json']);
    const value = JSON.parse(json.stdout) as Record<string, unknown>;
    expect(value).toMatchObject({ name: 'skupper-operator.v1.9.0', image: null, notes: [] });
    const yaml = await sandbox.run(['bundle', 'show', skupper, '-o', 'yaml']);
    expect(load(yaml.stdout)).toEqual(value);
    const wrong = await sandbox.run(['bundle', 'show', skupper, '-o', 'xml']);
    expect([wrong.code, wrong.stdout, wrong.stderr]).toEqual([
      2,
      '',
      'error: invalid --output value "xml", expected (text|json|yaml)\nhint: see opmate bundle show --help\n',
    ]);
  });

  it('escapes terminal sequences in texts of a bundle', async () => {
    const spec = { displayName: '\u001b[2Jgone\nprovider      me', provider: { name: 'x\u009by' } };
    await sandbox.write(inDirectory('hostile', smallBundle({ spec })));
    const { code, stdout } = await sandbox.run(['bundle', 'show', 'hostile']);
    expect(code).toBe(0);
    expect(stdout).toContain('\ndisplay name  \\x1b[2Jgone provider me\n');
    expect(stdout).toContain('\nprovider      x\\x9by\n');
  });

  it('truncates long lists, with a hint at the complete output', async () => {
    const relatedImages = Array.from({ length: 20 }, (_, i) => ({
      name: `i${i}`,
      image: `quay.io/w/i${i}:v1`,
    }));
    await sandbox.write(inDirectory('many', smallBundle({ spec: { relatedImages } })));
    const { stdout } = await sandbox.run(['bundle', 'show', 'many']);
    expect(stdout.split('\n').filter((line) => line.includes('quay.io/w/'))).toHaveLength(7);
    expect(stdout).toContain('\n              and 13 more, which -o json shows\n');
  });

  it('fits the width of a terminal', async () => {
    const shown = async (more: object, environment: Record<string, string> = {}): Promise<string> => {
      const stdout = Object.assign(new PassThrough(), more);
      const context: CommandContext = {
        environment: { HOME: sandbox.home, ...environment },
        workingDirectory: sandbox.work,
        homeDirectory: sandbox.home,
        temporaryDirectory: sandbox.temporary,
        stdin: new PassThrough(),
        stdout,
        stderr: new PassThrough(),
        signal: new AbortController().signal,
        now: () => new Date(0),
        architecture: 'x64',
      };
      expect(
        await runCommandLine(['bundle', 'show', skupper], context, 'opmate', {
          debug: false,
          usageCode: 2,
        }),
      ).toBe(0);
      return String(stdout.read());
    };
    const plain = await shown({});
    expect(plain).toBe((await sandbox.run(['bundle', 'show', skupper])).stdout);
    const narrow = await shown({ isTTY: true, columns: 50 }, { NO_COLOR: '1' });
    const long = narrow.split('\n').filter((line) => line.length > 50);
    expect(long.filter((line) => line.slice(14).trim().includes(' '))).toEqual([]);
    expect(narrow.split('\n').length).toBeGreaterThan(plain.split('\n').length);
  });

  it('reports why a directory is not a bundle', async () => {
    await sandbox.write({ 'file.txt': 'x', 'empty/manifests/a.yaml': '' });
    const run = async (name: string): Promise<unknown[]> => {
      const { code, stdout, stderr } = await sandbox.run(['bundle', 'show', name]);
      return [code, stdout, stderr.split('\n')[0]];
    };
    expect(await run('empty')).toEqual([1, '', 'error: empty: directory metadata not found']);
    expect(await run('./nothing')).toEqual([1, '', 'error: ./nothing: no such file or directory']);
    expect((await readFile(path.join(sandbox.work, 'file.txt'), 'utf8')).length).toBe(1);
  });
});
