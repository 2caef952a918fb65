import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CatalogFacts, CancelledError, OpmateError } from '../../../src/index.js';
import { loadCatalog } from '../../../src/api/load-catalog.js';
import { render } from '../../../src/api/render-catalog.js';
import { validate } from '../../../src/api/validate-catalog.js';
import { type Session, openSourceSession } from '../../../src/source/session.js';
import { catalogOf, widgetCatalog } from '../../e2e/catalogs.js';
import { makeCatalogImage, serveBuilt } from '../../e2e/images.js';
import { bundlesDirectory } from '../../support/command-line.js';
import { failureOf } from '../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../support/fault-registry.js';
import { directoryWith } from '../../support/temporary.js';
import { sessionOptions } from '../source/session-options.js';

let registry: FaultRegistry;
beforeAll(async () => {
  registry = await startFaultRegistry();
  const image = await makeCatalogImage({ 'all.json': widgetCatalog });
  serveBuilt(registry, 'ns/widget', 'v1', image);
  serveBuilt(registry, 'ns/slow', 'v1', image);
  for (const { descriptor, bytes } of image.layers) {
    registry.on({
      path: `/v2/ns/slow/blobs/${descriptor.digest}`,
      respond: { body: bytes, drip: { bytes: 1, everyMs: 100 } },
    });
  }
});
afterAll(() => registry.close());

async function textOf(pieces: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece.toString();
  return text;
}

describe('api/catalogs', () => {
  it('renders a blob a piece, and the second time the same', async () => {
    const session = await openSourceSession(await sessionOptions());
    const directory = await directoryWith({ 'all.json': widgetCatalog });
    const pieces: string[] = [];
    for await (const piece of render([directory], session)) pieces.push(piece.toString());
    expect(pieces).toHaveLength(7);
    for (const piece of pieces) expect(JSON.parse(piece)).toHaveProperty('schema');
    const again = await directoryWith({ 'all.json': pieces.join('') });
    expect(await textOf(render([again], session))).toBe(pieces.join(''));
    expect(await textOf(render([again], session, { format: 'yaml' }))).toMatch(/^---\n/);
    await session.close();
  });

  it('releases what it opened when the reader stops early', async () => {
    const options = await sessionOptions();
    const session = await openSourceSession(options);
    for await (const piece of render([`${registry.host}/ns/widget:v1`], session)) {
      expect(piece.length).toBeGreaterThan(0);
      break;
    }
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
    await session.close();
  });

  it('keeps an image on disk until the catalog is closed, and reads blobs again one by one', async () => {
    const options = await sessionOptions();
    const session = await openSourceSession(options);
    const catalog = await loadCatalog(`${registry.host}/ns/widget:v1`, session);
    expect(await readdir(options.temporaryDirectory)).toHaveLength(1);
    const facts: CatalogFacts = await catalog.facts();
    expect(facts.bundles).toHaveLength(4);
    for await (const meta of catalog.metas()) {
      expect(await catalog.read(meta.origin)).toEqual(meta.value);
      expect(await catalog.lineOf(meta.origin)).toBeGreaterThan(0);
    }
    await catalog.close();
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
    await session.close();
  });

  it('reports problems as data, and throws only for what cannot be read', async () => {
    const session = await openSourceSession(await sessionOptions());
    const two = catalogOf('widget', [{ name: 'widget.v1' }, { name: 'widget.v2' }]);
    const report = await validate(await directoryWith({ 'all.json': two }), session);
    expect(report.passed).toBe(false);
    expect(report.message).toContain('multiple channel heads found in graph');
    const broken = await directoryWith({ 'a/all.json': '{"schema":"olm.package",\n"name":' });
    const error = (await failureOf(validate(broken, session))) as OpmateError;
    expect(error).toBeInstanceOf(OpmateError);
    expect(error.file).toBe(path.join(broken, 'a/all.json'));
    expect(error.line).toBeGreaterThan(0);
    const bundle = path.join(bundlesDirectory, 'microcks/0.3.0');
    expect(await failureOf(loadCatalog(bundle, session))).toMatchObject({ code: 'UNSUPPORTED' });
    await session.close();
  });

  const works: [string, (reference: string, session: Session) => Promise<unknown>][] = [
    ['render', (reference, session) => textOf(render([reference], session))],
    ['validate', (reference, session) => validate(reference, session)],
    ['loadCatalog', (reference, session) => loadCatalog(reference, session)],
  ];

  it.each(works)('stops %s in the middle of a slow pull and leaves nothing', async (_name, work) => {
    const cancel = new AbortController();
    const options = await sessionOptions({ signal: cancel.signal });
    const cache = path.join(options.homeDirectory, 'cache');
    const session = await openSourceSession({
      ...options,
      environment: { ...options.environment, OPMATE_CACHE_DIR: cache },
    });
    const before = registry.requests.length;
    const running = failureOf(work(`${registry.host}/ns/slow:v1`, session));
    await expect
      .poll(
        () => registry.requests.slice(before).filter(({ path: at }) => at.includes('/slow/blobs/')).length,
      )
      .toBe(2);
    cancel.abort();
    expect(await running).toBeInstanceOf(CancelledError);
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
    expect(await readdir(path.join(cache, 'tmp'))).toEqual([]);
    await session.close();
    await expect.poll(() => registry.openConnections()).toBe(0);
  });

  it.each(works)('does not begin %s when it was cancelled before', async (_name, work) => {
    const session = await openSourceSession(await sessionOptions({ signal: AbortSignal.abort() }));
    const directory = await directoryWith({ 'all.json': widgetCatalog });
    const before = registry.requests.length;
    if (_name !== 'loadCatalog')
      expect(await failureOf(work(directory, session))).toBeInstanceOf(CancelledError);
    expect(await failureOf(work(`${registry.host}/ns/widget:v1`, session))).toBeInstanceOf(CancelledError);
    expect(registry.requests).toHaveLength(before);
    await session.close();
  });

  it('stops rendering between two blobs', async () => {
    const cancel = new AbortController();
    const session = await openSourceSession(await sessionOptions({ signal: cancel.signal }));
    const entries = Array.from({ length: 3000 }, (_, i) => ({ name: `widget.v${i}` }));
    const directory = await directoryWith({ 'all.json': catalogOf('widget', entries) });
    let pieces = 0;
    const reading = async (): Promise<void> => {
      for await (const piece of render([directory], session)) {
        pieces += piece.length > 0 ? 1 : 0;
        if (pieces === 10) cancel.abort();
      }
    };
    expect(await failureOf(reading())).toBeInstanceOf(CancelledError);
    expect(pieces).toBeLessThan(3000);
    await session.close();
  });
});
