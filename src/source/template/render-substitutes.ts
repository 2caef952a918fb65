import type { SubstitutesTemplate, Substitution } from '../../catalog/template/template.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { YamlPath } from '../../document/yaml/full.js';
import { type VersionRelease, compareVersionReleases } from '../../graph/bundle-version.js';
import { readVersionRelease, substituteInChannels } from '../../graph/template-substitutes.js';
import { validateCatalog } from '../../graph/validate.js';
import { type CatalogDiagnostic, formatCatalogMessage } from '../../model/catalog-diagnostic.js';
import type { ChannelBlob } from '../../model/declarative-config.js';
import { describeBundle, describeChannel } from '../../model/describe.js';
import type { BundleFacts, ChannelFacts } from '../../model/facts.js';
import { type TemplateRun, findEntryPath } from './template-run.js';

/** Renders a substitutes template: its entries, with substitutes in the channels. */
export class SubstitutesRendering {
  readonly #run: TemplateRun;
  readonly #template: SubstitutesTemplate;
  readonly #channels: ChannelBlob[] = [];
  readonly #described: ChannelFacts[] = [];
  /** Versions by bundle name; the first bundle of a name takes precedence. */
  readonly #versions = new Map<string, () => VersionRelease>();
  readonly #substitutes = new Map<string, Substitute>();

  constructor(run: TemplateRun, template: SubstitutesTemplate) {
    this.#run = run;
    this.#template = template;
  }

  async render(): Promise<void> {
    const { errors } = this.#run;
    await this.#addEntries();
    await this.#requireValid();
    await this.#checkSubstitutions();
    await this.#fetchSubstitutes();
    this.#substitute();
    await errors.throwIfAny();
    for (const channel of this.#channels) await this.#run.addEntry({ kind: 'channel', blob: channel }, 0);
  }

  async #addEntries(): Promise<void> {
    for (const [position, { blob }] of this.#template.entries.entries()) {
      const origin = this.#run.getOrigin(position);
      // Substitutions change channels before they are written.
      if (blob.kind === 'channel') {
        this.#channels.push(blob.blob);
        this.#described.push(describeChannel(blob.blob, origin));
      } else await this.#run.addEntry(blob, position, origin);
      if (blob.kind === 'bundle' && !this.#versions.has(blob.blob.name)) {
        this.#versions.set(blob.blob.name, () => readVersionRelease(blob.blob));
      }
    }
  }

  async #fetchSubstitutes(): Promise<void> {
    const { substitutions, entries } = this.#template;
    const images = substitutions.map(({ name, path }) => ({ image: name, path: [...path, 'name'] }));
    await this.#run.fetch(
      images,
      async (blob, csvText, [place]) => {
        const { name } = substitutions[place] as Substitution;
        const version = keepOutcome(() => readVersionRelease(blob, csvText));
        this.#substitutes.set(name, { facts: describeBundle(blob), version });
        await this.#run.assembly.addBundle(blob, entries.length + place);
      },
      (place) => {
        const substitution = substitutions[place] as Substitution;
        const name = quoteGo(substitution.name);
        return `${formatSubstitutionContext(substitution)}failed to render bundle image reference ${name}: `;
      },
    );
  }

  /** Puts the substitutes into the channels, as long as the catalog stays valid. */
  #substitute(): void {
    const { facts } = this.#run;
    for (const substitution of this.#template.substitutions) {
      const substitute = this.#substitutes.get(substitution.name) as Substitute;
      const problem = findSubstitutionProblem(substitution, substitute, this.#versions);
      if (problem !== undefined) {
        this.#failSubstitution(substitution, problem);
        continue;
      }
      const { name } = substitute.facts;
      substituteInChannels(this.#channels, substitution.base, name);
      facts.bundles.push(substitute.facts);
      if (!this.#versions.has(name)) this.#versions.set(name, substitute.version);
      const channels = this.#channels.map((blob) => describeChannel(blob));
      const { message } = validateCatalog({ ...facts, channels });
      if (message === undefined) continue;
      this.#failSubstitution(substitution, `resulting config is not valid FBC: ${message}`);
      break;
    }
  }

  /** Throws OpmateError for entries that are not a valid catalog, with the line of each problem. */
  async #requireValid(): Promise<void> {
    const { entries } = this.#template;
    const { message, problems } = validateCatalog({ ...this.#run.facts, channels: this.#described });
    if (message === undefined) return;
    const findPath = (problem: CatalogDiagnostic): YamlPath => findEntryPath(entries, problem) ?? [];
    const [first, ...others] = problems;
    const place = first === undefined || others.length > 0 ? [] : findPath(first);
    this.#run.fail(place, `render: entries are not valid FBC: ${message}`, first?.hint);
    for (const problem of others.length > 0 ? problems : []) {
      this.#run.fail(findPath(problem), formatCatalogMessage(problem));
    }
    await this.#run.errors.throwIfAny();
  }

  /** Checks substitutions independently of bundles. */
  async #checkSubstitutions(): Promise<void> {
    const bases = new Set<string>();
    const names = new Map<string, string>();
    for (const substitution of this.#template.substitutions) {
      const { name, base, path } = substitution;
      if (name === '') this.#failSubstitution(substitution, 'substitution name cannot be empty');
      else if (base === '') this.#failSubstitution(substitution, 'substitution base cannot be empty');
      else if (name === base)
        this.#failSubstitution(substitution, 'substitution name and base cannot be the same');
      else if (bases.has(base)) {
        this.#run.fail(path, `render: cannot reuse the same substitution base ${quoteGo(base)}`);
      } else if (names.has(name)) {
        const both = `(${quoteGo(names.get(name) as string)} and ${quoteGo(base)})`;
        const problem = `cannot reuse the same substitution ${quoteGo(name)} for different bases ${both}`;
        this.#run.fail(path, `render: ${problem}`);
      }
      bases.add(base);
      names.set(name, base);
    }
    await this.#run.errors.throwIfAny();
  }

  #failSubstitution(substitution: Substitution, problem: string): void {
    this.#run.fail(substitution.path, formatSubstitutionContext(substitution) + problem);
  }
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
