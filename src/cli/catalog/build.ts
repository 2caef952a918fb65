import { buildCatalogImage } from '../../api/images/build-catalog-image.js';
import { requireReferrers } from '../../api/images/image-output.js';
import { invalidValue } from '../../core/errors.js';
import { endWithFindings } from '../bundle/findings.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, list, repeated, text } from '../command/flags.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import {
  describeOutput,
  nextAfterImage,
  imageOutputFlags,
  planImageOutputs,
  readSignBy,
} from '../index/image-output.js';
import { parseLevel } from '../logger.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';
import { parseLabels } from '../root/image-labels.js';
import { describeVerdict } from '../root/verdict.js';

/** `opmate catalog build`; prints the image by digest. On findings, nothing is written and the exit code is 3. */
export const command = defineCommand({
  summary: 'build a catalog image for all platforms and push or save it',
  arguments: [argument('<directory>', 'catalog directory')],
  flags: {
    ...imageOutputFlags,
    baseImage: text(
      'image',
      'base image with opm, or scratch (default: quay.io/operator-framework/opm:latest)',
      { short: 'i' },
    ),
    platforms: list('os/arch', 'platforms to build for (default: all platforms of the base image)', {
      excludes: ['platform'],
    }),
    extraLabels: repeated('key=value', 'additional labels, comma-separated', { short: 'l' }),
    cache: flag('include the serve cache in the image'),
    created: text('time', 'creation time of the image (default: 1970-01-01T00:00:00Z)'),
    sbom: flag('attach an SBOM (SPDX 2.3) of packages, bundles and images that they name', {
      group: 'Output',
    }),
    skipValidation: flag('build an image even if the catalog is invalid'),
  },
  commonFlags: ['baseImage', 'platforms', 'tag', 'push', 'save', 'cache', 'signBy', 'sbom'],
  examples: {
    'Build and push a catalog image':
      'opmate catalog build ./catalog -t registry.example.com/demo/new-catalog:v2 -i scratch',
    'Save the image to a layout directory': 'opmate catalog build ./catalog --save oci:layout:v2 -i scratch',
    'Push the image with an SBOM and a signature':
      'opmate catalog build ./catalog -t registry.example.com/demo/catalog:v2 -i scratch --sbom --sign-by cosign.key',
  },
  async runInSession({ context, args: [directory], options, session }) {
    const planned = planImageOutputs(options);
    const signingKey = await readSignBy(options, context, planned);
    if (options.sbom) requireReferrers('--sbom', planned, 'an SBOM');
    const outputs = planned.map((output) => ({ ...output, signingKey }));
    const labels = parseLabels(options.extraLabels ?? []);
    const created = options.created === undefined ? undefined : parseTime(options.created);
    const { logger } = session;
    const { baseImage, platforms, cache, sbom, skipValidation } = options;
    const { images, files, findings } = await buildCatalogImage(directory, session, {
      outputs,
      platforms,
      labels,
      created,
      baseImage,
      cache,
      sbom,
      skipValidation,
      name: options.tag,
      onChecked: async (verdict, isRefused) => {
        if (isRefused) logger.close();
        await writeAll(context.stderr, describeVerdict(verdict, parseLevel(options)));
      },
    });
    const [first] = images;
    if (first === undefined) return endWithFindings({ context, session }, findings);
    const all = first.platforms.join(', ');
    const built = `built ${count(first.platforms.length, 'image')} from ${count(files, 'file')}: ${all}`;
    const next = nextAfterImage({ to: first.to }, (image) => `opmate serve ${image}`, options);
    reportEnding(logger, [built, ...images.map(describeOutput)], next);
    await writeAll(context.stdout, images.map(({ name }) => `${name}\n`).join(''));
    return exitCodes.done;
  },
});

/** Checks an RFC 3339 time. Throws UsageError. */
function parseTime(text: string): string {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text);
  if (isTime && !Number.isNaN(Date.parse(text))) return text;
  throw invalidValue('--created', text, 'not a time', { hint: 'use a time such as 2026-01-31T12:00:00Z' });
}
