import { isBundleDirectory } from '../bundle/read.js';
import { Assembly } from '../catalog/assemble.js';
import { type DecodedBlob, addToFacts } from '../catalog/blob.js';
import { Spool, type SpoolSlot } from '../catalog/spool.js';
import { TemplateErrors, rendering } from '../catalog/template/template-errors.js';
import { formatMessage } from '../core/diagnostic.js';
import type {
  BasicTemplate,
  SemverTemplate,
  SubstitutesTemplate,
  Substitution,
  Template,
  TemplateImage,
} from '../catalog/template/template.js';
import { mapConcurrent, withOpen } from '../core/concurrency.js';
import { CancelledError, OpmateError, getMessage } from '../core/errors.js';
import { parseGoJson, quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { groupBy } from '../core/groups.js';
import { silentLogger } from '../core/log.js';
import { findReference, parseRegistryImage } from '../core/reference.js';
import { type Version, parseVersion } from '../core/semver.js';
import type { YamlPath } from '../document/yaml/full.js';
import { getValue } from '../document/json-fields.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type PackageBlob,
  type PackageIcon,
  schemas,
} from '../model/declarative-config.js';
import { decodePackage } from '../model/decode.js';
import { type CatalogDiagnostic, formatCatalogMessage } from '../model/catalog-diagnostic.js';
import { describeBundle, describeChannel } from '../model/describe.js';
import type { CatalogFormat } from '../model/encode.js';
import { type BlobOrigin, type BundleFacts, type ChannelFacts, emptyFacts } from '../model/facts.js';
import { findCsvText, migrateBundle } from '../model/migrations.js';
import { type SemverMember, buildSemverChannels, findVersionConflicts } from '../graph/template-semver.js';
import { type VersionRelease, compareVersionReleases } from '../graph/bundle-version.js';
import { substituteInChannels, readVersionRelease } from '../graph/template-substitutes.js';
import { validateCatalog } from '../graph/validate.js';
import { renderBundleSource } from './render.js';
import { inReference } from './reference-error.js';
import { statIfPresent } from '../files/file-status.js';
import type { SourceSession } from './session.js';
import { openPlace } from './resolve-place.js';

/**
 * Renders a template as a catalog. Each image is fetched once, several in parallel; memory does not grow with their
 * content. Throws OpmateError with file and line for all unavailable images or all invalid bundles, with an
 * AggregateError as cause if there are several. (Source: Render of alpha/template in operator-registry.)
 */
