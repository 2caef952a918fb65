import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { useExampleWorld } from '../e2e/example-world.js';
import { projectRoot, runProgram, useSandbox } from '../support/command-line.js';
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

describe('docs/deployments.md', () => {
  // What the page has created is there at a second try.
  it('has blocks that run one after another', { timeout: 300_000, retry: 0 }, async () => {
    const bin = path.join(sandbox.temporary, 'kubectl-bin');
    mkdirSync(bin);
    symlinkSync(inject('kubectl'), path.join(bin, 'kubectl'));
    const environment = sandbox.environment({ ...world.environment(), KUBECONFIG: inject('kubeconfig') });
    const page = readFileSync(path.join(projectRoot, 'docs/deployments.md'), 'utf8');
    const cwd = await world.copy();
    const script = path.join(sandbox.work, 'page.sh');
    writeFileSync(script, `set -ex -o pipefail\n${world.localize(scriptOf(page))}`);
    const { code, stdout, stderr } = await runProgram('bash', [script], {
      cwd,
      env: { ...environment, PATH: `${bin}:${environment['PATH'] ?? process.env['PATH'] ?? ''}` },
      timeout: 280_000,
    });
    expect([code, `${stdout}\n${stderr}`.slice(code === 0 ? Infinity : -4000)]).toEqual([0, '']);
    expect(stdout).toContain('demo: deleted: ');
    expect(get('configmap', 'settings', 'demo')).toBeUndefined();
  });
});
