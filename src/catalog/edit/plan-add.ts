import { listNames, notFound } from '../../core/suggest.js';
import { OpmateError, UsageError, getMessage } from '../../core/errors.js';
import { inContext, combineErrors } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { pushTo } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { type Version, compareVersions, parseVersion } from '../../core/semver.js';
import { type ChannelEntry, schemas } from '../../model/declarative-config.js';
import { describeBundle } from '../../model/describe.js';
import { describeGraphFault, readGraph } from '../../graph/channel-graph.js';
import { withEntries, withField } from '../selection/kept-catalog.js';
import { type PackageModel, readPackages } from '../../graph/package-model.js';
import type { BlobEdit } from './blob-edits.js';
import { type EntryByVersion, addByVersion, insertEntry } from './channel-edit.js';
import type { EditableCatalog } from './editable-catalog.js';
import { type EditPlan, requireBlob } from './find-named.js';
import type { NewBundle } from './new-bundle.js';

/** Source of edges: flags and bundles, or versions. */
export type AddMode = 'replaces' | 'semver' | 'semver-skippatch';

/** Options; unset ones come from the bundles. */
export interface PlanAddOptions {
  mode: AddMode;
  channels?: readonly string[] | undefined;
  /** Replaces mode only; empty for a bundle that replaces nothing. */
  replaces?: string | undefined;
  skips?: readonly string[] | undefined;
  skipRange?: string | undefined;
  /** For existing packages too. */
  defaultChannel?: string | undefined;
  /** Replace existing bundles; otherwise they are an error. */
  overwrite?: boolean | undefined;
  /** Target whose command hints name; default: a catalog directory. */
  target?: keyof typeof hints | undefined;
}

/** Hints by target: an index takes channels and edges from its bundles only. */
const hints = {
  directory: {
    exists: 'replace it with options.overwrite',
    channel: 'set options.channels',
    heads: 'set options.replaces, or add it by its version with options.mode semver',
  },
  index: {
    exists: 'overwrite the latest bundle of a channel',
    channel: 'set channels in metadata/annotations.yaml of the bundle',
    heads: 'set spec.replaces of the bundle, or add it by its version',
  },
} as const;

/**
 * Plans adding bundles to channels of their packages, in order of version. Missing channels and packages are created,
 * a package with the icon and description of its newest bundle, and with a default channel. Edges come from
 * `addByVersion` in the semver modes, else from flags, else from each bundle's ClusterServiceVersion. A replaced
 * bundle keeps its entries, except in replaces mode. No edits if nothing changes.
 *
 * Throws OpmateError INVALID with all problems, UsageError for conflicting flags.
 */
export function planAdd(
  catalog: EditableCatalog,
  bundles: readonly NewBundle[],
  options: PlanAddOptions,
): EditPlan<BlobEdit> {
  requireFlags(bundles, options);
  const models = readPackages(catalog.facts);
  const packages = new Map<string, Addition[]>();
  const errors: OpmateError[] = [];
  const collect = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      errors.push(error);
    }
  };
  const seen = new Map<string, string>();
  for (const bundle of bundles) {
    collect(() => {
      const addition = getAddition(bundle, models, options);
      const { package: owner, name } = bundle.blob;
      const other = seen.get(`${owner}/${name}`);
      if (other !== undefined) {
        const subject = bundle.reference;
        throw new OpmateError('INVALID', `bundle ${quoteGo(name)} is also in ${other}`, { subject });
      }
      seen.set(`${owner}/${name}`, bundle.reference);
      pushTo(packages, owner, addition);
    });
  }
  const plan: EditPlan<BlobEdit> = { edits: [], changes: [] };
  for (const [name, additions] of [...packages].sort(([a], [b]) => compareBytes(a, b))) {
    collect(() => {
      const edited = addToPackage(catalog, name, models.get(name), additions, options);
      plan.edits.push(...edited.edits);
      plan.changes.push(...edited.changes);
    });
  }
  if (errors.length > 0) throw combineErrors(errors);
  return plan;
}

function requireFlags(bundles: readonly NewBundle[], { mode, replaces, skips }: PlanAddOptions): void {
  if (replaces !== undefined && mode !== 'replaces') {
    throw new UsageError(`options.replaces and options.mode ${mode} cannot be used together`, {
      hint: 'remove options.replaces: by version, a bundle replaces the next lower one',
    });
  }
  if (bundles.length < 2 || (replaces === undefined && skips === undefined)) return;
  const option = replaces === undefined ? 'options.skips' : 'options.replaces';
  throw new UsageError(`${option} requires a single bundle, got several`, {
    hint: 'add one bundle at a time, or add them by version with options.mode semver',
  });
}

interface Addition {
  bundle: NewBundle;
  channels: readonly string[];
  version: Version;
  text: string;
  /** Replaces an existing bundle. */
  isKnown: boolean;
}

