import { fileURLToPath } from 'node:url';
import { makeUpImages, serveMadeUp } from './support/made-up-registry.js';
import { measure } from './support/measure.js';

export const summary = 'requests and peak memory of planning, copying and repeating the copy of 2,000 images';

const count = 2000;
const maxMegabytes = 200;
const steps = fileURLToPath(new URL('./support/transfer-steps.js', import.meta.url));

export async function run() {
  const made = makeUpImages(count);
  const source = await serveMadeUp(made);
  const target = await serveMadeUp({ images: made.images, blobs: new Map() });
  try {
    const groups = Math.ceil(count / 50);
    const blobs = 2 * count + groups;
    const expected = {
      plan: [{ 'GET manifests': count }, { 'GET tags': count, 'HEAD blobs': count }],
      copy: [
        { 'GET manifests': count, 'GET blobs': blobs },
        {
          'GET tags': count,
          'HEAD blobs': count,
          'POST mount': count - groups,
          'POST blobs/uploads': blobs,
          'PUT blobs/uploads': blobs,
          'PUT manifests': count,
        },
      ],
      again: [{ 'GET manifests': count }, { 'GET tags': count, 'HEAD manifests': count }],
    };
    let good = true;
    for (const [what, [ofSource, ofTarget]] of Object.entries(expected)) {
      const { seconds, megabytes } = await measure(steps, [source.host, target.host, String(count), what]);
      const isRight =
        isSame(source.takeCounts(), ofSource, 'source') && isSame(target.takeCounts(), ofTarget, 'target');
      const fits = megabytes <= maxMegabytes;
      good &&= isRight && fits;
      console.log(
        `  ${what}: ${seconds.toFixed(1)} s, peak ${megabytes.toFixed(0)} MB (limit ${maxMegabytes}), requests ${isRight ? 'as few as can be' : 'too many'}${isRight && fits ? '' : '  EXCEEDED'}`,
      );
    }
    return good;
  } finally {
    source.stop();
    target.stop();
  }
}

/** Whether no more was asked than this; some uploads may begin before it is known that one must. */
function isSame(counts, expected, where) {
  const wrong = [...new Set([...Object.keys(counts), ...Object.keys(expected)])].filter((what) => {
    const slack = what === 'POST blobs/uploads' ? 50 : 0;
    return (counts[what] ?? 0) > (expected[what] ?? 0) + slack;
  });
  for (const what of wrong)
    console.log(`  ${where}: ${what}: ${counts[what] ?? 0} requests, not ${expected[what] ?? 0}`);
  return wrong.length === 0;
}
