import type { BasicTemplate, TemplateImage } from '../../catalog/template/template.js';
import type { BundleFacts } from '../../model/facts.js';
import { describeBundle } from '../../model/describe.js';
import type { TemplateRun } from './template-run.js';

/** Adds the entries of a basic template, with the bundles of its images. */
export async function renderBasic(run: TemplateRun, template: BasicTemplate): Promise<void> {
  const images: (TemplateImage & { position: number })[] = [];
  for (const [position, { blob, path }] of template.entries.entries()) {
    if (blob.kind === 'bundle') images.push({ image: blob.blob.image, path, position });
    else await run.addEntry(blob, position, run.getOrigin(position));
  }
  const bundles = new Map<number, BundleFacts>();
  await run.fetch(images, async (blob, _csvText, places) => {
    for (const place of places) {
      const { position } = images[place] as { position: number };
      bundles.set(position, describeBundle(blob, run.getOrigin(position)));
      await run.assembly.addBundle(blob, position);
    }
  });
  const inOrder = [...bundles].sort(([a], [b]) => a - b);
  run.facts.bundles.push(...inOrder.map(([, facts]) => facts));
}
