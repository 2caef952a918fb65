import { readFilterFile } from '../../catalog/selection/filter-file.js';
import { applyFilter } from '../../catalog/selection/filter-catalog.js';
import type { CatalogSelection, KeptBundle } from '../../catalog/selection/selection.js';
import type { Catalog } from '../../catalog/catalog.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd, groupBy } from '../../core/groups.js';
import { findReference, withoutCredentials } from '../../core/reference.js';
import { parseVersion, tryParse } from '../../core/semver.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';
import { readBundleVersions } from '../../graph/bundle-version.js';
import { getOnlyHead, readGraph } from '../../graph/channel-graph.js';
import { readPackages } from '../../graph/package-model.js';
import { findWaysTo } from '../../graph/ways.js';
import { closeDependencies } from '../../mirror/selection/dependencies.js';
import {
  type ImageSetConfiguration,
  type OperatorConfig,
  readImageSetConfiguration,
} from '../../mirror/image-set/image-set-config.js';
import { selectOperators } from '../../mirror/selection/select-operators.js';
import { type BytePlan, planBytes } from '../../mirror/lock/byte-plan.js';
import { pinTransfers } from '../../mirror/transfer/transfer.js';
import type { Transfer } from '../../mirror/transfer/transfer-types.js';
import type { CatalogFacts, ChannelFacts } from '../../model/facts.js';
import type { ImageContents } from '../../oci/image/contents.js';
import type { Session } from '../../source/session.js';
import type { SelectionPick, SelectionRequest } from '../../view/responses.js';

/** An open catalog with its facts, and the images of its bundles. */
export interface SelectableCatalog {
  catalog: Catalog;
  facts: CatalogFacts;
  /** Returns the images that a bundle is and needs. */
  getImages(packageName: string, bundle: string): string[];
}

/** Content that a selection keeps. */
export interface SelectionPlan {
  /** The document, as YAML. */
  text: string;
  packages: {
    name: string;
    defaultChannel: string;
    bundles: number;
    channels: PlannedChannel[];
  }[];
  bundles: number;
  /** Images with the bundles that are or need them. */
  images: { image: string; bundles: { package: string; bundle: string }[] }[];
  /** Bundles that are kept although they were not selected. */
  kept: KeptBundle[];
  warnings: string[];
  changes: string[];
  /** Needs of selected bundles that no selected bundle meets, one sentence each. */
  unmet: string[];
  /** Packages of this catalog that would meet them. */
  missingPackages: string[];
}

/** A channel of a selection, and which of its bundles a cluster can still upgrade from. */
interface PlannedChannel {
  name: string;
  head: string;
  entries: number;
  /** Bundles of the whole channel from which the head is reached, the head included. */
  upgradable: number;
  /** The others. */
  stranded: string[];
}

/** Name of the document of a selection in messages. */
const documentName = 'selection';
/** Placeholder for the image of a catalog without one. */
const placeholder = 'localhost/catalog:selection';
/** Characters of a text of a request, and items of its lists. */
const maxText = 1_000;
const maxPicks = 10_000;

/**
 * Makes the document for a selection and returns what `opmate mirror` or `opmate catalog filter` would keep with it.
 * Reads the blobs of selected bundles for their dependencies. Throws OpmateError with all that the catalog lacks.
 */
export async function planSelection(
  { catalog, facts, getImages }: SelectableCatalog,
  request: SelectionRequest,
  { signal, now }: Pick<Session, 'signal' | 'now'>,
): Promise<SelectionPlan> {
  const text = getDocument(request);
  const planned = getDocument({
    ...request,
    kind: 'imageset',
    catalog: request.catalog || placeholder,
    // What the filter selects is known then; the image set only names its packages.
    ...(request.kind === 'filter' && { picks: request.picks.map((pick) => ({ package: pick.package })) }),
  });
  const empty = { packages: [], bundles: 0, images: [], kept: [], warnings: [], changes: [] };
  if (request.picks.length === 0) return { text, ...empty, unmet: [], missingPackages: [] };
  const config = readImageSetConfiguration(planned, documentName);
  const [operator] = config.operators as [OperatorConfig];
  const selection =
    request.kind === 'imageset'
      ? selectOperators(facts, operator, documentName)
      : applyFilter(facts, readFilterFile(text, documentName, now()), {
          catalog: withoutCredentials(request.catalog || 'the catalog'),
        });
  const needs = await findNeeds(config, { operator, catalog, facts, selection }, signal);
  return { text, ...describeSelection(facts, selection, getImages), ...needs };
}

