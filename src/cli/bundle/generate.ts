import path from 'node:path';
import { type BundleRequest, generateBundle, shownPath } from '../../bundle/author/generate.js';
import { replaceFiles } from '../../files/replace-file.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { requireFlag } from '../options.js';
import { useSession } from '../session.js';
import { tellWarnings } from './findings.js';

/** What a bundle is to be made of. */
export interface BundleAuthorOptions extends GlobalOptions {
  directory?: string;
  package?: string;
  channels?: string;
  default?: string;
  outputDir?: string;
  baseImage?: string;
}

/** `opmate bundle generate`: annotations and Dockerfile of a directory of manifests, both or neither. */
export async function bundleGenerate(context: CommandContext, options: BundleAuthorOptions): Promise<void> {
  const request = requestOf(context, options);
  await useSession(context, options, async (session) => {
    const { logger } = session;
    const { files, inferred, warnings } = await generateBundle(request, session);
    for (const sentence of inferred) logger.log('info', sentence);
    tellWarnings(session, warnings);
    await replaceFiles(files, session);
    for (const { target } of files)
      logger.log('info', `wrote ${shownPath(request.workingDirectory, target)}`);
  });
}

/** What the options ask for. Throws UsageError without a directory. */
export function requestOf(context: CommandContext, options: BundleAuthorOptions): BundleRequest {
  const { workingDirectory } = context;
  const { outputDir, baseImage } = options;
  return {
    directory: path.resolve(workingDirectory, requireFlag(options.directory, 'directory')),
    outputDirectory: outputDir ? path.resolve(workingDirectory, outputDir) : undefined,
    packageName: options.package ?? '',
    channels: options.channels ?? '',
    defaultChannel: options.default ?? '',
    baseImage,
    workingDirectory,
  };
}
