import { type ExecFileOptions, execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { useExampleWorld } from '../e2e/example-world.js';
import { projectRoot, useSandbox } from '../support/command-line.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const world = useExampleWorld(sandbox);
const { get } = useCluster();

/** Returns a script of the `sh` blocks of a page, in order; YAML blocks that begin with a file name become that file. */
function scriptOf(text: string): string {
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)];
  return blocks
    .map(([, kind, content = '']) => {
      const file = /^# ([\w./-]+\.ya?ml)\n/.exec(content)?.[1];
      if (kind === 'yaml' && file !== undefined)
        return `cat > ${file} <<'END OF FILE'\n${content}END OF FILE\n`;
      return kind === 'sh' ? content : '';
    })
    .join('');
}

/** Runs a script to its end. */
function runScript(
  script: string,
  options: ExecFileOptions,
): Promise<{ status: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile('bash', [script], { ...options, encoding: 'utf8' }, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
  });
}

describe('docs/deployments.md', () => {
  it('has blocks that run one after another', { timeout: 300_000 }, async () => {
    const bin = path.join(sandbox.temporary, 'kubectl-bin');
    mkdirSync(bin);
    symlinkSync(inject('kubectl'), path.join(bin, 'kubectl'));
    const environment = sandbox.environment({ ...world.environment(), KUBECONFIG: inject('kubeconfig') });
    const page = readFileSync(path.join(projectRoot, 'docs/deployments.md'), 'utf8');
    const cwd = await world.copy();
    const script = path.join(sandbox.work, 'page.sh');
    writeFileSync(script, `set -ex -o pipefail\n${world.localize(scriptOf(page))}`);
    // The process of the test runs the commands meanwhile.
    const { status, stdout, stderr } = await runScript(script, {
      cwd,
      env: { ...environment, PATH: `${bin}:${environment['PATH'] ?? process.env['PATH'] ?? ''}` },
      timeout: 280_000,
      maxBuffer: 64 * 1024 * 1024,
    });
    expect([status, `${stdout}\n${stderr}`.slice(status === 0 ? Infinity : -4000)]).toEqual([0, '']);
    expect(stdout).toContain('demo: deleted: ');
    expect(get('configmap', 'settings', 'demo')).toBeUndefined();
  });
});
