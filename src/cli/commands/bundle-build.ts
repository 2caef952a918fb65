import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { withTemporaryDirectory } from '../../archive/temporary-directory.js';
import { type PrepareOptions, buildBundleImages, prepareBundle } from '../../bundle/author/build.js';
import { type BundleRequest, shownPath } from '../../bundle/author/generate.js';
import { writeFiles } from '../../bundle/author/write-files.js';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json.js';
import { type Reference, type RegistryReference, parseReference } from '../../core/reference.js';
import type { BuiltImage } from '../../oci/image-builder.js';
import { openTarget } from '../../oci/open.js';
import { subjectOf } from '../../oci/platform.js';
import { replacedFile } from '../../oci/replaced-file.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { booleanOf } from '../options.js';
import { writeAll } from '../output.js';
import { type CommandSession, openOptionsOf, useSession } from '../session.js';
import { tellFindings, tellWarnings } from './bundle-findings.js';
import { type BundleAuthorOptions, requestOf } from './bundle-generate.js';
import { openBase, pushIndexImages } from './index-edit.js';

interface BundleBuildOptions extends BundleAuthorOptions {
  tag?: string;
  push?: boolean;
  save?: string;
  imageBuilder?: string;
}

/**
 * `opmate bundle build`: the image of a bundle, pushed or saved. Prints what it is called, by digest. All that speaks
 * against the bundle goes to stderr, with the exit code `refused`, and then nothing is written.
 */
export async function bundleBuild(
  context: CommandContext,
  given: BundleAuthorOptions,
  refused: number,
): Promise<number> {
  const options = given as BundleBuildOptions;
  const request = await atManifests(requestOf(context, options));
  const outputs = planOutputs(options);
  const { imageBuilder } = options;
  if (imageBuilder !== undefined && !['docker', 'podman', 'buildah'].includes(imageBuilder))
    throw new OpmateError('INVALID', `${imageBuilder} is not supported image builder`);
  return useSession(context, options, async (session) => {
    if (imageBuilder !== undefined) {
      session.logger.log(
        'info',
        `--image-builder ${imageBuilder} is not needed: opmate builds images by itself`,
      );
    }
    for (const { kind, to } of outputs) if (kind === 'save') await checkPlace(to);
    return makeBundle(context, session, request, outputs, refused, {
      overwrite: booleanOf(options, 'overwrite'),
    });
  });
}

/** Where an image goes. */
export type Output =
  | { kind: 'push'; to: Reference }
  /** `name` is what an archive of docker save calls the image. */
  | { kind: 'save'; to: Reference; name: string | undefined };

/** Builds what a request asks for, and prints what it is called. Returns the exit code. */
export async function makeBundle(
  context: CommandContext,
  session: CommandSession,
  request: BundleRequest,
  outputs: readonly Output[],
  refused: number,
  options: PrepareOptions,
): Promise<number> {
  const { logger, signal } = session;
  const prepared = await prepareBundle(request, { ...options, signal });
  for (const sentence of prepared.inferred) logger.log('info', sentence);
  tellWarnings(session, prepared.warnings);
  if (prepared.findings.length > 0) {
    logger.close();
    await tellFindings(context, prepared.findings);
    return refused;
  }
  return withTemporaryDirectory(session, async (directory) => {
    const base = await openBase(session, prepared.baseImage, '--base-image');
    try {
      const { platform } = session;
      const images = await buildBundleImages(prepared, { bases: base.images, platform, directory, signal });
      await writeFiles(prepared.files, { signal });
      for (const { target } of prepared.files)
        logger.log('info', `wrote ${shownPath(request.workingDirectory, target)}`);
      let made = '';
      for (const output of outputs) made += `${await putImages(session, output, images, directory)}\n`;
      logger.close();
      await writeAll(context.stdout, made);
      return exitCodes.done;
    } finally {
      await base.close();
    }
  });
}

/** A directory in which a bundle stands as a whole is as good as that of its manifests. */
async function atManifests(request: BundleRequest): Promise<BundleRequest> {
  const { directory } = request;
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  if (!entries.some((entry) => entry.name === 'manifests' && entry.isDirectory())) return request;
  return { ...request, directory: path.join(directory, 'manifests') };
}