function getAddition(
  bundle: NewBundle,
  models: ReadonlyMap<string, PackageModel>,
  options: PlanAddOptions,
): Addition {
  const { reference, blob } = bundle;
  const fail = (what: string, hint: string): OpmateError =>
    new OpmateError('INVALID', what, { subject: reference, hint });
  if (blob.package === '') {
    throw fail('missing package in its annotations', 'fix metadata/annotations.yaml of the bundle');
  }
  const isKnown = models.get(blob.package)?.bundles.has(blob.name) === true;
  if (isKnown && options.overwrite !== true) {
    throw fail(
      `bundle ${quoteGo(blob.name)} already exists in package ${quoteGo(blob.package)}`,
      hints[options.target ?? 'directory'].exists,
    );
  }
  const channels = [...new Set(options.channels ?? bundle.channels)];
  if (channels.length === 0) {
    throw fail('missing channel in its annotations', hints[options.target ?? 'directory'].channel);
  }
  const text = describeBundle(blob).packageProperties[0]?.version ?? '';
  try {
    return { bundle, channels, version: parseVersion(text), text, isKnown };
  } catch (error) {
    throw fail(
      `bundle ${quoteGo(blob.name)} has version ${quoteGo(text)}: ${getMessage(error)}`,
      'set a semantic version',
    );
  }
}

function addToPackage(
  catalog: EditableCatalog,
  packageName: string,
  model: PackageModel | undefined,
  candidates: readonly Addition[],
  options: PlanAddOptions,
): EditPlan<BlobEdit> {
  return new PackageAddition(catalog, packageName, model, candidates, options).run();
}

/** Plans the changes of one package. */
class PackageAddition {
  readonly #catalog: EditableCatalog;
  readonly #packageName: string;
  readonly #model: PackageModel | undefined;
  readonly #options: PlanAddOptions;
  readonly #changes: string[] = [];
  readonly #about: string;
  /** Lowest version first. */
  readonly #additions: Addition[];
  /** Entries of changed channels. */
  readonly #channels = new Map<string, ChannelEntry[]>();

  constructor(
    catalog: EditableCatalog,
    packageName: string,
    model: PackageModel | undefined,
    candidates: readonly Addition[],
    options: PlanAddOptions,
  ) {
    this.#catalog = catalog;
    this.#packageName = packageName;
    this.#model = model;
    this.#options = options;
    this.#about = `package ${quoteGo(packageName)}`;
    this.#additions = [...candidates].sort((a, b) => compareVersions(a.version, b.version));
  }

  run(): EditPlan<BlobEdit> {
    for (const channel of new Set(this.#additions.flatMap((addition) => addition.channels))) {
      const wanted = this.#additions.filter((addition) => addition.channels.includes(channel));
      this.#channels.set(channel, this.#getEntries(channel, wanted));
    }
    return {
      edits: [
        ...this.#packageEdits(),
        ...this.#channelEdits(),
        ...this.#additions.map((addition) => this.#bundleEdit(addition)),
      ],
      changes: this.#changes,
    };
  }

  #getEntries(channel: string, wanted: readonly Addition[]): ChannelEntry[] {
    const before = this.#model?.channels.get(channel)?.entries ?? [];
    const subject = `${this.#about}, channel ${quoteGo(channel)}`;
    return inContext({ subject }, () =>
      this.#options.mode === 'replaces'
        ? this.#addWithReplaces(before, wanted)
        : this.#addInOrder(before, wanted),
    );
  }

  #addWithReplaces(before: readonly ChannelEntry[], wanted: readonly Addition[]): ChannelEntry[] {
    const { replaces, skips, skipRange } = this.#options;
    let entries = [...before];
    for (const { bundle } of wanted) {
      const { name } = bundle.blob;
      const entry: ChannelEntry = {
        name,
        replaces: replaces ?? bundle.replaces,
        skips: [...(skips ?? bundle.skips)],
        skipRange: skipRange ?? bundle.skipRange,
      };
      if (replaces !== undefined && replaces !== '' && entries.length > 0) {
        const names = entries.map((channelEntry) => channelEntry.name);
        if (!names.includes(replaces)) {
          throw notFound('bundle', replaces, names, { prefix: `replaces of ${quoteGo(name)}: ` });
        }
      }
      const index = entries.findIndex((channelEntry) => channelEntry.name === name);
      entries = index < 0 ? insertEntry(entries, entry) : entries.with(index, entry);
    }
    const graph = readGraph(entries);
    if (graph.heads.length > 1) {
      throw new OpmateError('INVALID', describeGraphFault(graph) ?? '', {
        hint: hints[this.#options.target ?? 'directory'].heads,
      });
    }
    return entries;
  }

