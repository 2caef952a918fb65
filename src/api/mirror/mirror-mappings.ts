import { withOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { parseReference } from '../../core/reference.js';
import { formatRepository, withDockerDefaults } from '../../mirror/naming/image-name.js';
import { formatImageLocation } from '../../mirror/naming/image-location.js';
import {
  type MappingPair,
  parseMappings,
  parseTokens,
  planPairs,
} from '../../mirror/mapping/mapping-file.js';
import { toNamedTransfer } from '../../mirror/plan/mirror-plan.js';
import { transferImages } from '../../mirror/transfer/transfer.js';
import type { TransferOptions, TransferReport } from '../../mirror/transfer/transfer-types.js';
import { openReference } from '../../oci/image/open.js';
import type { Session } from '../../source/session.js';
import { type FileRoots, resolveRoots } from './file-roots.js';
import { type MirrorOptions, resolveMaxPerRegistry } from './image-set-run.js';
import { recordCopy } from './record-run.js';

/** Options of copying images as mappings state. */
export interface MirrorMappingsOptions
  extends
    FileRoots,
    Partial<
      Pick<
        TransferOptions,
        | 'continueOnError'
        | 'dryRun'
        | 'imagesAtOnce'
        | 'imageTimeoutMs'
        | 'layersAtOnce'
        | 'referrers'
        | 'skipMissing'
      >
    >,
    Pick<MirrorOptions, 'maxPerRegistry'> {
  /** Parent directory of a `working-dir` whose audit trail records what is copied; default none. */
  workspace?: string | undefined;
  /** Called with the number of images, patterns of tags resolved, before anything is copied. */
  onResolved?: ((images: number) => void) | undefined;
}

/** Mappings of images. */
export interface ReadMappings {
  mappings: MappingPair[];
  /** Registries of the targets, each once. */
  registries: string[];
}

/**
 * Reads pairs `SOURCE=TARGET`, and those of a mapping file, whose name is for messages. Throws OpmateError that names the
 * pair or line.
 */
export function readMappings(
  pairs: readonly string[],
  document?: { text: string; file: string },
): ReadMappings {
  const listed = document === undefined ? [] : parseMappings(document.text, document.file);
  const mappings = [...parseTokens(pairs), ...listed];
  const registries = mappings.flatMap(({ target: { scheme, name } }) =>
    scheme === 'file' ? [] : [name.registry],
  );
  return { mappings, registries: [...new Set(registries)] };
}

/**
 * Copies images as mappings state, which `readMappings` reads. Images that are missing or cannot be copied
 * are listed in the report with `skipMissing` and `continueOnError`. Throws OpmateError.
 */
export async function mirrorMappings(
  mappings: readonly MappingPair[],
  session: Session,
  options: MirrorMappingsOptions = {},
): Promise<TransferReport> {
  const { directory, fromDirectory, onResolved, workspace, ...settings } = options;
  const { continueOnError = false, skipMissing = false } = settings;
  const roots = resolveRoots({ directory, fromDirectory }, session);
  const { images } = await planPairs(
    mappings,
    async (place) => {
      if (place.scheme === 'registry')
        return listTags(formatRepository(withDockerDefaults(place.name)), session);
      throw new OpmateError('UNSUPPORTED', `${formatImageLocation(place)}: name a tag or digest in file://`);
    },
    { roots, signal: session.signal },
  );
  onResolved?.(images.length);
  const maxPerRegistry = resolveMaxPerRegistry(settings);
  const copying = { ...settings, session, maxPerRegistry, continueOnError, skipMissing };
  const places = images.map(({ target }) => (target.transport === 'docker' ? target.registry : 'file'));
  const start = { task: 'mapping', destination: sortedByBytes(new Set(places)).join(', ') } as const;
  return recordCopy(settings.dryRun === true ? undefined : workspace, start, session, (onCopied) =>
    transferImages(images.map(toNamedTransfer), { ...copying, onCopied }),
  );
}

async function listTags(name: string, session: Session): Promise<string[]> {
  // Opening needs a tag, which does not change the list.
  return withOpen(openReference(parseReference(`${name}:latest`), session), ({ repository }) =>
    repository.listTags(session),
  );
}
