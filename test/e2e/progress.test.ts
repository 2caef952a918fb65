/** The progress line, on a pseudo-terminal that `script` of util-linux opens. */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandWords, useSandbox } from '../support/command-line.js';
import { bytesOf, descriptorOf } from '../support/images.js';
import { mediaTypes } from '../../src/oci/image/types.js';

const sandbox = useSandbox();
const hasScript = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux');

const config = bytesOf({ architecture: 'amd64', os: 'linux', config: {}, rootfs: { type: 'layers' } });
const layer = randomBytes(8 * 1024 * 1024);
const manifest = bytesOf({
  schemaVersion: 2,
  mediaType: mediaTypes.ociManifest,
  config: descriptorOf(config, mediaTypes.ociConfig),
  layers: [descriptorOf(layer)],
});

const steps = 32;

/** Sends the next part of the layer, of `steps`. */
let sendNext: () => void = () => undefined;
let isPaced = true;
let server: Server;
let registry = '';

beforeAll(async () => {
  server = createServer((request, response) => {
    const { digest } = descriptorOf(layer);
    if (request.url === '/v2/') return response.end('{}');
    if (request.url?.includes('/manifests/')) {
      const { digest: manifestDigest, size } = descriptorOf(manifest);
      response.setHeader('content-type', mediaTypes.ociManifest);
      response.setHeader('docker-content-digest', manifestDigest).setHeader('content-length', size);
      return response.end(request.method === 'HEAD' ? undefined : manifest);
    }
    if (!request.url?.endsWith(digest)) return response.end(config);
    response.setHeader('content-length', layer.length);
    if (!isPaced) return response.end(layer);
    let sent = 0;
    sendNext = () => {
      const part = layer.subarray((layer.length / steps) * sent, (layer.length / steps) * ++sent);
      if (sent === steps) sendNext = () => undefined;
      response.write(part, () => sent === steps && response.end());
    };
    return sendNext();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  registry = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

/** Runs opmate on a terminal of 100 columns, where every frame asks for the next part; returns all that it shows. */
function runOnTerminal(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const words = [...commandWords, ...args].map((word) => `'${word}'`);
  const child = spawn('script', ['-qec', `stty cols 100 rows 30; ${words.join(' ')}`, '/dev/null'], {
    cwd: sandbox.work,
    env: { PATH: process.env['PATH'], ...sandbox.environment(), TERM: 'xterm', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    sendNext();
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => resolve(shown));
  });
}

describe.skipIf(!hasScript)('progress on a terminal', () => {
  it('shows percent, bytes, rate, time left and the image, then clears the line', async () => {
    const shown = await runOnTerminal(['mirror', `${registry}/demo/image:v1=file://out`, '--use-http']);
    expect(shown).toMatch(
      /mirror \d\d%, \d\.\d MiB of 8\.0 MiB, [\d.]+ [KM]iB\/s, \d+s left · 127\.0\.0\.1:\d+\/demo\/image:v1/,
    );
    const end = shown.slice(shown.lastIndexOf('%'));
    // Erases the line, then writes the summary.
    expect(end).toMatch(/\u001b\[0K.*info: mirrored 1 image: copied 2 blobs, 8\.0 MiB/);
    expect(end).not.toContain('working');
  });

  it('colors nothing with NO_COLOR, and shows no progress in CI', async () => {
    isPaced = false;
    const args = ['mirror', `${registry}/demo/image:v1=file://again`, '--use-http'];
    const shown = await runOnTerminal(args, { NO_COLOR: '1', CI: 'true' });
    expect(shown).toContain('mirrored 1 image');
    expect(shown).not.toContain('\u001b');
  });
});
