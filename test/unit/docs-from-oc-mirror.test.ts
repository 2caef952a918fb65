import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { run } from '../../src/cli/main.js';
import { loadedTree } from '../../src/cli/man-pages.js';
import { projectRoot } from '../support/command-line.js';
import { directoryWith } from '../support/temporary.js';
import { createWorld } from './cli/world.js';

const page = await readFile(path.join(projectRoot, 'docs', 'from-oc-mirror.md'), 'utf8');
const { program } = await loadedTree();
const mirror = program.commands.find((command) => command.name() === 'mirror');
const remove = mirror?.commands.find((command) => command.name() === 'delete');

/** First and second cell of the table rows that begin with code. */
const rows = [...page.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)].map(
  ([, name, text]) => [name as string, text as string] as const,
);
const flags = rows.filter(([name]) => name.startsWith('--'));
const fields = rows.filter(([name]) => /^[a-z][\w.[\]]*$/i.test(name));

/** Every leaf of a document as the page writes it: `mirror.operators[].catalog`. */
function leavesOf(value: unknown, at: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item) => (typeof item === 'object' ? leavesOf(item, `${at}[]`) : [at]));
  }
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([key, below]) => leavesOf(below, at === '' ? key : `${at}.${key}`));
}

/** Runs opmate in a directory of its own, with the configuration of the page. */
async function opmate(configuration: string, ...args: string[]): Promise<{ code: number; said: string }> {
  const workingDirectory = await directoryWith({ 'imageset.yaml': configuration });
  const world = { ...createWorld(), workingDirectory };
  return { code: await run(args, world), said: world.stderr.text };
}

const example = /```yaml\n([^]*?)```/.exec(page)?.[1] ?? '';

describe('docs/from-oc-mirror.md', () => {
  it('names every field that the example has, and the other way round', () => {
    const [document] = loadAll(example);
    const known = new Set(leavesOf(document, ''));
    for (const own of ['kind', 'apiVersion']) known.delete(own);
    const named = fields.map(([name]) => name).filter((name) => !/platform$|samples$/.test(name));
    expect([...known].sort()).toEqual([...new Set(named)].sort());
  });

  it('has an example whose fields are all supported', async () => {
    // The first thing that cannot work is the template, which is not there.
    const { said } = await opmate(example, 'mirror', '-c', 'imageset.yaml', 'docker://127.0.0.1:1/x');
    expect(said).toContain('catalogsource.yaml');
    expect(said).not.toMatch(/unknown|not supported|expected/);
  });

  it('names every flag that is there for oc-mirror', () => {
    const named = new Set(flags.map(([name]) => name));
    const ofOc = new Set([
      '--certificate-authority',
      '--filter-by-os',
      '--max-registry',
      '--keep-manifest-list',
    ]);
    for (const skipped of ['--skip-multiple-scopes', '--skip-mount']) ofOc.add(skipped);
    const hidden = [mirror, remove].flatMap((command) => command?.options ?? []);
    const missing = hidden
      .filter((option) => option.hidden && !option.flags.includes('='))
      .map((option) => option.long ?? option.flags)
      .filter((flag) => !named.has(flag) && !ofOc.has(flag));
    expect(missing).toEqual([]);
  });

  it.each(flags)('is right about %s', async (flag, text) => {
    const command = [mirror, remove, program].find((one) => one?.options.some(({ long }) => long === flag));
    const option = command?.options.find(({ long }) => long === flag);
    expect(option, flag).toBeDefined();
    const isSwitch = option?.required !== true;
    const value = isSwitch ? [flag] : [flag, '1'];
    if (text.startsWith('refused')) {
      const { code, said } = await opmate('', 'mirror', '-c', 'imageset.yaml', ...value, 'file://out');
      expect({ code, said }).toEqual({
        code: 1,
        said: expect.stringContaining(`${flag}: not supported\nhint: `) as string,
      });
    }
    // `--force-cache-delete` has words of its own.
    const isIdle = /^(?:no effect|ignored)/.test(option?.description ?? '');
    expect(isIdle).toBe(text.startsWith('no effect'));
  });
});
