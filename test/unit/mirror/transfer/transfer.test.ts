import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseReference } from '../../../../src/core/reference.js';
import { transferImages } from '../../../../src/mirror/transfer/transfer.js';
import type { Transfer, TransferOptions } from '../../../../src/mirror/transfer/transfer-types.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import { type Workbench, failureOf, openWorkbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import { type SmallImage, serveImage, smallImage } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';

let bench: Workbench;
let source: FaultRegistry;
let directory: string;

beforeEach(async () => {
  bench = await openWorkbench();
  source = await startFaultRegistry();
  directory = await directoryWith();
});
afterEach(async () => {
  await bench.close();
  await source.close();
});

const imageOf = (i: number): SmallImage => smallImage({ text: `layer ${i}`, labels: { i: String(i) } });

/** `count` images of the source, to be put into one layout. */
function transfersOf(count: number, more: Partial<Transfer> = {}): Transfer[] {
  return Array.from({ length: count }, (_, i) => ({
    source: parseReference(`${source.host}/ns/app:v${i}`),
    target: { transport: 'oci' as const, text: '', path: `${directory}/v2`, tag: `ns/app:v${i}` },
    sourceName: `source v${i}`,
    targetName: `target v${i}`,
    ...more,
  }));
}

const serve = (count: number): void => {
  for (let i = 0; i < count; i++) serveImage(source, 'ns/app', `v${i}`, imageOf(i));
};

const session = { connect: () => bench.connect({ useHttp: true, maxAttempts: 1 }) };
const run = (transfers: readonly Transfer[], more: Partial<TransferOptions> = {}) =>
  transferImages(transfers, {
    session,
    maxPerRegistry: 4,
    continueOnError: true,
    skipMissing: true,
    ...more,
  });

const tagsThere = async (): Promise<string[]> => (await openLayout(`${directory}/v2`)).listTags();

describe('mirror/transfer', () => {
  it('copies all and tells what was sent; a second time nothing is', async () => {
    serve(5);
    const report = await run(transfersOf(5));
    expect(report.done.map(({ digest }) => digest)).toEqual(
      Array.from({ length: 5 }, (_, i) => imageOf(i).descriptor.digest),
    );
    expect(report).toMatchObject({ missing: [], failed: [], blobs: 10 });
    expect(await tagsThere()).toEqual(['ns/app:v0', 'ns/app:v1', 'ns/app:v2', 'ns/app:v3', 'ns/app:v4']);
    expect(await run(transfersOf(5))).toMatchObject({ blobs: 0, bytes: 0 });
  });

  it('copies what is last when all else is done', async () => {
    serve(3);
    const [first, ...others] = transfersOf(3) as [Transfer, ...Transfer[]];
    await run([{ ...first, isLast: true }, ...others]);
    const order = source.requests.map(({ path }) => path).filter((path) => path.includes('/blobs/'));
    const { config, layers } = imageOf(0).manifest;
    const ofLast = [config, ...layers].map(({ digest }) => `/v2/ns/app/blobs/${digest}`);
    expect(order).toHaveLength(6);
    expect(order.slice(-2).sort()).toEqual(ofLast.sort());
  });

  it('tells images that are not there from images that cannot be had', async () => {
    serve(3);
    source.on({ path: '/v2/ns/app/manifests/v3', respond: { status: 404 } });
    // Its manifest is there, its layer is not.
    const layer = imageOf(1).manifest.layers[0]?.digest;
    source.on({ path: `/v2/ns/app/blobs/${layer}`, respond: { status: 404 } });
    const report = await run(transfersOf(4));
    expect(report.done.map(({ transfer }) => transfer.sourceName)).toEqual(['source v0', 'source v2']);
    expect(report.missing.map(({ sourceName }) => sourceName)).toEqual(['source v3']);
    expect(report.failed.map(({ transfer }) => transfer.sourceName)).toEqual(['source v1']);
    expect(await tagsThere()).toEqual(['ns/app:v0', 'ns/app:v2']);
  });

  it('stops at the first failure where it is told to', async () => {
    const options = { continueOnError: false, skipMissing: false };
    const error = await failureOf(run(transfersOf(1), options));
    expect(error).toMatchObject({ code: 'NOT_FOUND', message: 'source v0: not found' });
  });

  it('begins no request after the failure that it stops at', async () => {
    serve(40);
    source.on({ path: /\/blobs\//, respond: { status: 403 } });
    const options = { continueOnError: false, maxPerRegistry: 2 };
    expect(await failureOf(run(transfersOf(40), options))).toMatchObject({ code: 'AUTH' });
    // Eight images have begun; their two blobs each would be sixteen requests.
    expect(source.requests.filter(({ path }) => path.includes('/blobs/')).length).toBeLessThanOrEqual(12);
  });

  it('names what needs a missing image, and the way out of the run', async () => {
    const [transfer] = transfersOf(1) as [Transfer];
    const options = { continueOnError: false, skipMissing: false };
    const failure = await failureOf(run([{ ...transfer, neededBy: 'bundle "b"' }], options));
    expect(failure.message).toBe('source v0: not found: bundle "b" needs it');
    expect(failure.hint).toBe('check the name and tag, or skip it with options.skipMissing');
    const hints = { missing: 'plan again', unreachable: 'wait' };
    expect(await failureOf(run([transfer], { ...options, hints }))).toMatchObject({ hint: 'plan again' });
  });

  it('gives up where nothing answers, and where the disk fails', async () => {
    source.on({ path: /./, respond: { reset: true } });
    expect(await failureOf(run(transfersOf(50)))).toMatchObject({ code: 'NETWORK' });
    expect(source.requests.length).toBeLessThan(50);
    const onFile = { transport: 'oci' as const, text: '', path: '/dev/null/x', tag: 'a:1' };
    const fresh = await startFaultRegistry();
    try {
      serveImage(fresh, 'ns/app', 'v0', imageOf(0));
      const transfer = {
        ...(transfersOf(1)[0] as Transfer),
        source: parseReference(`${fresh.host}/ns/app:v0`),
      };
      expect(await failureOf(run([{ ...transfer, target: onFile }]))).toMatchObject({ code: 'IO' });
    } finally {
      await fresh.close();
    }
  });

  it('looks for images only, where it is told to', async () => {
    serve(2);
    const report = await run(transfersOf(3), { dryRun: true });
    expect(report.done).toHaveLength(2);
    expect(report.missing).toHaveLength(1);
    expect(source.requests.every(({ method }) => method === 'HEAD')).toBe(true);
  });

  it('stops when it is cancelled, and can be repeated', async () => {
    serve(20);
    await run(transfersOf(1));
    const cancel = new AbortController();
    source.on({
      path: `/v2/ns/app/blobs/${imageOf(7).manifest.config.digest}`,
      times: 1,
      respond: () => {
        cancel.abort();
        return { status: 500 };
      },
    });
    expect(
      await failureOf(run(transfersOf(20), { session: { ...session, signal: cancel.signal } })),
    ).toMatchObject({
      code: 'CANCELLED',
    });
    expect((await tagsThere()).length).toBeLessThan(20);
    expect((await run(transfersOf(20))).done).toHaveLength(20);
    expect(await tagsThere()).toHaveLength(20);
  });
});
