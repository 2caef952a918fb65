import { writePieces } from '../session.js';
import { UsageError } from '../../core/errors.js';
import { type VerifiedImage, isAccepted, verifyImages } from '../../api/images/verify-images.js';
import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { encodeData } from '../reports/encode-data.js';
import { printableLine } from '../../core/printable.js';
import { policyFlags, findPolicyRequest } from './policy-flags.js';

/** `opmate verify`; exit code 3 if an image is not verified. */
export const command = defineCommand({
  summary: 'verify the signatures of images',
  arguments: [argument('<references...>', 'images in registries, layouts or archives')],
  flags: {
    ...policyFlags,
    output: outputFormat(['text', 'json'], { default: 'text' }),
  },
  description: 'Exits with 3 if an image is unsigned or refused.',
  examples: {
    'Verify a signature by key': 'opmate verify --key cosign.pub registry.example.com/demo/bundle:v1.0.0',
    'Apply the policy of a host':
      'opmate verify --policy policy.json registry.example.com/demo/bundle:v1.0.0',
  },
  async runInSession({ context, args: [references], options, session }) {
    const request = findPolicyRequest(options);
    if (request === undefined) {
      const hint = 'use one of --policy, --key, or --certificate-identity with --trusted-root';
      throw new UsageError('no signature policy', { hint });
    }
    const registriesDirectory = options['registries.d'];
    const images = await verifyImages(references, session, { ...request, registriesDirectory });
    await writePieces(context, session, options.output === 'json' ? toJson(images) : toText(images));
    return images.every(isAccepted) ? exitCodes.done : exitCodes.findings;
  },
});

function toText(images: readonly VerifiedImage[]): string {
  return images
    .map(({ image, digest, status, reason }) => `${image}: ${status}: ${reason}\n  ${digest}\n`)
    .map((lines) => lines.split('\n').map(printableLine).join('\n'))
    .join('');
}

function toJson(images: readonly VerifiedImage[]): string {
  const list = images.map(({ image, digest, status, reason }) => ({ image, digest, status, reason }));
  return encodeData({ images: list }, 'json');
}
