import { UsageError } from '../../core/errors.js';
import { mirrorMappings, readMappings } from '../../api/mirror/mirror-mappings.js';
import type { TransferReport } from '../../mirror/transfer/transfer-types.js';
import type { CommandContext } from '../context.js';
import { readInput } from '../input.js';
import { registryFlags } from '../command/global-flags.js';
import { formatFlags } from '../ending.js';
import { type ImageSetOptions, mirrorFlags, targetAccessFlags } from './flags.js';
import { getCopyLimits, readMirrorOptions } from './oc-mirror-flags.js';
import { finishTransfer, requireAllPlatforms, warnOfUnusedFlags } from './options.js';
import { count, shellWord } from '../printable.js';
import { useSession } from '../session.js';

/** Copies the images of a mapping or of SOURCE=TARGET; prints digest and target of each. */
export async function mirrorFile(
  context: CommandContext,
  args: readonly string[],
  typedOptions: ImageSetOptions,
): Promise<number> {
  requireAllPlatforms(typedOptions);
  const { filename } = typedOptions;
  if (filename === undefined && args.length === 0)
    throw new UsageError('no images to mirror', {
      hint: 'specify an image set with --config FILE, a mapping with --filename FILE, or SOURCE=TARGET',
    });
  const [destination] = args;
  if (args.length === 1 && destination !== undefined && /^(?:docker|file):\/\/[^=]*$/.test(destination)) {
    throw new UsageError(`${destination}: nothing to mirror`, {
      hint: 'specify an image set with --config FILE, or an archive with --from DIR',
    });
  }
  const document = filename === undefined ? undefined : await readMapping(filename, context);
  const { mappings, registries } = readMappings(args, document);
  const options = readMirrorOptions(typedOptions, registries, context);
  const flags = {
    continueOnError: options.continueOnError === true,
    skipMissing: options.skipMissing === true,
    dryRun: options.dryRun === true,
  };
  return useSession(context, options, async (session) => {
    warnOfUnusedFlags(options, session.logger);
    const report = await mirrorMappings(mappings, session, {
      ...flags,
      ...getCopyLimits(options),
      maxPerRegistry: options.maxPerRegistry,
      referrers: options.referrers,
      directory: options.dir,
      fromDirectory: options.fromDir,
      workspace: options.workspace,
      onResolved: (images) => session.logger.log('info', `${count(images, 'image')} to mirror`),
    });
    const next = flags.dryRun ? undefined : nextAfterCopy(report, options);
    return finishTransfer(context, session.logger, report, {
      ...flags,
      output: options.output ?? 'text',
      next,
    });
  });
}

async function readMapping(file: string, context: CommandContext): Promise<{ text: string; file: string }> {
  return { text: (await readInput(file, context)).toString('utf8'), file };
}

/** Returns the command that usually follows, for the first image; undefined if it cannot access the target. */
function nextAfterCopy({ done }: TransferReport, options: ImageSetOptions): string | undefined {
  const [copied] = done;
  if (copied === undefined) return undefined;
  const target = shellWord(copied.transfer.targetName);
  if (copied.transfer.targetName.startsWith('file://')) {
    const flags = formatFlags({ dir: mirrorFlags.dir, ...targetAccessFlags }, options);
    return `opmate mirror${flags} ${target}=REGISTRY/NAMESPACE/NAME:TAG`;
  }
  const { insecure, destCreds, destUsername, destRegistryToken, destNoCreds } = options;
  if (insecure || destNoCreds || (destCreds ?? destUsername ?? destRegistryToken) !== undefined)
    return undefined;
  const { authfile, destAuthfile = authfile, certDir, destCertDir = certDir } = options;
  const access = { ...options, authfile: destAuthfile, certDir: destCertDir };
  return `opmate oci inspect ${target}${formatFlags(registryFlags, access)}`;
}
