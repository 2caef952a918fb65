import { beforeEach, describe, expect, it } from 'vitest';
import { run } from '../../../src/cli/main.js';
import { catalogOf, widgetCatalog } from '../../e2e/catalogs.js';
import { directoryWith } from '../../support/temporary.js';
import { createWorld } from './world.js';

let directory: string;
beforeEach(async () => {
  directory = await directoryWith({ 'widget/all.json': widgetCatalog });
});

async function outputOf(...args: string[]): Promise<string> {
  const world = createWorld();
  expect([world.stderr.text, await run(args, world)]).toEqual(['', 0]);
  return world.stdout.text;
}

describe('structured output', () => {
  it('lists as JSON', async () => {
    for (const noun of ['packages', 'channels', 'bundles']) {
      const rows = JSON.parse(await outputOf('list', noun, directory, '-o', 'json')) as object[];
      const table = await outputOf('list', noun, directory);
      expect(rows).toHaveLength(table.trimEnd().split('\n').length - 1);
      for (const value of Object.values(rows[0] ?? {}).flat()) expect(table).toContain(String(value));
    }
    const listed = await outputOf('mirror', 'list', 'operators', '--catalog', directory, '-o', 'json');
    expect(JSON.parse(listed)).toMatchObject({ packages: [{ name: 'widget' }] });
  });

  it('lists only selected packages and channels, each as a list or repeatedly', async () => {
    const rows = async (...args: string[]): Promise<{ package: string; channel: string }[]> =>
      JSON.parse(await outputOf('list', ...args, '-o', 'json')) as never;
    const all = await rows('bundles', directory);
    const [first] = all as [(typeof all)[number]];
    const some = await rows('bundles', directory, '-p', 'widget', '--channel', first.channel);
    expect(some).toEqual(all.filter(({ channel }) => channel === first.channel));
    expect(await rows('channels', directory, '--package', 'widget', '--package', 'widget')).toHaveLength(
      new Set(all.map(({ channel }) => channel)).size,
    );
    expect(await rows('packages', directory, '--package', 'widget')).toHaveLength(1);
    const world = createWorld();
    expect(await run(['list', 'packages', directory, '-p', 'wigdet'], world)).toBe(1);
    expect(world.stderr.text).toMatch(/package "wigdet" not found\nhint: did you mean "widget"/);
  });

  it('prints the upgrade graph as JSON, of the packages that are selected', async () => {
    const all = JSON.parse(await outputOf('graph', directory, '-o', 'json')) as {
      channels: { package: string; name: string; heads: string[]; entries: { name: string }[] }[];
    };
    const { channels } = all;
    const bundles = JSON.parse(await outputOf('list', 'bundles', directory, '-o', 'json')) as {
      channel: string;
      bundle: string;
    }[];
    const listed = bundles.map(({ channel, bundle }) => `${channel} ${bundle}`).sort();
    expect(
      channels.flatMap(({ name, entries }) => entries.map((one) => `${name} ${one.name}`)).sort(),
    ).toEqual(listed);
    const first = channels[0]?.package ?? '';
    const selected = JSON.parse(await outputOf('graph', directory, '-p', first, '-o', 'json')) as typeof all;
    expect(selected.channels).toEqual(channels.filter((channel) => channel.package === first));
  });

  it('draws the upgrade graph as SVG, whatever names are in it', async () => {
    const svg = await outputOf('graph', directory, '-o', 'svg');
    expect(svg.match(/<circle /g)).toHaveLength(
      (JSON.parse(await outputOf('list', 'bundles', directory, '-o', 'json')) as object[]).length,
    );
    const odd = await directoryWith({ 'all.json': catalogOf('<script>&"', [{ name: '\u001b</svg>' }]) });
    const escaped = await outputOf('graph', odd, '-o', 'svg');
    expect(escaped).toContain('&lt;script&gt;&amp;&quot;');
    expect(escaped.match(/<\/svg>/g)).toHaveLength(1);
    expect(escaped).not.toContain('\u001b');
  });
});