  #addInOrder(before: readonly ChannelEntry[], wanted: readonly Addition[]): ChannelEntry[] {
    const { skips, skipRange, mode } = this.#options;
    const versions = new Map<string, string>();
    for (const { name, packageProperties } of this.#model?.bundles.values() ?? []) {
      versions.set(name, packageProperties[0]?.version ?? '');
    }
    const added: EntryByVersion[] = [];
    let entries = [...before];
    for (const { bundle, version, text } of wanted) {
      const { name } = bundle.blob;
      const index = entries.findIndex((entry) => entry.name === name);
      const old = entries[index];
      if (old === undefined) {
        added.push({ name, text, version, skips: skips ?? [], skipRange: skipRange ?? bundle.skipRange });
        continue;
      }
      if (versions.get(name) !== text) {
        throw new OpmateError(
          'INVALID',
          `bundle ${quoteGo(name)} already exists with version ${versions.get(name)}, got ${text}`,
          { hint: 'remove the bundle first, then add it' },
        );
      }
      entries = entries.with(index, {
        ...old,
        skips: skips === undefined ? old.skips : [...new Set([...old.skips, ...skips])],
        skipRange: skipRange ?? old.skipRange,
      });
    }
    return addByVersion(entries, added, versions, { skipPatch: mode === 'semver-skippatch' });
  }

  #packageEdits(): BlobEdit[] {
    const { defaultChannel: wanted } = this.#options;
    const names = new Set([...(this.#model?.channels.keys() ?? []), ...this.#channels.keys()]);
    if (wanted !== undefined && !names.has(wanted)) {
      throw notFound('channel', wanted, names, { prefix: 'default channel: ', scope: this.#about });
    }
    const newest = (this.#additions.at(-1) as Addition).bundle;
    const annotated = names.has(newest.defaultChannel) ? newest.defaultChannel : undefined;
    const present = this.#model?.facts.defaultChannel ?? '';
    const kept = present === '' ? annotated : present;
    const defaultChannel = wanted ?? kept ?? ([...names].sort(compareBytes)[0] as string);
    if (this.#model !== undefined) {
      if (defaultChannel === present) return [];
      this.#changes.push(`${this.#about}: default channel is now ${quoteGo(defaultChannel)}`);
      const blob = requireBlob(this.#catalog, schemas.package, this.#packageName, this.#packageName);
      return [
        { kind: 'change', blob, change: (value) => withField(value, 'defaultChannel', defaultChannel) },
      ];
    }
    this.#changes.push(`${this.#about}: created with default channel ${quoteGo(defaultChannel)}`);
    const { icon, description } = newest;
    const blob = {
      schema: schemas.package,
      name: this.#packageName,
      defaultChannel,
      ...(icon !== undefined && { icon }),
      description,
      properties: [],
    };
    return [{ kind: 'insert', package: this.#packageName, item: { kind: 'package', blob } }];
  }

  #channelEdits(): BlobEdit[] {
    return [...this.#channels].flatMap(([channel, entries]): BlobEdit[] => {
      const before = this.#model?.channels.get(channel);
      const subject = `${this.#about}, channel ${quoteGo(channel)}`;
      this.#changes.push(
        ...describeChanges(before?.entries ?? [], entries).map((name) => `${subject}: ${name}`),
      );
      if (before === undefined) {
        const blob = {
          schema: schemas.channel,
          name: channel,
          package: this.#packageName,
          entries,
          properties: [],
        };
        return [{ kind: 'insert', package: this.#packageName, item: { kind: 'channel', blob } }];
      }
      const blob = requireBlob(this.#catalog, schemas.channel, this.#packageName, channel);
      return [{ kind: 'change', blob, change: (value) => withEntries(value, entries) }];
    });
  }

  #bundleEdit({ bundle, isKnown }: Addition): BlobEdit {
    const item = { kind: 'bundle', blob: bundle.blob } as const;
    if (!isKnown) return { kind: 'insert', package: this.#packageName, item };
    const { name } = bundle.blob;
    this.#changes.push(`${this.#about}: replaced bundle ${quoteGo(name)}`);
    return {
      kind: 'replace',
      blob: requireBlob(this.#catalog, schemas.bundle, this.#packageName, name),
      by: item,
    };
  }
}

/** Describes changed entries: `added "b", replaces "a"`. */
function describeChanges(before: readonly ChannelEntry[], after: readonly ChannelEntry[]): string[] {
  const known = new Map(before.map((entry) => [entry.name, entry]));
  return after.flatMap((entry) => {
    const old = known.get(entry.name);
    const parts: string[] = [];
    if (entry.replaces !== (old?.replaces ?? '')) {
      const instead = old === undefined || old.replaces === '' ? '' : ` in place of ${quoteGo(old.replaces)}`;
      parts.push(
        entry.replaces === ''
          ? `replaces nothing${instead}`
          : `replaces ${quoteGo(entry.replaces)}${instead}`,
      );
    }
    const skips = entry.skips.filter((name) => old?.skips.includes(name) !== true);
    if (skips.length > 0) parts.push(listNames('skips', skips));
    if (entry.skipRange !== (old?.skipRange ?? '')) parts.push(`skips the range ${quoteGo(entry.skipRange)}`);
    if (old === undefined) return [[`added ${quoteGo(entry.name)}`, ...parts].join(', ')];
    return parts.length === 0 ? [] : [`${quoteGo(entry.name)} ${parts.join(', ')}`];
  });
}
