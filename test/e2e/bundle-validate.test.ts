import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';

const sandbox = useSandbox();
const skupper = path.join(bundlesDirectory, 'skupper-operator/1.9.0');

describe('opmate bundle validate', () => {
  it('accepts a real bundle', async () => {
    const { code, stdout, stderr } = await sandbox.run([
      'alpha',
      'bundle',
      'validate',
      skupper,
      '-o',
      'operatorhub',
    ]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain('All validation tests have been completed successfully');
  });

  it('reports every finding with file and line, with exit code 3, and 1 as alpha bundle', async () => {
    await sandbox.write(inDirectory('widget', smallBundle()));
    const own = await sandbox.run(['bundle', 'validate', 'widget'], { cwd: sandbox.work });
    expect(own).toMatchObject({ code: 3, stdout: '' });
    expect(own.stderr).toContain(
      'error: widget/manifests/csv.yaml:1:114: (widget.v1.0.0) install modes not found\n',
    );
    expect(own.stderr).toContain(
      'warning: widget/manifests/csv.yaml:1:114: (widget.v1.0.0) csv.Spec.minKubeVersion ',
    );
    expect(own.stderr).toContain('error: widget/metadata/annotations.yaml:1:2: Missing annotation ');
    const alpha = await sandbox.run(['alpha', 'bundle', 'validate', 'widget'], { cwd: sandbox.work });
    expect(alpha.code).toBe(1);
    // Warnings that opm keeps to itself.
    expect(alpha.stderr).toBe(own.stderr.replace(/^warning: .*\n/gm, ''));
  });

  it('logs each finding with its diagnostic as JSON', async () => {
    await sandbox.write(inDirectory('widget', smallBundle()));
    const { code, stderr } = await sandbox.run(['bundle', 'validate', 'widget', '--log-format', 'json'], {
      cwd: sandbox.work,
    });
    expect(code).toBe(3);
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const file = 'widget/manifests/csv.yaml';
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        message: `${file}:1:114: (widget.v1.0.0) install modes not found`,
        ...{ file, line: 1, column: 114 },
        diagnostics: [expect.objectContaining({ severity: 'error', file, line: 1 })],
      }),
    );
    expect(lines.filter(({ level }) => level === 'warn')).not.toEqual([]);
    expect(lines.filter(({ message }) => /(?:error|warning): /.test(String(message)))).toEqual([]);
  });

  it('writes JSON and YAML, with the names of validators', async () => {
    await sandbox.write(inDirectory('widget', smallBundle()));
    const run = (...args: string[]) =>
      sandbox.run(['bundle', 'validate', 'widget', ...args], { cwd: sandbox.work });
    const { code, stdout, stderr } = await run('-o', 'json', '-o', 'operatorhub');
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    const { findings } = JSON.parse(stdout) as { findings: object[] };
    expect(findings).toContainEqual({
      severity: 'error',
      code: 'operatorhub',
      problem: '(widget.v1.0.0) csv.Spec.Provider.Name not specified',
      message: '(widget.v1.0.0) csv.Spec.Provider.Name not specified',
      file: 'widget/manifests/csv.yaml',
      line: 1,
      column: 114,
      path: ['spec', 'provider', 'name'],
    });
    expect((await run('--output', 'json', '-o', 'operatorhub')).stdout).toBe(stdout);
    expect((await run('--output', 'yaml')).stdout).toMatch(/^findings:\n *- code: /);
  });

  it('reports missing files of a directory', async () => {
    await sandbox.write({ 'empty/manifests/a.yaml': 'kind: A\n' });
    const { code, stderr } = await sandbox.run(['bundle', 'validate', 'empty'], { cwd: sandbox.work });
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: 'error: empty: Unable to locate metadata directory\n',
    });
  });

  it('names the flag that opm requires, below alpha', async () => {
    const { code, stderr } = await sandbox.run(['alpha', 'bundle', 'validate']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'error: required flag(s) "tag" not set\nhint: add --tag IMAGE\n',
    });
  });

  it.each<[string[], RegExp]>([
    [[], /^error: missing source\nhint: specify the directory or image of a bundle\n$/],
    [['a', '-t', 'b'], /a: --tag says b/],
    [['a', '-b', 'x'], /unrecognized container-tool option: x/],
    [['a', '-o', 'x'], /invalid -o value "x", expected \(operatorhub\|/],
    [['a', '--output', 'x'], /invalid --output value "x"/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await sandbox.run(['bundle', 'validate', ...args]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect((await sandbox.run(['alpha', 'bundle', 'validate', ...args])).code).toBe(1);
  });
});
