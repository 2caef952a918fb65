import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../../src/catalog/catalog.js';
import { readPackageContent } from '../../../src/catalog/package-content.js';
import { OpmateError } from '../../../src/core/errors.js';
import { resolvePackage } from '../../../src/graph/resolve.js';
import { directoryWith } from '../../support/temporary.js';

async function read(...blobs: unknown[]) {
  const lines = blobs.map((blob) => JSON.stringify(blob)).join('\n');
  const catalog = new DirectoryCatalog(await directoryWith({ 'catalog.json': lines }));
  try {
    return await readPackageContent(catalog, 'w');
  } finally {
    await catalog.close();
  }
}

describe('catalog/package-content', () => {
  it('keeps what one package has, and its first deprecations', async () => {
    const content = await read(
      { schema: 'olm.package', name: 'w', defaultChannel: 'x' },
      { schema: 'olm.package', name: 'other', defaultChannel: 7 },
      { schema: 'olm.channel', package: 'w', name: 'x', entries: [{ name: 'w.v1' }] },
      { schema: 'olm.channel', package: 'other', name: 'y', entries: 'none' },
      {
        schema: 'olm.bundle',
        package: 'w',
        name: 'w.v1',
        image: 'reg/w:1',
        properties: [
          { type: 'olm.package', value: { packageName: 'w', version: '1.0.0+3' } },
          { type: 'olm.gvk.required', value: {} },
          { type: 'olm.gvk.required', value: {} },
        ],
      },
      {
        schema: 'olm.deprecations',
        package: 'w',
        entries: [{ reference: { schema: 'olm.package' }, message: 'a' }],
      },
      { schema: 'olm.deprecations', package: 'w', entries: [] },
    );
    expect(content).toMatchObject({
      isFound: true,
      channels: [{ name: 'x', entries: [{ name: 'w.v1' }] }],
      bundles: [
        {
          name: 'w.v1',
          image: 'reg/w:1',
          version: { text: '1.0.0+3', release: [3] },
          dependencies: ['olm.gvk.required'],
        },
      ],
      deprecations: new Map([['olm.package', 'a']]),
    });
    expect((await read({ schema: 'olm.package', name: 'x' })).isFound).toBe(false);
  });

  it('names file and line of a blob that cannot be loaded', async () => {
    const bad = { schema: 'olm.channel', package: 'w', name: 'x', entries: 'none' };
    const error = await read({ schema: 'olm.package', name: 'w' }, bad).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(OpmateError);
    expect((error as OpmateError).line).toBe(2);
  });

  it('reads or refuses any blobs, and what it reads can be resolved', async () => {
    const odd = fc.oneof(
      fc.constantFrom<unknown>(null, 0, true, '', 'w', '1.0.0', '1', [], {}, [null], { name: 'w' }, 2 ** 60),
      fc.constantFrom<unknown>(
        [{ type: 'olm.package', value: { version: '1.0.0' } }],
        [{ type: 'olm.package', value: { version: 1 } }],
        [{ type: 'olm.package', value: { Version: '2.0.0', RELEASE: 'a.b' } }],
        [{ type: 'olm.package' }, { type: 'olm.constraint' }],
        [{ name: 'w', replaces: 'w', skips: ['w'], skipRange: '<2.0.0' }],
        [{ reference: { schema: 'olm.bundle', name: 'w' } }],
      ),
    );
    const blob = fc.record(
      {
        schema: fc.constantFrom('olm.package', 'olm.channel', 'olm.bundle', 'olm.deprecations', 'custom'),
        package: fc.constantFrom<unknown>('w', 'w', 'w', '', null),
        name: fc.oneof(fc.constantFrom<unknown>('w', 'w.v1', 'x'), odd),
        image: odd,
        entries: odd,
        properties: odd,
        relatedImages: odd,
      },
      { requiredKeys: ['schema', 'package'] },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(blob, { minLength: 1, maxLength: 4 }), async (blobs) => {
        const content = await read(...blobs).catch((error: unknown) => {
          expect(error).toBeInstanceOf(OpmateError);
        });
        if (content === undefined) return;
        const request = {
          packageName: 'w',
          versionRange: '>=1',
          channels: [],
          policy: 'self-certified',
        } as const;
        const catalog = { name: 'main', priority: 0, content };
        expect(['resolved', 'none', 'unsupported']).toContain(resolvePackage(request, [catalog]).outcome);
      }),
      { numRuns: 150 },
    );
  });
});
