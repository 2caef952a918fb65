import { chmod, readFile, readdir, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { renderRepository } from '../../../src/api/repo/render-repository.js';
import { openSourceSession } from '../../../src/source/session.js';
import { type FaultRegistry, sha256 } from '../../support/fault-registry.js';
import {
  basicTemplate,
  ciConfig,
  openRepositoryWorld,
  repositoryWith,
} from '../../support/operator-repository.js';
import { directoryWith } from '../../support/temporary.js';
import { sessionOptions } from '../source/session-options.js';

/** A repository of one operator with three catalogs of two bundles, one by tag and one by digest. */
interface World {
  registry: FaultRegistry;
  cache: string;
  /** Renders in a session of its own, as a process does; returns the states of catalogs, and what was requested. */
  render(check?: boolean): Promise<{ states: string[]; requests: string[] }>;
}

async function openWorld(): Promise<World> {
  const { registry, serve } = await openRepositoryWorld();
  const byTag = await serve('widget', '1.0.0');
  await serve('widget', '1.1.0');
  const manifest = await fetch(`${registry.origin}/v2/ns/bundles/manifests/widget-1.1.0`);
  const digest = sha256(Buffer.from(await manifest.arrayBuffer()));
  const root = await repositoryWith({
    'operators/widget/ci.yaml': ciConfig({ 'a.yaml': ['v4.16', 'v4.18'], 'b.yaml': ['v4.19'] }),
    ...Object.fromEntries(
      ['a.yaml', 'b.yaml'].map((name) => [
        `operators/widget/catalog-templates/${name}`,
        basicTemplate('widget', ['1.0.0', '1.1.0'], [byTag, `${registry.host}/ns/bundles@${digest}`]),
      ]),
    ),
  });
  const cache = await directoryWith();
  return {
    registry,
    cache,
    async render(check = false) {
      const session = await openSourceSession({ ...(await sessionOptions()), catalogCacheDirectory: cache });
      onTestFinished(() => session.close());
      const before = registry.requests.length;
      const { catalogs } = await renderRepository(root, session, { check });
      const requests = registry.requests.slice(before).map(({ method, path: place }) => `${method} ${place}`);
      return { states: catalogs.map(({ state }) => state), requests };
    },
  };
}

async function listEntries(cache: string): Promise<string[]> {
  const entries = await readdir(path.join(cache, 'blobs'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => path.join(parentPath, name));
}

describe('rendering a repository again', () => {
  const manifestOfTag = '/v2/ns/bundles/manifests/widget-1.0.0';
  const unchanged = ['unchanged', 'unchanged', 'unchanged'];
  let world: World;
  let first: string[];

  beforeEach(async () => {
    world = await openWorld();
    const { states, requests } = await world.render();
    expect(states).toEqual(['created', 'created', 'created']);
    first = requests;
  });

  it('requests only the manifest of a tag, and nothing of a digest', async () => {
    expect(first.filter((request) => request.includes('/blobs/'))).toHaveLength(4);
    for (const check of [false, true]) {
      const { states, requests } = await world.render(check);
      expect(states).toEqual(unchanged);
      expect(requests.filter((request) => !request.endsWith(' /v2/'))).toEqual([`GET ${manifestOfTag}`]);
    }
  });

  it('notices that a tag has moved', async () => {
    const moved = await fetch(`${world.registry.origin}/v2/ns/bundles/manifests/widget-1.1.0`);
    world.registry.on({
      path: manifestOfTag,
      respond: {
        headers: { 'content-type': moved.headers.get('content-type') ?? '' },
        body: await moved.text(),
      },
    });
    const { states } = await world.render(true);
    expect(states).toEqual(['changed', 'changed', 'changed']);
  });

  it('reads damaged entries of the cache from the registry again', async () => {
    const entries = await listEntries(world.cache);
    for (const [index, file] of entries.entries()) {
      const { length } = await readFile(file);
      if (index % 2 === 0) await truncate(file, length - 1);
      else await writeFile(file, 'x'.repeat(length));
    }
    const again = await world.render(true);
    expect(again.states).toEqual(unchanged);
    expect(again.requests.filter((request) => request.includes('/blobs/'))).toHaveLength(4);
    const { requests } = await world.render(true);
    expect(requests.filter((request) => request.includes('/blobs/'))).toEqual([]);
  });

  it('does not use a cache that others can write to', async () => {
    await chmod(world.cache, 0o777);
    const { states, requests } = await world.render(true);
    expect(states).toEqual(unchanged);
    expect(requests.sort()).toEqual(first.sort());
  });
});
