import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();

/** Ends with the whole response, or undefined where the connection breaks. */
function exchange(url: URL, method: string, body?: Buffer): Promise<number | undefined> {
  return new Promise((resolve) => {
    const sent = request(url, { method }, (response) => {
      response.on('end', () => resolve(response.statusCode)).on('error', () => resolve(undefined));
      response.resume();
    });
    sent.on('error', () => resolve(undefined)).end(body);
  });
}

function uploadTo(url: string, bytes: Buffer): { url: URL; digest: string } {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  return { url: new URL(`${url}/v2/a/b/blobs/uploads/?digest=${digest}`), digest };
}

describe('a server that is told to end while clients are at work', () => {
  it('ends with 0 and leaves nothing unfinished: oci serve', { timeout: 120_000 }, async () => {
    // What is under way has 30 s; a server that takes longer is killed, and has no exit code.
    const server = sandbox.start(['oci', 'serve', 'registry', '--port', '0'], { timeoutMs: 60_000 });
    const url = await server.firstLine();
    const large = randomBytes(8_000_000);
    const first = uploadTo(url, large);
    expect(await exchange(first.url, 'POST', large)).toBe(201);
    const blob = new URL(`${url}/v2/a/b/blobs/${first.digest}`);
    let isOver = false;
    const forever = async (work: () => Promise<unknown>): Promise<void> => {
      while (!isOver) if ((await work()) === undefined) await sleep(20);
    };
    const clients = Array.from({ length: 20 }, () => forever(() => exchange(blob, 'GET')));
    for (let i = 0; i < 8; i++)
      clients.push(
        forever(() => {
          const bytes = randomBytes(500_000);
          return exchange(uploadTo(url, bytes).url, 'POST', bytes);
        }),
      );
    const open = () => connect(Number(blob.port), blob.hostname).on('error', () => undefined);
    const get = `GET ${blob.pathname} HTTP/1.1\r\nHost: ${blob.host}\r\n\r\n`;
    for (let i = 0; i < 8; i++)
      clients.push(
        forever(async () => {
          const socket = open();
          socket.write(get.repeat(2));
          await sleep(30);
          socket.resetAndDestroy();
        }),
      );
    const silent = Array.from({ length: 5 }, open);
    const unread = open().pause();
    unread.write(get);
    await sleep(2_000);
    const { code, stderr } = await server.stop();
    isOver = true;
    for (const socket of [...silent, unread]) socket.destroy();
    await Promise.all(clients);
    expect([code, stderr]).toEqual([0, '']);
    expect((await readdir(path.join(sandbox.work, 'registry'))).sort()).toEqual([
      'blobs',
      'index.json',
      'oci-layout',
    ]);
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
