import { listNames, notFound, type NamedKind } from '../../core/suggest.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { type ChannelEntry, schemas } from '../../model/declarative-config.js';
import {
  formatDeprecationReference,
  withDeprecations,
  withEntries,
  withField,
} from '../selection/kept-catalog.js';
import { readBundleVersions } from '../../graph/bundle-version.js';
import { type PackageModel, keepDeprecations } from '../../graph/package-model.js';
import { repairChannel } from '../selection/repair-channel.js';
import type { BlobEdit } from './blob-edits.js';
import type { EditableCatalog } from './editable-catalog.js';
import { type EditPlan, requireBlob, requirePackage } from './find-named.js';
import { type Orphans, findOrphans } from './orphans.js';

/** Bundles or channels to remove from a package; the whole package if neither is set. */
export interface Removal {
  package: string;
  bundles?: readonly string[] | undefined;
  channels?: readonly string[] | undefined;
  /** New default channel; required if the current one is removed. */
  defaultChannel?: string | undefined;
}

/** Removal with the clusters that it would strand. */
interface RemovalPlan extends EditPlan<BlobEdit> {
  orphans: Orphans[];
}

/**
 * Plans to remove bundles from all channels of a package, repairing their graphs (see `repairChannel`), or channels,
 * or the package. Channels without entries, bundles without channels, and deprecations of removed content are
 * removed.
 *
 * Throws OpmateError NOT_FOUND with the nearest names, INVALID if the default channel would be removed, and as
 * `repairChannel`.
 */
export function planRemove(catalog: EditableCatalog, removal: Removal): RemovalPlan {
  const model = requirePackage(catalog, removal.package);
  const { bundles = [], channels = [] } = removal;
  if (bundles.length > 0 && channels.length > 0) {
    throw new UsageError('--bundle and --channel cannot be used together', {
      hint: 'remove the channels first, then the bundles',
    });
  }
  requireNames(model, bundles, channels);
  const about = `package ${quoteGo(model.facts.name)}`;
  const versions = readBundleVersions(model.bundles.values());
  const changes: string[] = [];
  const isWhole = bundles.length === 0 && channels.length === 0;
  const after = isWhole ? new Map<string, ChannelEntry[]>() : channelsAfter();
  const bundlesAfter = new Set([...after.values()].flatMap((entries) => entries.map(({ name }) => name)));
  const before = new Map([...model.channels.values()].map(({ name, entries }) => [name, entries]));
  const orphans = findOrphans(before, after, versions);
  if (after.size === 0) {
    const blobs = catalog.files.flatMap((file) =>
      file.blobs.filter((blob) => blob.package === model.facts.name),
    );
    const edits = blobs.map((blob): BlobEdit => ({ kind: 'remove', blob }));
    return { edits, changes: [`${about}: removed`], orphans };
  }
  const edits = [...defaultEdits(), ...channelEdits(), ...bundleEdits(), ...deprecationEdits()];
  return { edits, changes, orphans };

  function channelsAfter(): Map<string, ChannelEntry[]> {
    const gone = new Set(bundles);
    const left = new Map<string, ChannelEntry[]>();
    for (const { name, entries } of model.channels.values()) {
      const subject = `${about}, channel ${quoteGo(name)}`;
      if (channels.includes(name)) {
        changes.push(`${subject}: removed`);
        continue;
      }
      const repaired = repairChannel(entries, gone, versions);
      if (repaired.entries.length === 0 && entries.length > 0) {
        changes.push(`${subject}: removed, as it has no bundles left`);
        continue;
      }
      changes.push(...repaired.changes.map((change) => `${subject}: ${change}`));
      left.set(name, repaired.entries);
    }
    return left;
  }

  /** Plans the default channel. Throws OpmateError INVALID if it must be set, NOT_FOUND for an unknown one. */
  function defaultEdits(): BlobEdit[] {
    const { name, defaultChannel } = model.facts;
    const { defaultChannel: wanted } = removal;
    const chosen = wanted ?? defaultChannel;
    if (wanted !== undefined && !after.has(wanted)) {
      throw notFound('channel', wanted, after.keys(), { prefix: 'default channel: ', scope: about });
    }
    if (!after.has(chosen)) {
      throw new OpmateError('INVALID', `its default channel ${quoteGo(chosen)} would be removed`, {
        subject: about,
        hint: `set another one with --default-channel; ${listNames('remaining:', after.keys())}`,
      });
    }
    if (chosen === defaultChannel) return [];
    changes.push(`${about}: default channel is now ${quoteGo(chosen)}`);
    const blob = requireBlob(catalog, schemas.package, name, name);
    return [{ kind: 'change', blob, change: (value) => withField(value, 'defaultChannel', chosen) }];
  }

  function channelEdits(): BlobEdit[] {
    return [...model.channels.values()].flatMap(({ name, entries }): BlobEdit[] => {
      const left = after.get(name);
      const isSame =
        left?.length === entries.length && left.every((entry, index) => entry === entries[index]);
      if (isSame) return [];
      const blob = requireBlob(catalog, schemas.channel, model.facts.name, name);
      if (left === undefined) return [{ kind: 'remove', blob }];
      return [{ kind: 'change', blob, change: (value) => withEntries(value, left) }];
    });
  }

  function bundleEdits(): BlobEdit[] {
    const unused = [...model.bundles.keys()].filter((name) => !bundlesAfter.has(name));
    if (unused.length > 0) changes.push(`${about}: ${listNames('removed', unused)}`);
    return unused.map((name) => ({
      kind: 'remove',
      blob: requireBlob(catalog, schemas.bundle, model.facts.name, name),
    }));
  }

  function deprecationEdits(): BlobEdit[] {
    const [blobBefore] = model.deprecations;
    if (blobBefore === undefined) return [];
    const [left] = keepDeprecations(blobBefore, new Set(after.keys()), bundlesAfter);
    const gone = blobBefore.entries.filter((entry) => left?.entries.includes(entry) !== true);
    if (gone.length === 0) return [];
    const names = gone.map(({ reference }) => reference.name);
    changes.push(`${about}: ${listNames('no longer deprecated:', names)}`);
    const blob = requireBlob(catalog, schemas.deprecations, model.facts.name);
    if (left === undefined) return [{ kind: 'remove', blob }];
    const kept = new Set(left.entries.map(formatDeprecationReference));
    return [{ kind: 'change', blob, change: (value) => withDeprecations(value, kept) }];
  }
}

function requireNames(model: PackageModel, bundles: readonly string[], channels: readonly string[]): void {
  const subject = `package ${quoteGo(model.facts.name)}`;
  const missing = (
    kind: NamedKind,
    wanted: readonly string[],
    known: ReadonlyMap<string, unknown>,
  ): OpmateError[] =>
    wanted
      .filter((name) => !known.has(name))
      .map((name) => notFound(kind, name, known.keys(), { scope: subject }));
  const errors = [
    ...missing('bundle', bundles, model.bundles),
    ...missing('channel', channels, model.channels),
  ];
  if (errors.length > 0) throw combineErrors(errors);
}
