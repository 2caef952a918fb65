import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { readBundleDirectory } from '../../bundle/read.js';
import { withoutBodies } from '../../bundle/without-bodies.js';
import { validateBundle } from '../../bundle/validate/validate-bundle.js';
import { redact } from '../../core/errors.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { makeDirectory } from '../../files/make-directory.js';
import { readTree } from '../../source/drivers/file-tree.js';
import type { OpenedContent } from '../../source/content/content-types.js';
import { useSources } from './content.js';
import type { ContentFlags } from '../deployment/content-options.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { exitCodes } from '../exit-codes.js';
import { type CommandSession, useSession } from '../session.js';
import { inSource, tellFindings } from './findings.js';

interface UnpackOptions extends ContentFlags {
  out: string;
  skipValidation?: boolean;
  rootCa?: string;
}

/** What of the user's own directory belongs to a bundle; everything of all other sources does. */
const ownParts = ['manifests', 'metadata', 'tests'];

/**
 * `opmate bundle unpack`: the files of a bundle in a directory, all of them or none. What is there already stays, and
 * is in the way where it has a name at the top that the bundle has too. A bundle that is not valid is refused, unless
 * that is not to be checked. `isAlpha` is for the exit code of `opm`.
 */
export async function bundleUnpack(
  context: CommandContext,
  reference: string,
  given: GlobalOptions,
  isAlpha: boolean,
): Promise<number> {
  const options = given as UnpackOptions;
  const global = options.rootCa === undefined ? options : { ...options, caFile: options.rootCa };
  return useSession(context, global, (session) =>
    useSources(session, options, async (sources) => {
      const content = await sources.open(reference);
      const findings = options.skipValidation === true ? [] : await check(content, session);
      if (findings.length > 0) {
        session.logger.close();
        await tellFindings(context, findings.map(inSource(redact(reference), content.isInPlace)));
        return isAlpha ? exitCodes.failed : exitCodes.findings;
      }
      const { limits, signal, followLinks } = session;
      const roots = content.isInPlace ? ownParts : [''];
      await fillDirectory(
        options.out,
        async (staging) => {
          const copyTo = async (name: string): Promise<FileHandle> => {
            const file = path.join(staging, name);
            await makeDirectory(path.dirname(file));
            return open(file, 'wx', 0o666);
          };
          const tree = await readTree(content.directory, {
            roots,
            limits,
            signal,
            followLinks,
            copyTo,
          });
          for (const name of tree.directories) await makeDirectory(path.join(staging, name));
          await content.confirm();
        },
        { isShared: true },
      );
      session.logger.close();
      return exitCodes.done;
    }),
  );
}

/** What `opm` refuses to unpack a bundle for. */
async function check(
  { directory }: OpenedContent,
  { signal, followLinks }: CommandSession,
): Promise<Diagnostic[]> {
  const missing: Diagnostic[] = [];
  for (const part of ['manifests', 'metadata']) {
    const found = await statIfPresent(path.join(directory, part));
    if (found?.isDirectory() !== true) {
      missing.push({
        severity: 'error',
        code: 'missing-file',
        problem: `Unable to locate ${part} directory`,
        hint: 'to unpack it nevertheless, --skip-validation',
      });
    }
  }
  if (missing.length > 0) return missing;
  const findings = validateBundle(
    withoutBodies(await readBundleDirectory(directory, { signal, followLinks })),
    {
      signal,
    },
  );
  return findings.filter(({ severity, isUntold }) => severity === 'error' && isUntold !== true);
}