export async function renderTemplateCatalog(
  template: Template,
  session: SourceSession,
  options: {
    format: CatalogFormat;
    /** Result of `resolveMigrationLevel`; applies to fetched bundles, not to those in the template. */
    migrationLevel: string;
    /** Maximum number of parallel image downloads; default 8. */
    concurrency?: number | undefined;
    /** Reads the bundle in an image without migrating it; default: `readBundleImage` for each. */
    readBundle?: ((image: string) => Promise<BundleBlob>) | undefined;
  },
) {
  const { temporaryDirectory } = session;
  const readBundle = options.readBundle ?? ((image: string) => readBundleImage(image, session));
  const facts = emptyFacts();
  const errors = new TemplateErrors(template.file, (path) => template.findLine(path));
  const assembly = new Assembly({ format: options.format, migrationLevel: 'none', temporaryDirectory });

  async function renderBasic(template: BasicTemplate): Promise<void> {
    const images: (TemplateImage & { position: number })[] = [];
    for (const [position, { blob, path }] of template.entries.entries()) {
      if (blob.kind === 'bundle') images.push({ image: blob.blob.image, path, position });
      else await addEntry(blob, position, getOrigin(position));
    }
    const bundles = new Map<number, BundleFacts>();
    await fetch(images, async (blob, _csvText, places) => {
      for (const place of places) {
        const { position } = images[place] as { position: number };
        bundles.set(position, describeBundle(blob, getOrigin(position)));
        await assembly.addBundle(blob, position);
      }
    });
    const inOrder = [...bundles].sort(([a], [b]) => a - b);
    facts.bundles.push(...inOrder.map(([, facts]) => facts));
  }

  async function renderSemver(template: SemverTemplate, spool: Spool): Promise<void> {
    const { bundles } = template;
    const rendered = new Map<string, { facts: BundleFacts; csv: SpoolSlot }>();
    await fetch(bundles, async (blob, csvText, [place]) => {
      const { image } = bundles[place] as TemplateImage;
      // The bundle that describes the package is known only after all are fetched.
      const csv = await spool.append(csvText ?? '');
      rendered.set(image, { facts: describeBundle(blob), csv });
      await assembly.addBundle(blob, place);
    });
    if (rendered.size === 0) {
      const problem = 'render: no bundles specified or no bundles could be rendered';
      fail([], problem, 'list bundles below candidate, fast or stable');
    }
    await errors.throwIfAny();
    const { members, packageName } = await readMembers(template, (image) => rendered.get(image)?.facts);
    const { channels, defaultChannel } = buildSemverChannels(packageName, members, template.generate);
    const head = channels.find(({ name }) => name === defaultChannel)?.entries?.at(-1)?.name;
    const inOrder = new Set(bundles.map(({ image }) => image));
    const renderedBundles = [...inOrder].flatMap((image) => rendered.get(image) ?? []);
    const csv = renderedBundles.find(({ facts }) => facts.name === head)?.csv;
    const csvText = csv === undefined ? '' : (await spool.read(csv)).toString();
    const blob: PackageBlob = {
      schema: schemas.package,
      name: packageName,
      defaultChannel,
      description: '',
      properties: [],
      ...readPackageMetadata(csvText),
    };
    await addEntry({ kind: 'package', blob }, 0);
    for (const channel of channels) await addEntry({ kind: 'channel', blob: channel }, 0);
    facts.bundles.push(...renderedBundles.map(({ facts }) => facts));
  }

  /** Reads the bundles of the lists with their versions; reports several packages and duplicates in a list. */
  async function readMembers(
    template: SemverTemplate,
    getFacts: (image: string) => BundleFacts | undefined,
  ): Promise<{ members: SemverMember[]; packageName: string }> {
    const context = 'render: unable to post-process bundle info: ';
    const members: (SemverMember & { path: YamlPath })[] = [];
    let packageName: string | undefined;
    const names = new Set<string>();
    for (const { archetype, image, path } of template.bundles) {
      const facts = getFacts(image);
      if (facts === undefined) continue;
      const { name, packageProperties: properties } = facts;
      const [propertyFault] = facts.propertyFaults;
      const [property] = properties;
      if (propertyFault !== undefined) {
        const problem = `parse properties for bundle ${quoteGo(name)}: ${formatMessage(propertyFault)}`;
        fail(path, context + problem);
        continue;
      }
      if (property === undefined || properties.length > 1) {
        const problem = `has multiple "olm.package" properties, expected exactly 1`;
        fail(path, `${context}bundle ${quoteGo(name)} ${problem}`);
        continue;
      }
      let version: Version;
      try {
        version = parseVersion(property.version);
      } catch (error) {
        const problem = `has invalid version ${quoteGo(property.version)}: ${getMessage(error)}`;
        const hint = 'use a semantic version: MAJOR.MINOR.PATCH';
        fail(path, `${context}bundle ${quoteGo(name)} ${problem}`, hint);
        continue;
      }
      packageName ??= property.packageName;
      if (property.packageName !== packageName) {
        const problem = `bundle ${quoteGo(property.packageName)} does not belong to this package: ${quoteGo(packageName)}`;
        fail(path, context + problem, `use bundles of one package: ${image} is ${name}`);
        continue;
      }
      if (names.has(`${archetype} ${name}`)) {
        fail(path, `${context}duplicate bundle name ${quoteGo(name)}`, `keep it once in ${archetype}`);
        continue;
      }
      names.add(`${archetype} ${name}`);
      members.push({ archetype, name, version, path });
    }
    for (const { member, message } of findVersionConflicts(members)) {
      const problem =
        'encountered bundle versions which differ only by build metadata, which cannot be ordered: ';
      fail(member.path, context + problem + message);
    }
    await errors.throwIfAny();
    return { members, packageName: packageName ?? '' };
  }

  async function renderSubstitutes(template: SubstitutesTemplate): Promise<void> {
    const channels: ChannelBlob[] = [];
    const described: ChannelFacts[] = [];
    /** Versions by bundle name; the first bundle of a name takes precedence. */
    const versions = new Map<string, () => VersionRelease>();
    for (const [position, { blob }] of template.entries.entries()) {
      // Substitutions change channels before they are written.
      if (blob.kind === 'channel') {
        channels.push(blob.blob);
        described.push(describeChannel(blob.blob, getOrigin(position)));
      } else await addEntry(blob, position, getOrigin(position));
      if (blob.kind === 'bundle' && !versions.has(blob.blob.name)) {
        versions.set(blob.blob.name, () => readVersionRelease(blob.blob));
      }
    }
    await requireValid(template, described);
    await checkSubstitutions(template.substitutions);
    const substitutes = new Map<string, Substitute>();
    const images = template.substitutions.map(({ name, path }) => ({ image: name, path: [...path, 'name'] }));
    const getContext = (place: number): string => {
      const substitution = template.substitutions[place] as Substitution;
      const name = quoteGo(substitution.name);
      return `${formatSubstitutionContext(substitution)}failed to render bundle image reference ${name}: `;
    };
    await fetch(
      images,
      async (blob, csvText, [place]) => {
        const { name } = template.substitutions[place] as Substitution;
        const version = keepOutcome(() => readVersionRelease(blob, csvText));
        substitutes.set(name, { facts: describeBundle(blob), version });
        await assembly.addBundle(blob, template.entries.length + place);
      },
      getContext,
    );
    await errors.throwIfAny();
    for (const substitution of template.substitutions) {
      const substitute = substitutes.get(substitution.name) as Substitute;
      const problem = findSubstitutionProblem(substitution, substitute, versions);
      if (problem !== undefined) {
        failSubstitution(substitution, problem);
        continue;
      }
      const { name } = substitute.facts;
      substituteInChannels(channels, substitution.base, name);
      facts.bundles.push(substitute.facts);
      if (!versions.has(name)) versions.set(name, substitute.version);
      const { message } = validateCatalog({
        ...facts,
        channels: channels.map((blob) => describeChannel(blob)),
      });
      if (message === undefined) continue;
      failSubstitution(substitution, `resulting config is not valid FBC: ${message}`);
      break;
    }
    await errors.throwIfAny();
    for (const channel of channels) await addEntry({ kind: 'channel', blob: channel }, 0);
  }

  /** Throws OpmateError for entries that are not a valid catalog, with the line of each problem. */
  async function requireValid(
    { entries }: SubstitutesTemplate,
    channels: readonly ChannelFacts[],
  ): Promise<void> {
    const { message, problems } = validateCatalog({ ...facts, channels: [...channels] });
    if (message === undefined) return;
    const findPath = (problem: CatalogDiagnostic): YamlPath => findEntryPath(entries, problem) ?? [];
    const [first, ...others] = problems;
    const place = first === undefined || others.length > 0 ? [] : findPath(first);
    fail(place, `render: entries are not valid FBC: ${message}`, first?.hint);
    for (const problem of others.length > 0 ? problems : []) {
      fail(findPath(problem), formatCatalogMessage(problem));
    }
    await errors.throwIfAny();
  }

  /** Checks substitutions independently of bundles. */
  async function checkSubstitutions(substitutions: readonly Substitution[]): Promise<void> {
    const bases = new Set<string>();
    const names = new Map<string, string>();
    for (const substitution of substitutions) {
      const { name, base, path } = substitution;
      if (name === '') failSubstitution(substitution, 'substitution name cannot be empty');
      else if (base === '') failSubstitution(substitution, 'substitution base cannot be empty');
      else if (name === base) failSubstitution(substitution, 'substitution name and base cannot be the same');
      else if (bases.has(base)) {
        fail(path, `render: cannot reuse the same substitution base ${quoteGo(base)}`);
      } else if (names.has(name)) {
        const both = `(${quoteGo(names.get(name) as string)} and ${quoteGo(base)})`;
        const problem = `cannot reuse the same substitution ${quoteGo(name)} for different bases ${both}`;
        fail(path, `render: ${problem}`);
      }
      bases.add(base);
      names.set(name, base);
    }
    await errors.throwIfAny();
  }

  function failSubstitution(substitution: Substitution, problem: string): void {
    fail(substitution.path, formatSubstitutionContext(substitution) + problem);
  }

  async function validate(): Promise<CatalogDiagnostic[]> {
    const { problems } = validateCatalog(facts);
    if (template.type === 'semver') return problems;
    return Promise.all(
      problems.map(async (problem) => {
        const path = findEntryPath(template.entries, problem);
        if (path === undefined) return problem;
        return { ...problem, origin: undefined, file: template.file, line: await template.findLine(path) };
      }),
    );
  }

  /** Returns the origin of an entry, with its index as offset. */
  function getOrigin(position: number): BlobOrigin {
    return { file: template.file, offset: position, length: 0, syntax: 'yaml' };
  }

  async function addEntry(item: DecodedBlob, position: number, origin?: BlobOrigin): Promise<void> {
    addToFacts(facts, item, origin);
    await assembly.addBlob(item, position);
  }

  /**
   * Fetches each image once and passes its migrated bundle to `use`, with its ClusterServiceVersion and its indexes in
   * `images`. Continues after a failure, except with images of an unreachable registry.
   */
  async function fetch(
    images: readonly TemplateImage[],
    use: (blob: BundleBlob, csvText: string | undefined, places: Places) => Promise<void>,
    getContext?: (place: number) => string,
  ): Promise<void> {
    const byImage = groupBy(images.keys(), (place) => (images[place] as TemplateImage).image);
    const unreachable = new Set<string>();
    const failures = new Map<number, OpmateError>();
    const fetchOne = async (image: string, places: Places): Promise<void> => {
      const parsed = findReference(image);
      const registry = parsed?.transport === 'docker' ? parsed.registry : undefined;
      if (registry !== undefined && unreachable.has(registry)) {
        const problem = `skipped: ${registry} is unreachable`;
        failures.set(places[0], new OpmateError('NETWORK', `render reference ${quoteGo(image)}: ${problem}`));
        return;
      }
      try {
        const blob = await readBundle(image);
        const csvText = findCsvText(blob);
        await use(migrateBundle(blob, options.migrationLevel, csvText), csvText, places);
      } catch (error) {
        const failure = inReference(error, image);
        if (!(failure instanceof OpmateError) || failure instanceof CancelledError) throw failure;
        if (failure.code === 'NETWORK' && registry !== undefined) unreachable.add(registry);
        failures.set(places[0], failure);
      }
    };
    const { logger = silentLogger } = session;
    const task = `render ${template.file}`;
    const total = byImage.size;
    let fetched = 0;
    const report = (): void =>
      logger.progress({ task, state: 'update', current: fetched++, total, unit: 'items' });
    report();
    const fetchNext = ([image, places]: [string, number[]]): Promise<void> =>
      fetchOne(image, places as Places).finally(report);
    await mapConcurrent([...byImage], options.concurrency ?? 8, fetchNext, session).finally(() =>
      logger.progress({ task, state: 'done' }),
    );
    for (const [place, { code, message, hint }] of [...failures].sort(([a], [b]) => a - b)) {
      const context = getContext?.(place) ?? '';
      fail((images[place] as TemplateImage).path, context + message, hint, code);
    }
    await errors.throwIfAny();
  }

  function fail(path: YamlPath, problem: string, hint?: string, code?: OpmateError['code']): void {
    errors.report(path, rendering + problem, hint, code);
  }

  try {
    if (template.type === 'basic') await renderBasic(template);
    else if (template.type === 'substitutes') await renderSubstitutes(template);
    else await withOpen(new Spool(temporaryDirectory), (spool) => renderSemver(template, spool));
    return { assembly, facts, validate, close: () => assembly.close() };
  } catch (error) {
    await assembly.close().catch(() => undefined);
    throw error;
  }
}

