import { open, readFile, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { commandFile, projectRoot, useSandbox } from '../support/command-line.js';
import { directoryWith } from '../support/temporary.js';

/** Returns the prepared outputs, each with the shortest command line that prints it. */
async function readOutputs(): Promise<Map<string, string>> {
  const content = await readFile(path.join(projectRoot, 'lib/prepared-output.txt'));
  const end = content.indexOf('\n') + 1;
  const index = JSON.parse(content.toString('utf8', 0, end)) as Record<string, [number, number]>;
  const lines = Object.keys(index).sort((a, b) => b.length - a.length);
  return new Map(
    lines.map((line) => {
      const [start, stop] = index[line] as [number, number];
      return [content.toString('utf8', end + start, end + stop), line];
    }),
  );
}

describe('prepared outputs', () => {
  const { run: runOpmate } = useSandbox();

  it('are those of the program, for every command', async () => {
    const outputs = await readOutputs();
    expect(outputs.size).toBeGreaterThan(200);
    for (const [output, line] of outputs) {
      const { code, stdout, stderr } = await runOpmate(line.split(' '));
      expect({ line, code, stdout, stderr }).toEqual({ line, code: 0, stdout: output, stderr: '' });
    }
  });

  it('have the version beside them, unless the name is another one', async () => {
    const own = { ownProcess: true };
    expect(await runOpmate(['version'], own)).toEqual(await runOpmate(['version']));
    const file = path.join(await directoryWith(), 'opm');
    await symlink(commandFile, file);
    expect(await runOpmate(['version'], { ...own, file })).toEqual(await runOpmate(['version']));
  });

  it('are printed by the process, unless alpha commands are shown or the name is another one', async () => {
    const own = { ownProcess: true };
    const program = await runOpmate(['--help']);
    expect(await runOpmate(['--help'], own)).toEqual(program);
    const alpha = { HELP_ALPHA: 'true' };
    const withAlpha = await runOpmate(['--help'], { ...own, env: alpha });
    expect(withAlpha.stdout).not.toBe(program.stdout);
    expect(withAlpha).toEqual(await runOpmate(['--help'], { env: alpha }));
    const file = path.join(await directoryWith(), 'opm');
    await symlink(commandFile, file);
    expect((await runOpmate(['--help'], { ...own, file })).stdout).toMatch(/^Usage: opm /);
  });

  it('are reported when they cannot be written', async () => {
    const full = await open('/dev/full', 'w');
    const { code, stderr } = await runOpmate(['mirror', '--help-all'], {
      ownProcess: true,
      stdoutTo: full.fd,
    });
    await full.close();
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error: standard output: /) as string,
    });
  });
});
