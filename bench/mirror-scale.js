// Mirroring many images with the command line, against a registry that makes them up: OPMATE_SCALE=50000 for the full form.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createChecks } from './support/frame.js';
import { makeUpImages, serveMadeUp } from './support/made-up-registry.js';
import { measure, opmate } from './support/measure.js';

export const summary =
  'plan, dry run and copy of an image set of 1,000 images (OPMATE_SCALE=50000: as many), in one process and in four';

const count = Number(process.env.OPMATE_SCALE ?? 1000);
const shards = 4;

export async function run() {
  const { check, passed } = createChecks();
  const made = makeUpImages(count);
  const source = await serveMadeUp(made);
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-bench-scale-'));
  const names = Array.from({ length: count }, (_, i) => `  - name: ${source.host}/image/${i}:v1\n`);
  const file = path.join(directory, 'imageset.yaml');
  writeFileSync(
    file,
    `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n${names.join('')}`,
  );
  const target = await serveMadeUp({ images: made.images, blobs: new Map() });
  const others = await serveMadeUp({ images: made.images, blobs: new Map() });
  const mirror = async (name, { host }, workspace, ...more) => {
    const [command, ...flags] = more[0] === 'plan' ? ['plan', ...more.slice(1)] : ['', ...more];
    const words = ['mirror', ...(command === '' ? [] : [command]), '-c', file, ...flags];
    const place = [
      '--workspace',
      `file://${path.join(directory, workspace)}`,
      `docker://${host}`,
      '--use-http',
    ];
    const before = process.cpuUsage();
    const { seconds, processor, megabytes } = await measure(opmate, [...words, ...place], {
      HOME: directory,
    });
    const { user, system } = process.cpuUsage(before);
    const registry = (user + system) / 1e6;
    const requests = [source, target, others].flatMap((each) => Object.values(each.takeCounts()));
    const perImage = requests.reduce((sum, each) => sum + each, 0) / count;
    console.log(
      `  ${name}: ${seconds.toFixed(1)} s, processor time ${processor.toFixed(1)} s, ${((processor / count) * 1000).toFixed(2)} ms per image, ` +
        `peak ${megabytes.toFixed(0)} MB, ` +
        `${perImage.toFixed(1)} requests per image, registry busy ${registry.toFixed(1)} s`,
    );
    return { seconds, megabytes, perImage };
  };
  try {
    await mirror('plan', target, 'one', 'plan');
    await mirror('dry run', target, 'one', '--dry-run');
    const whole = await mirror('copy', target, 'one');
    await mirror('copy again', target, 'one');
    await mirror('plan for the shards', others, 'many', 'plan');
    // At the same time, as on several machines: a shard waits for blobs that another one sends.
    const parts = await Promise.all(
      Array.from({ length: shards }, (_, i) =>
        mirror(`copy, shard ${i} of ${shards}`, others, 'many', '--locked', '--shard', `${i}/${shards}`),
      ),
    );
    const megabytes = Math.max(...parts.map((part) => part.megabytes));
    const requests = parts.reduce((sum, { perImage }) => sum + perImage, 0);
    check('memory of a shard / of the whole', megabytes / whole.megabytes, '×', { atMost: 1.1 });
    check('requests of all shards / of the whole', requests / whole.perImage, '×', { atMost: 2 });
    check('requests per image of a copy', whole.perImage, '', { atMost: 20 });
    return passed();
  } finally {
    for (const server of [source, target, others]) server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}