/** Makes the document for a selection. Throws OpmateError UNSUPPORTED for a selection that its kind cannot express. */
function getDocument({ kind, catalog, picks, defaultChannels = [], isExact }: SelectionRequest): string {
  const packages = [...groupBy(picks, (pick) => pick.package)].map(([name, list]) => {
    const channels = list.flatMap((pick) =>
      pick.channel === undefined ? [] : [{ name: pick.channel, ...versionFields(kind, pick) }],
    );
    const whole = list.find(({ channel }) => channel === undefined);
    const defaultChannel = defaultChannels.find((choice) => choice.package === name)?.channel;
    return {
      name,
      ...(defaultChannel !== undefined && { defaultChannel }),
      ...(channels.length > 0 ? { channels } : whole && versionFields(kind, whole)),
    };
  });
  if (kind === 'filter')
    return encodeYamlDocument({ kind: 'CatalogFilter', ...(isExact && { exact: true }), packages });
  return encodeYamlDocument({
    apiVersion: 'mirror.openshift.io/v2alpha1',
    kind: 'ImageSetConfiguration',
    mirror: { operators: [{ catalog, packages }] },
  });
}

function versionFields(
  kind: SelectionRequest['kind'],
  { package: name, minVersion, maxVersion, versions }: SelectionPick,
): { versions?: string; minVersion?: string; maxVersion?: string } {
  if (versions === undefined) {
    return { ...(minVersion && { minVersion }), ...(maxVersion && { maxVersion }) };
  }
  const invalid = versions.find((text) => tryParse(parseVersion, text) === undefined);
  if (invalid !== undefined) {
    throw new OpmateError('INVALID', `package ${quoteGo(name)}: invalid version ${quoteGo(invalid)}`);
  }
  if (kind === 'filter') return { versions: versions.join(' || ') };
  throw new OpmateError(
    'UNSUPPORTED',
    `package ${quoteGo(name)}: an ImageSetConfiguration cannot list versions`,
    {
      hint: 'select a range or one version, or use a CatalogFilter',
    },
  );
}

async function findNeeds(
  config: ImageSetConfiguration,
  catalog: Parameters<typeof closeDependencies>[1][number],
  signal: AbortSignal | undefined,
): Promise<Pick<SelectionPlan, 'unmet' | 'missingPackages'>> {
  const { unmet } = await closeDependencies(config, [catalog], 'report', { signal });
  if (unmet.length === 0) return { unmet, missingPackages: [] };
  const grown = await closeDependencies(config, [catalog], 'add', { signal });
  const selected = new Set(catalog.selection.packages.map(({ name }) => name));
  const packages = [...grown.selections.values()].flatMap((selection) =>
    selection.packages.map(({ name }) => name),
  );
  return { unmet, missingPackages: packages.filter((name) => !selected.has(name)) };
}

function describeSelection(
  facts: CatalogFacts,
  { facts: kept, packages, kept: reasons, warnings, changes }: CatalogSelection,
  getImages: SelectableCatalog['getImages'],
): Omit<SelectionPlan, 'text' | 'unmet' | 'missingPackages'> {
  const whole = readPackages(facts);
  const images = new Map<string, SelectionPlan['images'][number]>();
  for (const { package: name, name: bundle } of kept.bundles) {
    for (const image of getImages(name, bundle)) {
      getOrAdd(images, image, () => ({ image, bundles: [] })).bundles.push({ package: name, bundle });
    }
  }
  const channels = groupBy(kept.channels, (channel) => channel.package);
  return {
    packages: packages.map(({ name, defaultChannel, bundles }) => {
      const model = whole.get(name);
      const known = readBundleVersions(model?.bundles.values() ?? []);
      return {
        name,
        defaultChannel,
        bundles,
        channels: (channels.get(name) ?? []).map((channel) =>
          describeUpgrades(channel, model?.channels.get(channel.name) ?? channel, known),
        ),
      };
    }),
    bundles: kept.bundles.length,
    images: [...images.values()],
    kept: reasons,
    warnings,
    changes,
  };
}

/** Comparisons of versions with ranges that one channel may take; real ones take thousands. */
const maxComparisons = 50_000_000;