function planOutputs({ tag, push, save }: BundleBuildOptions): Output[] {
  const name = tag === undefined ? undefined : parseTag(tag);
  const outputs: Output[] = [];
  if (push === true) {
    if (name === undefined) {
      throw new UsageError('--push: where to is not said', { hint: 'give --tag REGISTRY/NAME:TAG' });
    }
    outputs.push({ kind: 'push', to: name });
  }
  if (save !== undefined) {
    const to = parseReference(save);
    if (to.transport === 'docker' || to.digest !== undefined) {
      throw new UsageError(`--save ${save}: not a place for an image`, {
        hint: 'write oci:DIR[:TAG], oci-archive:FILE[:TAG] or docker-archive:FILE',
      });
    }
    const named = to.transport === 'docker-archive' ? (to.tag ?? tagged(name)) : undefined;
    outputs.push({ kind: 'save', to: { ...to, tag: to.tag ?? name?.tag ?? 'latest' }, name: named });
  }
  if (outputs.length > 0) return outputs;
  throw new UsageError('nowhere to put the image: there is no engine that would keep it', {
    hint:
      `add --push to push it${tag === undefined ? ', with --tag REGISTRY/NAME:TAG' : ` to ${tag}`}, or --save oci:DIR, ` +
      'oci-archive:FILE or docker-archive:FILE to keep it',
  });
}

/** The whole name of an image. */
function tagged(name: RegistryReference | undefined): string | undefined {
  return name && `${name.registry}/${name.repository}:${name.tag}`;
}

/** Throws UsageError unless a reference names a tag in a registry. */
function parseTag(text: string): RegistryReference {
  const reference = parseReference(text);
  if (reference.transport !== 'docker') {
    throw new UsageError(`--tag ${text}: not a place in a registry`, {
      hint: `keep the image there with --save ${text}`,
    });
  }
  if (reference.digest !== undefined || reference.tag === undefined) {
    throw new UsageError(
      `--tag ${text}: ${reference.digest === undefined ? 'has no tag' : 'names a digest'}`,
      {
        hint: 'say what to call the image, e.g. registry.example.com/ns/bundle:v1',
      },
    );
  }
  return reference;
}

/** Finds out before anything is done whether what is to be written has a place. */
async function checkPlace(to: Reference): Promise<void> {
  if (to.transport === 'docker' || to.transport === 'oci') return;
  const directory = path.dirname(path.resolve(to.path));
  await stat(directory + path.sep).catch((error: unknown) => {
    throw fileError(`${to.path}: its directory ${quoteGo(path.dirname(to.path))}`, error, { file: to.path });
  });
  await replacedFile(to.path);
}

/** Pushes or saves images; returns what they are called. */
async function putImages(
  session: CommandSession,
  output: Output,
  images: readonly BuiltImage[],
  directory: string,
): Promise<string> {
  const { signal } = session;
  const { to } = output;
  if (output.kind === 'save' && to.transport === 'docker-archive') {
    const [image, ...others] = images as [BuiltImage, ...BuiltImage[]];
    if (others.length > 0) {
      throw new OpmateError(
        'UNSUPPORTED',
        `docker-archive:${to.path}: holds one image, not ${images.length}`,
        {
          hint: 'choose a platform with --platform, or save an oci-archive',
        },
      );
    }
    const { saveDockerArchive } = await import('../../oci/docker-archive.js');
    const { digest } = await saveDockerArchive(image, to.path, { name: output.name, directory, signal });
    return subjectOf(`docker-archive:${to.path}`, digest);
  }
  if (to.transport === 'oci-archive') {
    const [{ openLayout }, { packLayout }] = await Promise.all([
      import('../../oci/layout.js'),
      import('../../oci/layout-pack.js'),
    ]);
    const layout = path.join(directory, 'layout');
    const target = await openLayout(layout, { create: true });
    const { digest } = await pushIndexImages(target, to.tag as string, images, session);
    await packLayout(layout, to.path, { signal });
    return subjectOf(`oci-archive:${to.path}`, digest);
  }
  const target = await openTarget(to, await openOptionsOf(session));
  try {
    const { digest } = await pushIndexImages(target.repository, target.reference, images, session);
    return subjectOf(target.repository.name, digest);
  } finally {
    await target.close();
  }
}
