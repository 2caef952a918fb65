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
import type { Version } from '../../core/semver.js';
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
    throw new UsageError('options.bundles and options.channels cannot be used together', {
      hint: 'remove the channels first, then the bundles',
    });
  }
  requireNames(model, bundles, channels);
  return new RemovalPlanner(catalog, model, removal).plan();
}

/** Plans the changes of one package without the bundles or channels to remove. */
class RemovalPlanner {
  readonly #catalog: EditableCatalog;
  readonly #model: PackageModel;
  readonly #wantedDefault: string | undefined;
  readonly #bundles: readonly string[];
  readonly #channels: readonly string[];
  readonly #about: string;
  readonly #versions: Map<string, Version>;
  readonly #changes: string[] = [];
  /** Entries by channel afterwards. */
  readonly #after: Map<string, ChannelEntry[]>;
  readonly #bundlesAfter: Set<string>;

  constructor(
    catalog: EditableCatalog,
    model: PackageModel,
    { bundles = [], channels = [], defaultChannel }: Removal,
  ) {
    this.#catalog = catalog;
    this.#model = model;
    this.#wantedDefault = defaultChannel;
    this.#bundles = bundles;
    this.#channels = channels;
    this.#about = `package ${quoteGo(model.facts.name)}`;
    this.#versions = readBundleVersions(model.bundles.values());
    const isWhole = bundles.length === 0 && channels.length === 0;
    this.#after = isWhole ? new Map<string, ChannelEntry[]>() : this.#channelsAfter();
    this.#bundlesAfter = new Set(
      [...this.#after.values()].flatMap((entries) => entries.map(({ name }) => name)),
    );
  }

  plan(): RemovalPlan {
    const before = new Map([...this.#model.channels.values()].map(({ name, entries }) => [name, entries]));
    const orphans = findOrphans(before, this.#after, this.#versions);
    if (this.#after.size === 0) {
      const blobs = this.#catalog.files.flatMap((file) =>
        file.blobs.filter((blob) => blob.package === this.#model.facts.name),
      );
      const edits = blobs.map((blob): BlobEdit => ({ kind: 'remove', blob }));
      return { edits, changes: [`${this.#about}: removed`], orphans };
    }
    const edits = [
      ...this.#defaultEdits(),
      ...this.#channelEdits(),
      ...this.#bundleEdits(),
      ...this.#deprecationEdits(),
    ];
    return { edits, changes: this.#changes, orphans };
  }

  #channelsAfter(): Map<string, ChannelEntry[]> {
    const gone = new Set(this.#bundles);
    const left = new Map<string, ChannelEntry[]>();
    for (const { name, entries } of this.#model.channels.values()) {
      const subject = `${this.#about}, channel ${quoteGo(name)}`;
      if (this.#channels.includes(name)) {
        this.#changes.push(`${subject}: removed`);
        continue;
      }
      const repaired = repairChannel(entries, gone, this.#versions);
      if (repaired.entries.length === 0 && entries.length > 0) {
        this.#changes.push(`${subject}: removed, as it has no bundles left`);
        continue;
      }
      this.#changes.push(...repaired.changes.map((change) => `${subject}: ${change}`));
      left.set(name, repaired.entries);
    }
    return left;
  }

  /** Plans the default channel. Throws OpmateError INVALID if it must be set, NOT_FOUND for an unknown one. */
  #defaultEdits(): BlobEdit[] {
    const { name, defaultChannel } = this.#model.facts;
    const wanted = this.#wantedDefault;
    const chosen = wanted ?? defaultChannel;
    if (wanted !== undefined && !this.#after.has(wanted)) {
      throw notFound('channel', wanted, this.#after.keys(), {
        prefix: 'default channel: ',
        scope: this.#about,
      });
    }
    if (!this.#after.has(chosen)) {
      throw new OpmateError('INVALID', `its default channel ${quoteGo(chosen)} would be removed`, {
        subject: this.#about,
        hint: `set another one with options.defaultChannel; ${listNames('remaining:', this.#after.keys())}`,
      });
    }
    if (chosen === defaultChannel) return [];
    this.#changes.push(`${this.#about}: default channel is now ${quoteGo(chosen)}`);
    const blob = requireBlob(this.#catalog, schemas.package, name, name);
    return [{ kind: 'change', blob, change: (value) => withField(value, 'defaultChannel', chosen) }];
  }

  #channelEdits(): BlobEdit[] {
    return [...this.#model.channels.values()].flatMap(({ name, entries }): BlobEdit[] => {
      const left = this.#after.get(name);
      const isSame =
        left?.length === entries.length && left.every((entry, index) => entry === entries[index]);
      if (isSame) return [];
      const blob = requireBlob(this.#catalog, schemas.channel, this.#model.facts.name, name);
      if (left === undefined) return [{ kind: 'remove', blob }];
      return [{ kind: 'change', blob, change: (value) => withEntries(value, left) }];
    });
  }

  #bundleEdits(): BlobEdit[] {
    const unused = [...this.#model.bundles.keys()].filter((name) => !this.#bundlesAfter.has(name));
    if (unused.length > 0) this.#changes.push(`${this.#about}: ${listNames('removed', unused)}`);
    return unused.map((name) => ({
      kind: 'remove',
      blob: requireBlob(this.#catalog, schemas.bundle, this.#model.facts.name, name),
    }));
  }

  #deprecationEdits(): BlobEdit[] {
    const [blobBefore] = this.#model.deprecations;
    if (blobBefore === undefined) return [];
    const [left] = keepDeprecations(blobBefore, new Set(this.#after.keys()), this.#bundlesAfter);
    const gone = blobBefore.entries.filter((entry) => left?.entries.includes(entry) !== true);
    if (gone.length === 0) return [];
    const names = gone.map(({ reference }) => reference.name);
    this.#changes.push(`${this.#about}: ${listNames('no longer deprecated:', names)}`);
    const blob = requireBlob(this.#catalog, schemas.deprecations, this.#model.facts.name);
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