/** Indexes of an image in a template, at least one. */
type Places = [first: number, ...others: number[]];

/** Returns the path of a problem in its template; undefined if it is not about an entry. */
function findEntryPath(
  entries: readonly { path: YamlPath }[],
  { origin, path = [] }: CatalogDiagnostic,
): YamlPath | undefined {
  const entry = origin === undefined ? undefined : entries[origin.offset];
  return entry === undefined ? undefined : [...entry.path, ...path];
}

function formatSubstitutionContext({ base, name }: Substitution): string {
  return `render: error processing substitution ${quoteGo(base)} -> ${quoteGo(name)}: `;
}

interface Substitute {
  facts: BundleFacts;
  /** Throws OpmateError for an invalid version. */
  version: () => VersionRelease;
}

/** Returns a function with the outcome of `work`, which is its result or its OpmateError. */
function keepOutcome<T>(work: () => T): () => T {
  try {
    const value = work();
    return () => value;
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return () => {
      throw error;
    };
  }
}

/** Returns why a bundle cannot substitute another, as `opm` words it; undefined if it can. */
function findSubstitutionProblem(
  { name, base }: Substitution,
  { version }: Substitute,
  versions: ReadonlyMap<string, () => VersionRelease>,
): string | undefined {
  let subject = `substitute bundle ${quoteGo(name)}`;
  try {
    const own = version();
    const baseVersion = versions.get(base);
    if (baseVersion === undefined) return `base bundle ${quoteGo(base)} does not exist in catalog`;
    subject = `base bundle ${quoteGo(base)}`;
    if (compareVersionReleases(baseVersion(), own) < 0) return undefined;
    return `${subject} is not less than substitute bundle ${quoteGo(name)}`;
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return `failed to get VersionRelease for ${subject}: ${error.message}`;
  }
}

