import { isBundleDirectory } from '../bundle/read.js';
import { Assembly } from '../catalog/assemble.js';
import { type CatalogBlob, addToFacts } from '../catalog/blob.js';
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
import { mapConcurrent } from '../core/concurrency.js';
import { CancelledError, OpmateError, getMessage } from '../core/errors.js';
import { parseGoJson, quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { silentLogger } from '../core/log.js';
import { parseReference } from '../core/reference.js';
import { type Version, parseVersion } from '../core/semver.js';
import type { YamlPath } from '../document/yaml-full.js';
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
import {
  type BlobOrigin,
  type BundleFacts,
  type CatalogFacts,
  type ChannelFacts,
  emptyFacts,
} from '../model/facts.js';
import { findCsvText, migrateBundle } from '../model/migrations.js';
import { type SemverMember, buildSemverChannels, findVersionConflicts } from '../graph/template-semver.js';
import { type VersionRelease, compareVersionReleases } from '../graph/bundle-version.js';
import { substituteInChannels, readVersionRelease } from '../graph/template-substitutes.js';
import { validateCatalog } from '../graph/validate.js';
import { renderBundleSource } from './render.js';
import { inReference } from './reference-error.js';
import { statIfPresent } from '../files/file-status.js';
import type { SourceSession } from './session.js';
import { openSource } from './source.js';

interface RenderTemplateOptions {
  format: CatalogFormat;
  /** Result of `resolveMigrationLevel`; applies to fetched bundles, not to those in the template. */
  migrationLevel: string;
  /** Maximum number of parallel image downloads; default 8. */
  concurrency?: number | undefined;
}

/** The catalog rendered from a template; close it. */
interface RenderedTemplate {
  assembly: Assembly;
  facts: CatalogFacts;
  /** Returns the problems of the catalog, with file and line for blobs in the template. */
  validate(): Promise<CatalogDiagnostic[]>;
  close(): Promise<void>;
}

/**
 * Renders a template as a catalog. Each image is fetched once, several in parallel; memory does not grow with their
 * content. Throws OpmateError with file and line for all unavailable images or all invalid bundles, with an
 * AggregateError as cause if there are several. (Source: Render of alpha/template in operator-registry.)
 */
export async function renderTemplate(
  template: Template,
  session: SourceSession,
  options: RenderTemplateOptions,
): Promise<RenderedTemplate> {
  const work = new TemplateRendering(template, session, options);
  try {
    switch (template.type) {
      case 'basic':
        await work.renderBasic(template);
        break;
      case 'semver':
        await work.renderSemver(template);
        break;
      case 'substitutes':
        await work.renderSubstitutes(template);
        break;
    }
    const { assembly, facts } = work;
    return { assembly, facts, validate: () => work.validate(), close: () => assembly.close() };
  } catch (error) {
    await work.assembly.close().catch(() => undefined);
    throw error;
  }
}

class TemplateRendering {
  readonly assembly: Assembly;
  readonly facts = emptyFacts();
  readonly #template: Template;
  readonly #session: SourceSession;
  readonly #options: RenderTemplateOptions;
  readonly #errors: TemplateErrors;

  constructor(template: Template, session: SourceSession, options: RenderTemplateOptions) {
    this.#template = template;
    this.#errors = new TemplateErrors(template.file, (path) => template.findLine(path));
    this.#session = session;
    this.#options = options;
    const { temporaryDirectory } = session;
    this.assembly = new Assembly({ format: options.format, migrationLevel: 'none', temporaryDirectory });
  }

  async renderBasic(template: BasicTemplate): Promise<void> {
    const images: (TemplateImage & { position: number })[] = [];
    for (const [position, { blob, path }] of template.entries.entries()) {
      if (blob.kind === 'bundle') images.push({ image: blob.blob.image, path, position });
      else await this.#addEntry(blob, position, this.#getOrigin(position));
    }
    const bundles = new Map<number, BundleFacts>();
    await this.#fetch(images, async (blob, places) => {
      for (const place of places) {
        const { position } = images[place] as { position: number };
        bundles.set(position, describeBundle(blob, this.#getOrigin(position)));
        await this.assembly.addBundle(blob, position);
      }
    });
    const inOrder = [...bundles].sort(([a], [b]) => a - b);
    this.facts.bundles.push(...inOrder.map(([, facts]) => facts));
  }

  async renderSemver(template: SemverTemplate): Promise<void> {
    const spool = new Spool(this.#session.temporaryDirectory);
    try {
      await this.#renderSemver(template, spool);
    } finally {
      await spool.close();
    }
  }

  async #renderSemver(template: SemverTemplate, spool: Spool): Promise<void> {
    const { bundles } = template;
    const rendered = new Map<string, { facts: BundleFacts; csv: SpoolSlot }>();
    await this.#fetch(bundles, async (blob, [place], csvText) => {
      const { image } = bundles[place as number] as TemplateImage;
      // The bundle that describes the package is known only after all are fetched.
      const csv = await spool.append(csvText ?? '');
      rendered.set(image, { facts: describeBundle(blob), csv });
      await this.assembly.addBundle(blob, place);
    });
    if (rendered.size === 0) {
      const problem = 'render: no bundles specified or no bundles could be rendered';
      this.#fail([], problem, 'list bundles below candidate, fast or stable');
    }
    await this.#errors.throwIfAny();
    const { members, packageName } = await this.#readMembers(template, (image) => rendered.get(image)?.facts);
    const { channels, defaultChannel } = buildSemverChannels(packageName, members, template.generate);
    const head = channels.find(({ name }) => name === defaultChannel)?.entries?.at(-1)?.name;
    const seen = new Set<string>();
    const inOrder = bundles.flatMap(({ image }) => (seen.has(image) ? [] : (seen.add(image), [image])));
    const renderedBundles = inOrder.map((image) => rendered.get(image)).filter((item) => item !== undefined);
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
    await this.#addEntry({ kind: 'package', blob }, 0);
    for (const channel of channels) await this.#addEntry({ kind: 'channel', blob: channel }, 0);
    this.facts.bundles.push(...renderedBundles.map(({ facts }) => facts));
  }

  /** Reads the bundles of the lists with their versions; reports several packages and duplicates in a list. */
  async #readMembers(
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
        this.#fail(
          path,
          `${context}parse properties for bundle ${quoteGo(name)}: ${formatMessage(propertyFault)}`,
        );
        continue;
      }
      if (property === undefined || properties.length > 1) {
        const problem = `has multiple "olm.package" properties, expected exactly 1`;
        this.#fail(path, `${context}bundle ${quoteGo(name)} ${problem}`);
        continue;
      }
      let version: Version;
      try {
        version = parseVersion(property.version);
      } catch (error) {
        const problem = `has invalid version ${quoteGo(property.version)}: ${getMessage(error)}`;
        const hint = 'use a semantic version: MAJOR.MINOR.PATCH';
        this.#fail(path, `${context}bundle ${quoteGo(name)} ${problem}`, hint);
        continue;
      }
      packageName ??= property.packageName;
      if (property.packageName !== packageName) {
        const problem = `bundle ${quoteGo(property.packageName)} does not belong to this package: ${quoteGo(packageName)}`;
        this.#fail(path, context + problem, `use bundles of one package: ${image} is ${name}`);
        continue;
      }
      if (names.has(`${archetype} ${name}`)) {
        this.#fail(path, `${context}duplicate bundle name ${quoteGo(name)}`, `keep it once in ${archetype}`);
        continue;
      }
      names.add(`${archetype} ${name}`);
      members.push({ archetype, name, version, path });
    }
    for (const { member, message } of findVersionConflicts(members)) {
      const problem =
        'encountered bundle versions which differ only by build metadata, which cannot be ordered: ';
      this.#fail(member.path, context + problem + message);
    }
    await this.#errors.throwIfAny();
    return { members, packageName: packageName ?? '' };
  }

  async renderSubstitutes(template: SubstitutesTemplate): Promise<void> {
    const channels: ChannelBlob[] = [];
    const described: ChannelFacts[] = [];
    /** Versions by bundle name; the first bundle of a name takes precedence. */
    const versions = new Map<string, () => VersionRelease>();
    for (const [position, { blob }] of template.entries.entries()) {
      // Substitutions change channels before they are written.
      if (blob.kind === 'channel') {
        channels.push(blob.blob);
        described.push(describeChannel(blob.blob, this.#getOrigin(position)));
      } else await this.#addEntry(blob, position, this.#getOrigin(position));
      if (blob.kind === 'bundle' && !versions.has(blob.blob.name)) {
        versions.set(blob.blob.name, () => readVersionRelease(blob.blob));
      }
    }
    await this.#requireValid(template, described);
    await this.#checkSubstitutions(template.substitutions);
    const substitutes = new Map<string, Substitute>();
    const images = template.substitutions.map(({ name, path }) => ({ image: name, path: [...path, 'name'] }));
    const use = async (
      blob: BundleBlob,
      [place]: [number, ...number[]],
      csvText: string | undefined,
    ): Promise<void> => {
      const { name } = template.substitutions[place] as Substitution;
      const version = getOutcome(() => readVersionRelease(blob, csvText));
      substitutes.set(name, { facts: describeBundle(blob), version });
      await this.assembly.addBundle(blob, template.entries.length + place);
    };
    await this.#fetch(images, use, (place) => {
      const substitution = template.substitutions[place] as Substitution;
      const name = quoteGo(substitution.name);
      return `${formatSubstitutionContext(substitution)}failed to render bundle image reference ${name}: `;
    });
    await this.#errors.throwIfAny();
    for (const substitution of template.substitutions) {
      const substitute = substitutes.get(substitution.name) as Substitute;
      const problem = findSubstitutionProblem(substitution, substitute, versions);
      if (problem !== undefined) {
        this.#failSubstitution(substitution, problem);
        continue;
      }
      const { name } = substitute.facts;
      substituteInChannels(channels, substitution.base, name);
      this.facts.bundles.push(substitute.facts);
      const { version } = substitute;
      if (!versions.has(name)) versions.set(name, () => unwrapOutcome(version));
      const { message } = validateCatalog({
        ...this.facts,
        channels: channels.map((blob) => describeChannel(blob)),
      });
      if (message === undefined) continue;
      this.#failSubstitution(substitution, `resulting config is not valid FBC: ${message}`);
      break;
    }
    await this.#errors.throwIfAny();
    for (const channel of channels) await this.#addEntry({ kind: 'channel', blob: channel }, 0);
  }

  /** Throws OpmateError for entries that are not a valid catalog, with the line of each problem. */
  async #requireValid({ entries }: SubstitutesTemplate, channels: readonly ChannelFacts[]): Promise<void> {
    const { message, problems } = validateCatalog({ ...this.facts, channels: [...channels] });
    if (message === undefined) return;
    const findPath = (problem: CatalogDiagnostic): YamlPath => findEntryPath(entries, problem) ?? [];
    const [first, ...others] = problems;
    const place = first === undefined || others.length > 0 ? [] : findPath(first);
    this.#fail(place, `render: entries are not valid FBC: ${message}`, first?.hint);
    for (const problem of others.length > 0 ? problems : []) {
      this.#fail(findPath(problem), formatCatalogMessage(problem));
    }
    await this.#errors.throwIfAny();
  }

  /** Checks substitutions independently of bundles. */
  async #checkSubstitutions(substitutions: readonly Substitution[]): Promise<void> {
    const bases = new Set<string>();
    const names = new Map<string, string>();
    for (const substitution of substitutions) {
      const { name, base, path } = substitution;
      if (name === '') this.#failSubstitution(substitution, 'substitution name cannot be empty');
      else if (base === '') this.#failSubstitution(substitution, 'substitution base cannot be empty');
      else if (name === base)
        this.#failSubstitution(substitution, 'substitution name and base cannot be the same');
      else if (bases.has(base)) {
        this.#fail(path, `render: cannot reuse the same substitution base ${quoteGo(base)}`);
      } else if (names.has(name)) {
        const both = `(${quoteGo(names.get(name) as string)} and ${quoteGo(base)})`;
        const problem = `cannot reuse the same substitution ${quoteGo(name)} for different bases ${both}`;
        this.#fail(path, `render: ${problem}`);
      }
      bases.add(base);
      names.set(name, base);
    }
    await this.#errors.throwIfAny();
  }

  #failSubstitution(substitution: Substitution, problem: string): void {
    this.#fail(substitution.path, formatSubstitutionContext(substitution) + problem);
  }

  async validate(): Promise<CatalogDiagnostic[]> {
    const { problems } = validateCatalog(this.facts);
    const template = this.#template;
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
  #getOrigin(position: number): BlobOrigin {
    return { file: this.#template.file, offset: position, length: 0, syntax: 'yaml' };
  }

  async #addEntry(item: CatalogBlob, position: number, origin?: BlobOrigin): Promise<void> {
    addToFacts(this.facts, item, origin);
    await this.assembly.addBlob(item, position);
  }

  /**
   * Fetches each image once and passes its migrated bundle to `use`, with its indexes in `images` and its
   * ClusterServiceVersion. Continues after a failure, except with images of an unreachable registry.
   */
  async #fetch(
    images: readonly TemplateImage[],
    use: (blob: BundleBlob, places: [number, ...number[]], csvText: string | undefined) => Promise<void>,
    getContext?: (place: number) => string,
  ): Promise<void> {
    const imageIndexes = new Map<string, [number, ...number[]]>();
    for (const [place, { image }] of images.entries()) {
      const places = imageIndexes.get(image);
      if (places === undefined) imageIndexes.set(image, [place]);
      else places.push(place);
    }
    const unreachable = new Set<string>();
    const failures = new Map<number, OpmateError>();
    const fetchOne = async ([image, places]: [string, [number, ...number[]]]): Promise<void> => {
      const registry = findRegistry(image);
      if (registry !== undefined && unreachable.has(registry)) {
        const problem = `skipped: ${registry} is unreachable`;
        failures.set(places[0], new OpmateError('NETWORK', `render reference ${quoteGo(image)}: ${problem}`));
        return;
      }
      try {
        const blob = await readBundleImage(image, this.#session);
        const csvText = findCsvText(blob);
        await use(migrateBundle(blob, this.#options.migrationLevel, csvText), places, csvText);
      } catch (error) {
        const failure = inReference(error, image);
        if (!(failure instanceof OpmateError) || failure instanceof CancelledError) throw failure;
        if (failure.code === 'NETWORK' && registry !== undefined) unreachable.add(registry);
        failures.set(places[0], failure);
      }
    };
    await this.#report(imageIndexes.size, (next) =>
      mapConcurrent(
        [...imageIndexes],
        this.#options.concurrency ?? 8,
        (item) => fetchOne(item).finally(next),
        this.#session,
      ),
    );
    for (const [place, { code, message, hint }] of [...failures].sort(([a], [b]) => a - b)) {
      const context = getContext?.(place) ?? '';
      this.#fail((images[place] as TemplateImage).path, context + message, hint, code);
    }
    await this.#errors.throwIfAny();
  }

  /** Reports the progress of work on images; `work` calls `next` after each. */
  async #report(total: number, work: (next: () => void) => Promise<unknown>): Promise<void> {
    const { logger = silentLogger } = this.#session;
    const task = `render ${this.#template.file}`;
    let current = 0;
    const report = (): void => logger.progress({ task, state: 'update', current, total, unit: 'items' });
    report();
    try {
      await work(() => {
        current++;
        report();
      });
    } finally {
      logger.progress({ task, state: 'done' });
    }
  }

  #fail(path: YamlPath, problem: string, hint?: string, code?: OpmateError['code']): void {
    this.#errors.report(path, rendering + problem, hint, code);
  }
}

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
  version: Outcome<VersionRelease>;
}

