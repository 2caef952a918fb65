import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/command-line.js';
import { directoryWith } from '../support/temporary.js';

const ciFile = (name: string): string => path.join(projectRoot, '.ci', name);

/** Returns the lines that CI repeats of a run with this output and exit status. */
const summarize = (output: string, status = 1): string[] =>
  spawnSync(process.execPath, [ciFile('failures.js'), 'npm test', `${status}`], {
    input: output,
    encoding: 'utf8',
  }).stdout.split('\n');

describe('the failures that CI repeats at the end', () => {
  it('are the names and messages of tests, of files that did not load, and of errors outside tests', async () => {
    const vitest = path.join(projectRoot, 'node_modules', 'vitest');
    const tests = [
      'import { describe, expect, it } from "vitest";',
      'describe("a bundle", () => { it("has a name", () => { expect("x").toBe("y"); }); });',
      'it("ends", () => undefined);',
      'let tries = 0;',
      'it("is late", () => { expect(tries++).toBe(1); });',
      'it.each([1, 2])("counts %i", () => { expect(1).toBe(3); });',
      'it("leaks", () => { setTimeout(() => { throw new Error("late"); }, 1); });',
      'it("waits", () => new Promise((resolve) => { setTimeout(resolve, 50); }));',
    ];
    const directory = await directoryWith({
      'package.json': '{ "type": "module" }',
      'a.test.js': tests
        .join('\n')
        .replace('"vitest"', JSON.stringify(path.join(vitest, 'dist', 'index.js'))),
      'b.test.js': 'import "./missing.js";',
    });
    const reporters = ['--reporter=default', `--reporter=${ciFile('second-try.js')}`];
    const run = [path.join(vitest, 'vitest.mjs'), 'run', '--root', directory, '--retry=1', ...reporters];
    const { stdout, stderr } = spawnSync(process.execPath, run, { encoding: 'utf8', cwd: directory });
    const lines = summarize(stdout + stderr);
    const start = lines.indexOf('-- failed: npm test');
    expect(lines.slice(0, 3)).toEqual([
      '-- passed at the second try: npm test',
      '  RETRY  a.test.js > is late',
      expect.stringContaining('AssertionError: expected +0 to be 1'),
    ]);
    const text = lines.slice(start).join('\n');
    expect(text).toContain(
      "FAIL  a.test.js > a bundle > has a name\n  AssertionError: expected 'x' to be 'y'",
    );
    expect(text).toContain('FAIL  a.test.js > counts 1\n  FAIL  a.test.js > counts 2\n  AssertionError');
    expect(text).toContain('FAIL  b.test.js [ b.test.js ]\n  Error: Cannot find module');
    expect(text).toMatch(/Uncaught Exception .*\n {2}Error: late/);
    expect(text).not.toContain('ends');
  });

  it('are the recorded answers that differ', () => {
    const compared = [
      'list: 3 of 3 match (0.1 s)',
      'sqlite: 1 of 2 match (0.1 s)',
      '  a/b: line 1: got "x", wanted "y"',
      '4 passed, 1 failed',
    ];
    expect(summarize(compared.join('\n'))).toEqual([
      '-- failed: npm test',
      '  a/b: line 1: got "x", wanted "y"',
      '',
    ]);
  });

  it('are none of a run that passed, and the last lines of other output', () => {
    expect(summarize(' FAIL  in a text\n', 0)).toEqual(['']);
    expect(summarize('src/a.ts:1:1 error\n\n1 problem\n')).toEqual([
      '-- failed: npm test',
      '  src/a.ts:1:1 error',
      '  1 problem',
      '',
    ]);
  });

  it('are at most 30, in a bounded number of lines', () => {
    const failure = (i: number): string => ` FAIL  a > ${i}\nError: x\n${'y\n'.repeat(100)}`;
    const lines = summarize(Array.from({ length: 50 }, (_, i) => failure(i)).join('\n'));
    expect(lines.length).toBeLessThan(120);
    expect(lines).toContain('  FAIL  a > 29');
    expect(lines).not.toContain('  FAIL  a > 30');
    expect(lines).toContain('  … and 20 more');
  });
});