/**
 * Reads the bundle in a registry image without migrating it. Templates come from others, so local files, repositories and
 * URLs are refused unread; directories in the words of `opm`. Throws OpmateError.
 */
export async function readBundleImage(image: string, session: SourceSession): Promise<BundleBlob> {
  try {
    parseRegistryImage(image);
  } catch (error) {
    throw (await findDirectoryFault(image)) ?? error;
  }
  const place = { kind: 'image', ref: image } as const;
  return withOpen(openPlace(place, session, { bundles: true, catalogs: false }), (source) => {
    if (source.kind === 'bundle') return renderBundleSource(source, image, { migrationLevel: 'none' });
    throw new OpmateError('UNSUPPORTED', 'is a catalog, not a bundle');
  });
}

async function findDirectoryFault(image: string): Promise<OpmateError | undefined> {
  const stats = await statIfPresent(image).catch(() => undefined);
  if (stats?.isDirectory() !== true) return undefined;
  const kind = (await isBundleDirectory(image)) ? 'bundle' : 'declarative config';
  const problem =
    kind === 'bundle'
      ? `cannot render bundle directory ${quoteGo(image)}: not allowed`
      : 'cannot render declarative config directory: not allowed';
  return new OpmateError('UNSUPPORTED', problem, { hint: 'use an image that clusters can pull' });
}

/** Reads the package metadata of a ClusterServiceVersion: its description and first icon. */
function readPackageMetadata(csvText: string): Partial<Pick<PackageBlob, 'description' | 'icon'>> {
  const csv = csvText === '' ? null : parseGoJson(csvText);
  const spec = getValue(csv, 'spec');
  if (!isJsonObject(spec)) return {};
  const description = spec['description'];
  const icon = readFirstIcon(spec['icon']);
  return {
    ...(typeof description === 'string' && { description }),
    ...(icon !== undefined && { icon }),
  };
}

/** Returns the first icon of a list; undefined if any of them is invalid. */
function readFirstIcon(icons: JsonValue | undefined): PackageIcon | undefined {
  if (!Array.isArray(icons)) return undefined;
  try {
    return icons.map((icon) => decodePackage({ icon: icon ?? ({} as JsonObject) }).icon)[0];
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}
