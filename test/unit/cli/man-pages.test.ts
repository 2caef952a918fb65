import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { catalogForms } from '../../../src/api/open-catalog.js';
import { collectHelp } from '../../../src/cli/command/loaded-tree.js';
import { manPages } from '../../../src/cli/man-pages.js';
import { projectRoot } from '../../support/command-line.js';
import { directoryWith } from '../../support/temporary.js';

const pages = await manPages('1.2.3');
const { man } = JSON.parse(await readFile(path.join(projectRoot, 'package.json'), 'utf8')) as {
  man?: string[];
};
const has = (name: string): boolean => spawnSync('which', [name]).status === 0;

describe('cli/man-pages', () => {
  it('makes a page of each command, the same each time', async () => {
    expect([...pages.keys()]).toEqual(
      expect.arrayContaining(['opmate.1', 'opmate-catalog.1', 'opmate-list.1']),
    );
    expect([...pages.keys()].join()).not.toMatch(/alpha|help|__complete/);
    expect(await manPages('1.2.3')).toEqual(pages);
    for (const [name, text] of pages) {
      expect(
        text.startsWith(
          `.TH "${name.slice(0, -2).toUpperCase().replaceAll('-', '\\-')}" 1 "" "opmate 1.2.3" `,
        ),
      ).toBe(true);
      // ASCII only, so that no locale matters.
      expect(text).toMatch(/^[\n\x20-\x7e]*$/);
      for (const [, other] of text.matchAll(/^\.BR (\S+) \(1\)/gm)) {
        expect(pages.has(`${(other as string).replaceAll('\\-', '-')}.1`), `${name}: ${other}`).toBe(true);
      }
    }
  });

  it.runIf(man !== undefined)('has its pages installed by npm', () => {
    expect([...(man ?? [])].sort()).toEqual([...pages.keys()].map((name) => `./dist/man/${name}`).sort());
  });

  it('says what arguments and options are', () => {
    const text = pages.get('opmate-catalog.1') as string;
    expect(text).toContain('.SS opmate catalog diff\n');
    expect(text).toContain(`.TP\n.I from\nolder catalog: ${catalogForms}\n`);
    expect(text).toContain('.TP\n.B \\-p, \\-\\-package <name,\\[u2026]>\n');
    expect(text).not.toContain('.B \\-\\-authfile');
    expect(pages.get('opmate.1')).toContain('.B \\-\\-authfile <file>\n');
    expect(pages.get('opmate-mirror.1')).toContain('.B opmate mirror plan\n');
  });

  it.runIf(has('mandoc'))('writes what mandoc has nothing against', async () => {
    for (const [name, file] of await written()) {
      const { stdout, stderr } = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', file], {
        encoding: 'utf8',
      });
      const said = `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
      // It has no date, on purpose.
      expect(said.filter((line) => !line.includes('missing date'))).toEqual([]);
      expect(name).toBe(path.basename(file));
    }
  });

  it.runIf(has('man') && has('groff'))('shows without a warning of groff', async () => {
    for (const [, file] of await written()) {
      const { stdout, stderr, status } = spawnSync('groff', ['-man', '-ww', '-Tutf8', file], {
        encoding: 'utf8',
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toContain('opmate 1.2.3');
    }
  });

  it('shows examples and the environment', () => {
    expect(pages.get('opmate-validate.1')).toContain('opmate validate ./catalog \\-o github');
    expect(pages.get('opmate.1')).toContain('.SH ENVIRONMENT');
  });

  it('collects a summary of every command', async () => {
    const { summaries } = await collectHelp();
    expect(summaries).toMatchObject({ 'opmate validate': 'check a catalog and report every problem' });
    expect(Object.entries(summaries).filter(([, summary]) => summary === '')).toEqual([]);
  });

  it('collects the examples that the help of each group shows', async () => {
    const { examples } = await collectHelp();
    expect(examples['opmate']?.length).toBeGreaterThan(2);
    expect(examples['opmate catalog']?.map(([, line]) => line.split(' ').slice(0, 3).join(' '))).toEqual([
      'opmate catalog doctor',
      'opmate catalog diff',
      'opmate catalog filter',
      'opmate catalog build',
    ]);
  });
});

/** The pages as files. */
async function written(): Promise<[string, string][]> {
  const directory = await directoryWith();
  const files: [string, string][] = [];
  for (const [name, text] of pages) {
    const file = path.join(directory, name);
    await writeFile(file, text);
    files.push([name, file]);
  }
  return files;
}
