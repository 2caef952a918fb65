/** Flags, destinations and messages of the commands that build images. */
import type { KeyObject } from 'node:crypto';
import {
  type ImageOutput,
  type StoredImage,
  readSigningKey,
  requireReferrers,
} from '../../api/images/image-output.js';
import { invalidValue } from '../../core/errors.js';
import { type RegistryReference, parseReference, parseTargetReference } from '../../core/reference.js';
import { type FlagValues, flag, grouped, requiredUnless, text } from '../command/flags.js';
import { type GlobalOptions, registryFlags } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import { formatFlags } from '../ending.js';
import { amountOfBytes, count, shellWord } from '../printable.js';

/** `--sign-by` of commands that push or save images. */
export const signByFlag = text('file', 'private key to sign the image with (PEM or cosign format)', {
  group: 'Output',
});

const tagFlag = text('reference', 'image reference to push; with --save, name of the saved image', {
  short: 't',
});

/** Flags of the commands that build images. */
export const imageOutputFlags = {
  ...grouped('Output', {
    tag: requiredUnless(['save'], tagFlag),
    push: flag('with --save: also push the image to --tag', { needs: 'tag' }),
    save: text('destination', 'save to oci:DIR[:TAG], oci-archive:FILE[:TAG] or docker-archive:FILE'),
  }),
  signBy: signByFlag,
};

/** Returns the flags of a command that builds an image only with the flag `needs`. */
export function imageOutputFlagsWith(needs: string): typeof imageOutputFlags {
  const { push, save, signBy } = imageOutputFlags;
  return {
    ...grouped('Output', { tag: { ...tagFlag, needs }, push, save: { ...save, needs } }),
    signBy: { ...signBy, needs },
  };
}

/**
 * Reads the key of `--sign-by`, if set. Throws what `readSigningKey` throws, and UsageError for outputs without
 * signatures.
 */
export async function readSignBy(
  { signBy }: { signBy?: string | undefined },
  context: CommandContext,
  outputs: readonly ImageOutput[] = [],
): Promise<KeyObject | undefined> {
  if (signBy === undefined) return undefined;
  requireReferrers('--sign-by', outputs, 'signatures');
  return readSigningKey(signBy, context);
}

/** Returns the outputs of an image, each with the signing key of `--sign-by`. Throws UsageError as its parts do. */
export async function planSignedOutputs(
  options: FlagValues<typeof imageOutputFlags>,
  context: CommandContext,
): Promise<(ImageOutput & { signingKey: KeyObject | undefined })[]> {
  const planned = planImageOutputs(options);
  const signingKey = await readSignBy(options, context, planned);
  return planned.map((output) => ({ ...output, signingKey }));
}

/** Returns the destinations of an image: `--save`, and `--tag` unless saved without `--push`. Throws UsageError. */
export function planImageOutputs({ tag, push, save }: FlagValues<typeof imageOutputFlags>): ImageOutput[] {
  const name = tag === undefined ? undefined : parseTag(tag);
  const outputs: ImageOutput[] = [];
  if (name !== undefined && tag !== undefined && (push === true || save === undefined)) {
    outputs.push({ to: parseTargetReference(tag) as RegistryReference });
  }
  if (save !== undefined) {
    const to = parseReference(save);
    if (to.transport === 'docker' || to.digest !== undefined) {
      throw invalidValue('--save', save, 'expected an image in a file or directory', {
        hint: 'use oci:DIR[:TAG], oci-archive:FILE[:TAG] or docker-archive:FILE',
      });
    }
    const whole = name && `${name.registry}/${name.repository}:${name.tag}`;
    outputs.push({ to: { ...to, tag: to.tag ?? name?.tag ?? 'latest' }, name: to.tag ?? whole });
  }
  return outputs;
}

/** Throws UsageError unless a reference names a tag in a registry. */
function parseTag(text: string): RegistryReference {
  const reference = parseReference(text);
  if (reference.transport !== 'docker') {
    throw invalidValue('--tag', text, 'not a place in a registry', {
      hint: `save the image there with --save ${text}`,
    });
  }
  if (reference.digest !== undefined || reference.tag === undefined) {
    const problem = reference.digest === undefined ? 'missing tag' : 'names a digest';
    throw invalidValue('--tag', text, problem, {
      hint: 'specify the image, e.g. registry.example.com/ns/catalog:v1',
    });
  }
  return reference;
}

/** Returns the line for an image: its name and the size of its new layers, or that it is up to date. */
export function describeOutput({ to, platforms, layerBytes, isUnchanged }: StoredImage): string {
  if (isUnchanged) return `${to.text}: already up to date`;
  const amount = `${count(platforms.length, 'image')}, ${amountOfBytes(layerBytes)} in new layers`;
  return `${to.transport === 'docker' ? 'pushed' : 'saved'} ${to.text}: ${amount}`;
}

/**
 * Returns the command that usually follows: `use` for a pushed image, with the options that reach its registry, `push`
 * for a saved one. `name` replaces the name by tag.
 */
export function nextAfterImage(
  { to, name = to.text }: Pick<ImageOutput, 'to'> & { name?: string | undefined },
  use: (image: string) => string,
  options: GlobalOptions & { tag?: string | undefined },
  push = 'opmate oci copy',
): string {
  if (to.transport === 'docker') return `${use(shellWord(name))}${formatFlags(registryFlags, options)}`;
  return `${push} ${shellWord(to.text)} ${shellWord(options.tag || 'REGISTRY/NAME:TAG')}`;
}
