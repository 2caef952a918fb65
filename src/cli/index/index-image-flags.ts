import { type Flag, flag, grouped, text } from '../command/flags.js';
import { signByFlag } from './image-output-flags.js';

/** Returns `--from-index`. */
export function fromIndex(summary: string): Flag<string | undefined> {
  return text('image', summary, { short: 'f', group: 'Input' });
}

/** Flags of every command that builds an index image. */
export const indexImageFlags = {
  binaryImage: text(
    'image',
    'base image, from a registry or layout, or scratch (default: quay.io/operator-framework/opm:v1.73.0)',
    { short: 'i', group: 'Input' },
  ),
  ...grouped('Output', {
    tag: text('reference', 'image reference to push to', { short: 't' }),
    save: text('file', 'write the image to an oci-archive file'),
    generate: flag('write ./database/index.db and a Dockerfile instead of an image'),
  }),
  signBy: signByFlag,
  outDockerfile: text('file', 'Dockerfile name (default: index.Dockerfile)', { short: 'd', group: 'Output' }),
};

/** Description of the base image, for help. */
export const baseImageNote =
  'The default base is the last release of opm that serves databases. For reproducible images, pin the base by digest ' +
  '(--binary-image …@sha256:…). On a multi-platform base, one image per platform is built; --platform selects one.';

const toolTraits = { choices: ['none', 'docker', 'podman'] };
const toolSummary = 'ignored; accepted for compatibility';

/** `--container-tool`, which has no effect. */
export const containerToolFlag = text('tool', toolSummary, { ...toolTraits, short: 'c' });

/** Flags of `opm` for container engines, which have no effect. */
export const toolFlags = {
  containerTool: containerToolFlag,
  buildTool: text('tool', toolSummary, { ...toolTraits, short: 'u' }),
  pullTool: text('tool', toolSummary, { ...toolTraits, short: 'p' }),
};
