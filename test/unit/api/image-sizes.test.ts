import { describe, expect, it } from 'vitest';
import { ImageSizes } from '../../../src/api/selection/plan-selection.js';
import { openSourceSession } from '../../../src/source/session.js';
import { sessionOptions } from '../source/session-options.js';

describe('api/selection', () => {
  it('names images that are no references of a registry, and measures the others', async () => {
    const session = await openSourceSession(await sessionOptions());
    const images = ['quay.io/Not/A:name', 'oci:/etc'].map((image) => ({ image, bundles: [] }));
    const { unavailable, bytes } = await new ImageSizes(session).measure(images);
    await session.close();
    expect(unavailable).toEqual(
      images.map(({ image }) => ({ image, reason: 'not a reference of a registry' })),
    );
    expect(bytes.images).toBe(0);
  });
});