type Outcome<T> = { value: T } | { error: OpmateError };

function getOutcome<T>(work: () => T): Outcome<T> {
  try {
    return { value: work() };
  } catch (error) {
    if (error instanceof OpmateError) return { error };
    throw error;
  }
}

function unwrapOutcome<T>(outcome: Outcome<T>): T {
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}

/** Returns why a bundle cannot substitute another, as `opm` words it; undefined if it can. */
function findSubstitutionProblem(
  { name, base }: Substitution,
  { version }: Substitute,
  versions: ReadonlyMap<string, () => VersionRelease>,
): string | undefined {
  if ('error' in version) {
    return `failed to get VersionRelease for substitute bundle ${quoteGo(name)}: ${version.error.message}`;
  }
  const baseVersion = versions.get(base);
  if (baseVersion === undefined) return `base bundle ${quoteGo(base)} does not exist in catalog`;
  const baseOutcome = getOutcome(baseVersion);
  if ('error' in baseOutcome) {
    return `failed to get VersionRelease for base bundle ${quoteGo(base)}: ${baseOutcome.error.message}`;
  }
  return compareVersionReleases(baseOutcome.value, version.value) < 0
    ? undefined
    : `base bundle ${quoteGo(base)} is not less than substitute bundle ${quoteGo(name)}`;
}