/** Returns the bundles of a channel from which the head of its kept part is reachable. */
function describeUpgrades(
  kept: ChannelFacts,
  whole: ChannelFacts,
  versions: ReturnType<typeof readBundleVersions>,
): PlannedChannel {
  const graph = readGraph(kept.entries);
  const head = getOnlyHead(graph) ?? '';
  const described = { name: kept.name, head, entries: kept.entries.length };
  const names = new Set([...kept.entries, ...whole.entries].map(({ name }) => name));
  const budget = { left: maxComparisons };
  // A bundle that is not kept may be installed, but no update passes through it: it has no entry.
  const { reached } = findWaysTo([head], graph.entries, {
    versions,
    candidates: names,
    isKnown: (name) => names.has(name),
    budget,
  });
  if (budget.left < 0) return { ...described, upgradable: kept.entries.length, stranded: [] };
  const all = whole.entries.map(({ name }) => name);
  const stranded = all.filter((name) => !reached.has(name));
  return { ...described, upgradable: all.length - stranded.length, stranded };
}

/** Bytes of images, and images whose manifests are unavailable. */
export interface MeasuredImages {
  bytes: BytePlan;
  unavailable: { image: string; reason: string }[];
}

/** Reads the sizes of images from their registries, each image once while this object exists. */
export class ImageSizes {
  readonly #session: Session;
  readonly #known = new Map<string, ImageContents>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Reads the manifests of images, none of their blobs, and adds up blobs, each once. Throws OpmateError. */
  async measure(images: SelectionPlan['images']): Promise<MeasuredImages> {
    const unavailable: MeasuredImages['unavailable'] = [];
    const transfers = images.flatMap(({ image }): Transfer[] => {
      if (this.#known.has(image)) return [];
      const reference = findReference(image);
      // A catalog must not make this machine read its own files.
      if (reference?.transport !== 'docker') {
        unavailable.push({ image, reason: 'not a reference of a registry' });
        return [];
      }
      return [{ source: reference, target: reference, sourceName: image, targetName: image }];
    });
    const options = { session: this.#session, maxPerRegistry: 6, continueOnError: true, skipMissing: true };
    const { pinned, missing, failed } = await pinTransfers(transfers, options);
    for (const { sourceName, contents } of pinned) {
      const manifests = contents.manifests.map((manifest) => ({ ...manifest, bytes: undefined }));
      this.#known.set(sourceName, { ...contents, manifests });
    }
    for (const { sourceName } of missing) unavailable.push({ image: sourceName, reason: 'not found' });
    for (const { transfer, error } of failed) {
      unavailable.push({ image: transfer.sourceName, reason: error.message });
    }
    const known = images.flatMap(({ image, bundles }) => {
      const contents = this.#known.get(image);
      return contents === undefined ? [] : [{ bundles, contents }];
    });
    return { bytes: planBytes(known, () => false), unavailable };
  }
}

/** Checks the picks of an untrusted request. Throws OpmateError USAGE. */
export function requireSelectionRequest(value: unknown): SelectionRequest {
  const fail = (): never => {
    throw new OpmateError('USAGE', 'the request is not a selection');
  };
  const { kind, catalog, picks, defaultChannels = [], isExact } = asRecord(value);
  const isText = (text: unknown): text is string => typeof text === 'string' && text.length <= maxText;
  const isList = (list: unknown): list is unknown[] => Array.isArray(list) && list.length <= maxPicks;
  if (!isList(picks) || !isList(defaultChannels) || !isText(catalog)) return fail();
  if (kind !== 'imageset' && kind !== 'filter') return fail();
  const read = picks.map((pick): SelectionPick => {
    const { package: name, channel, minVersion, maxVersion, versions } = asRecord(pick);
    if (!isText(name) || name === '') return fail();
    for (const text of [channel, minVersion, maxVersion])
      if (text !== undefined && !isText(text)) return fail();
    if (versions !== undefined && !(isList(versions) && versions.length > 0 && versions.every(isText)))
      return fail();
    return { package: name, channel, minVersion, maxVersion, versions } as SelectionPick;
  });
  const defaults = defaultChannels.map((choice) => {
    const { package: name, channel } = asRecord(choice);
    return isText(name) && isText(channel) ? { package: name, channel } : fail();
  });
  return { kind, catalog, picks: read, defaultChannels: defaults, isExact: isExact === true };
}

function asRecord(value: unknown): Record<string, unknown> {
  return (value ?? {}) as Record<string, unknown>;
}
