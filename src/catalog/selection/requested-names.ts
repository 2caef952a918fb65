import { NameIndex, describeMissing, suggestName } from '../../core/suggest.js';
import { quoteGo } from '../../document/go-json.js';
import type { PackageModel } from '../../graph/package-model.js';
import type { RequestPlace } from './catalog-filter.js';
import type { FilterRun } from './filter-run.js';

/** Requires that all names of a filter exist. */
export class RequestedNames {
  readonly #run: FilterRun;
  readonly #models: ReadonlyMap<string, PackageModel>;
  readonly #index: NameIndex;
  /** Packages requested with a name that they lack; undefined for a name of no package. */
  readonly #misnamed = new Set<string | undefined>();

  constructor(run: FilterRun, models: ReadonlyMap<string, PackageModel>) {
    this.#run = run;
    this.#models = models;
    this.#index = new NameIndex(models.keys());
  }

  /** Reports all missing names. */
  require(): void {
    const { packages, channels, criteria, defaultChannels, dropPackages, dropChannels, dropBundles } =
      this.#run.filter;
    for (const { name, where } of packages ?? []) this.#requirePackage(name, where);
    for (const { name, where } of dropPackages) this.#requirePackage(name, where, false);
    for (const { package: of, name, where } of channels) this.#requireChannel(name, of, where);
    for (const { package: of, name, where } of defaultChannels) this.#requireChannel(name, of, where);
    for (const { package: of, name, where } of dropChannels) this.#requireChannel(name, of, where, false);
    for (const { package: of, channel, where } of criteria) {
      if (channel !== undefined) this.#requireChannel(channel, of, where);
      else if (of !== undefined) this.#requirePackage(of, where);
    }
    for (const { package: of, name, where } of dropBundles) this.#requireBundle(name, of, where);
  }

  /** Reports whether a package was requested with a name that it lacks. */
  isMisnamed(packageName: string): boolean {
    return this.#misnamed.has(packageName) || this.#misnamed.has(undefined);
  }

  #isSelected(name: string): boolean {
    const { packages } = this.#run.filter;
    return packages === undefined || packages.some((request) => request.name === name);
  }

  #requirePackage(name: string, where: RequestPlace, mustBeSelected = true): PackageModel | undefined {
    const model = this.#models.get(name);
    if (model === undefined) {
      const problem = describeMissing('package', name, this.#run.options.catalog);
      this.#run.fail(where, {
        problem,
        hint: suggestName('package', name, this.#models.keys(), this.#index),
      });
      return undefined;
    }
    if (!mustBeSelected || this.#isSelected(name)) return model;
    const problem = `package ${quoteGo(name)} is not selected`;
    this.#run.fail(where, { problem, hint: 'select it as well' });
    return undefined;
  }

  #requireChannel(name: string, of: string | undefined, where: RequestPlace, mustBeSelected = true): void {
    const model = of === undefined ? undefined : this.#requirePackage(of, where, mustBeSelected);
    if (of !== undefined && model === undefined) return;
    const models =
      model === undefined
        ? [...this.#models.values()].filter(({ facts }) => this.#isSelected(facts.name))
        : [model];
    if (models.some(({ channels }) => channels.has(name))) return;
    const known = new Set(models.flatMap(({ channels }) => [...channels.keys()]));
    const scope =
      of === undefined ? 'the chosen packages' : `package ${quoteGo(of)} of ${this.#run.options.catalog}`;
    this.#misnamed.add(of);
    const problem = describeMissing('channel', name, scope);
    this.#run.fail(where, { problem, hint: suggestName('channel', name, known) });
  }

  #requireBundle(name: string, of: string | undefined, where: RequestPlace): void {
    const { catalog } = this.#run.options;
    const model = of === undefined ? undefined : this.#requirePackage(of, where, false);
    if (of !== undefined && model === undefined) return;
    const models = model === undefined ? [...this.#models.values()] : [model];
    if (models.some(({ bundles }) => bundles.has(name))) return;
    const known = new Set(models.flatMap(({ bundles }) => [...bundles.keys()]));
    const scope = of === undefined ? catalog : `package ${quoteGo(of)} of ${catalog}`;
    const problem = describeMissing('bundle', name, scope);
    this.#run.fail(where, { problem, hint: suggestName('bundle', name, known) });
  }
}