/** Reads the bundle in a registry image. Throws OpmateError. */
async function readBundleImage(image: string, session: SourceSession): Promise<BundleBlob> {
  const stats = await statIfPresent(image);
  if (stats?.isDirectory() === true && (await isBundleDirectory(image))) {
    throw new OpmateError('UNSUPPORTED', `cannot render bundle directory ${quoteGo(image)}: not allowed`, {
      hint: 'use an image that clusters can pull',
    });
  }
  if (stats === undefined && /^(?:docker:\/\/|oci:|oci-archive:|docker-archive:)/.test(image)) {
    throw new OpmateError('INVALID', 'invalid reference format', {
      hint: 'use an image that clusters can pull: REGISTRY/REPOSITORY:TAG or @sha256:…',
    });
  }
  const source = await openSource(image, session, { bundles: true, catalogs: false });
  try {
    if (source.kind === 'bundle') return renderBundleSource(source, image, { migrationLevel: 'none' });
  } finally {
    await source.close();
  }
  throw new OpmateError('UNSUPPORTED', 'is a catalog, not a bundle');
}

function findRegistry(image: string): string | undefined {
  try {
    const parsed = parseReference(image);
    return parsed.transport === 'docker' ? parsed.registry : undefined;
  } catch {
    return undefined;
  }
}

interface PackageMetadata {
  description?: string;
  icon?: PackageIcon;
}

/** Reads the package metadata of a ClusterServiceVersion: its description and first icon. */
function readPackageMetadata(csvText: string): PackageMetadata {
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
    const read = icons.map((icon) => decodePackage({ icon: icon ?? ({} as JsonObject) }).icon);
    return read[0];
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}
